"""The outcome of a check before a profile weighs it, the facts a check reads, and the texts checks share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bayplan.auditing import spread as spreading
from bayplan.auditing.layout import (
    APISERVER,
    CLOUD,
    CONTROLLER_MANAGER,
    ETCD,
    HOST,
    RACK,
    REGION,
    SCHEDULER,
    AuditNode,
    Layout,
)
from bayplan.auditing.spread import DomainSpread, Locations
from bayplan.auditing.survival import Survival
from bayplan.auditing.workload_groups import Workloads, by_namespace

HOLDS, BROKEN, OPEN, NOT_APPLICABLE = "holds", "broken", "open", "not applicable"
HIDDEN = "no control plane is visible; give a dump of the cluster that hosts it"
UNKNOWN_COMPONENTS = "which components run where is not known; give the pods of kube-system too"
UNKNOWN_HOSTED = "not among the given pods of the hosting cluster; if it runs there, add its --hosting-namespace"
# Components by the name that check ids use.
SHORT_NAMES = {
    "apiserver": APISERVER,
    "controller-manager": CONTROLLER_MANAGER,
    "scheduler": SCHEDULER,
    "etcd": ETCD,
}
_MAX_SHOWN_COUNTS = 12
_MAX_SHOWN_NAMESPACES, _MAX_SHOWN_NAMES = 5, 3
_OPTIONAL = (RACK, REGION, CLOUD)
PLURALS = {"host": "hosts", "rack": "racks", "zone": "zones", "region": "regions", "cloud": "clouds"}


class CheckOutcome(msgspec.Struct, frozen=True):
    """What was found, on which nodes or workloads, on what evidence, and what would fix it."""

    state: str
    message: str
    nodes: tuple[str, ...] = ()
    evidence: str = ""
    fix: str = ""
    workloads: tuple[str, ...] = ()


NO_PODS = CheckOutcome(NOT_APPLICABLE, "no pods were given")


class AuditFacts:
    """A layout with its locations computed once for all checks; `workloads` and `survival` are None where unknown."""

    def __init__(self, layout: Layout, workloads: Workloads | None = None, survival: Survival | None = None) -> None:
        self.layout = layout
        self.locations = Locations(layout)
        self.workloads = workloads
        self.survival = survival
        self.known = layout.by_name()

    def n_domains(self, level: str) -> int:
        """How many domains of the level are known to be in use."""
        return len({domain for node in self.known.values() if (domain := node.at(level))})

    def spread(self, nodes: Sequence[AuditNode], level: str = HOST) -> DomainSpread:
        return spreading.spread_over_domains(self.layout, nodes, level, self.locations)

    @property
    def hidden(self) -> bool:
        """Whether the input shows no part of the control plane."""
        return not self.layout.control_plane and not any(self.layout.members.values())


class Check(msgspec.Struct, frozen=True):
    """One check: its id, what it requires, the standard that says so, and the function that decides it."""

    id: str
    title: str
    source: str
    run: Callable[[AuditFacts], CheckOutcome]


def state_of(holds: bool | None) -> str:
    """The state of a three-valued answer."""
    return OPEN if holds is None else HOLDS if holds else BROKEN


def hidden() -> CheckOutcome:
    return CheckOutcome(OPEN, HIDDEN)


def not_in_use(facts: AuditFacts, level: str) -> CheckOutcome | None:
    """The outcome at a level that few clusters spread over, where this cluster does not; None where it does."""
    if level in _OPTIONAL and facts.n_domains(level) < 2:
        return CheckOutcome(NOT_APPLICABLE, f"fewer than two {PLURALS[level]} are known to be in use")
    return None


def unknown_members(facts: AuditFacts, component: str) -> CheckOutcome | None:
    """The outcome where the members of a component are not known; None where they are."""
    if facts.hidden:
        counted = [f"{n} by {source}" for source, n in facts.layout.api_servers.items()]
        known = f"; API servers: {', '.join(counted)}" if counted and component == APISERVER else ""
        return CheckOutcome(OPEN, HIDDEN + known)
    if component in facts.layout.members:
        return None
    return CheckOutcome(OPEN, UNKNOWN_HOSTED if facts.layout.is_hosted else UNKNOWN_COMPONENTS)


def workloads_text(names: Sequence[str]) -> str:
    """`2 workloads: shop (web, api), db (pg)`, with the first names of each of the first namespaces."""
    grouped = by_namespace(names)
    texts = []
    for namespace, found in list(grouped.items())[:_MAX_SHOWN_NAMESPACES]:
        short = [name.rpartition("/")[2] for name in found[:_MAX_SHOWN_NAMES]]
        more = f", {len(found) - _MAX_SHOWN_NAMES} more" if len(found) > _MAX_SHOWN_NAMES else ""
        texts.append(f"{namespace} ({', '.join(short)}{more})")
    n_more = len(grouped) - _MAX_SHOWN_NAMESPACES
    further = f" and {n_more} further namespace{'s'[: n_more != 1]}" if n_more > 0 else ""
    return f"{len(names)} workload{'s'[: len(names) != 1]}: {', '.join(texts)}{further}"


def layout_text(found: DomainSpread) -> str:
    """The members per domain, for example `2+1 over 2 hosts`, with the number of unlabelled nodes."""
    if not found.unknown:
        counts = found.counts
        shown = (
            "+".join(map(str, counts)) if len(counts) <= _MAX_SHOWN_COUNTS else f"{found.n}, at most {found.hi} on one,"
        )
        return f"{shown or 0} over {_counted(len(counts), found.level)}"
    span = _counted(found.most, found.level)
    span = span if found.fewest == found.most else f"{found.fewest} to {span}"
    fullest = f"{found.lo}" if found.lo == found.hi else f"{found.lo} to {found.hi}"
    lacking = f"{len(found.unknown)} without a usable {found.level} label"
    return f"{found.n} over {span}, the fullest holds {fullest}; {lacking}"


def _counted(n: int, level: str) -> str:
    return f"1 {level}" if n == 1 else f"{n} {PLURALS[level]}"
