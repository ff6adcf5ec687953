"""What a check may find, before a profile weighs it, and what it is given to find it. Knows no check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from bayplan.auditing import spread as spreading
from bayplan.auditing.layout import APISERVER, CONTROLLER_MANAGER, ETCD, HOST, SCHEDULER, AuditNode, Layout
from bayplan.auditing.spread import Places, Spread

HOLDS, BROKEN, OPEN, NOT_APPLICABLE = "holds", "broken", "open", "not applicable"
HIDDEN = "no control plane is visible; give a dump of the cluster that hosts it"
UNKNOWN_COMPONENTS = "which components run where is not known; give the pods of kube-system too"
# As the ids of checks call the components.
SHORT_NAMES = {
    "apiserver": APISERVER,
    "controller-manager": CONTROLLER_MANAGER,
    "scheduler": SCHEDULER,
    "etcd": ETCD,
}
_MOST_COUNTS = 12
PLURALS = {"host": "hosts", "rack": "racks", "zone": "zones", "region": "regions", "cloud": "clouds"}


class Outcome(msgspec.Struct, frozen=True):
    """What was found, on which nodes, how that is known, and what would mend it."""

    state: str
    message: str
    nodes: tuple[str, ...] = ()
    evidence: str = ""
    fix: str = ""


class Facts:
    """A layout with its places worked out once for all checks; `workloads` are members by name of the group."""

    def __init__(self, layout: Layout, workloads: Mapping[str, Sequence[str]] | None = None) -> None:
        self.layout = layout
        self.places = Places(layout)
        self.workloads = workloads
        self.known = layout.by_name()

    def spread(self, nodes: Sequence[AuditNode], level: str = HOST) -> Spread:
        return spreading.spread(self.layout, nodes, level, self.places)

    @property
    def hidden(self) -> bool:
        """Whether nothing of the control plane is to be seen."""
        return not self.layout.control_plane and not any(self.layout.members.values())


class Check(msgspec.Struct, frozen=True):
    """One rule: its id, what it asks, where that stands, and the function that decides it."""

    id: str
    title: str
    source: str
    run: Callable[[Facts], Outcome]


def state_of(holds: bool | None) -> str:
    """The state that a three-valued answer stands for."""
    return OPEN if holds is None else HOLDS if holds else BROKEN


def hidden() -> Outcome:
    return Outcome(OPEN, HIDDEN)


def layout_text(found: Spread) -> str:
    """The members per domain, e.g. `2+1 over 2 hosts`, with what is unknown."""
    if not found.unknown:
        counts = found.counts
        shown = "+".join(map(str, counts)) if len(counts) <= _MOST_COUNTS else f"{found.n}, at most {found.hi} on one,"
        return f"{shown or 0} over {_counted(len(counts), found.level)}"
    span = _counted(found.most, found.level)
    span = span if found.fewest == found.most else f"{found.fewest} to {span}"
    fullest = f"{found.lo}" if found.lo == found.hi else f"{found.lo} to {found.hi}"
    lacking = f"{len(found.unknown)} without a usable {found.level} label"
    return f"{found.n} over {span}, the fullest holds {fullest}; {lacking}"


def _counted(n: int, level: str) -> str:
    return f"1 {level}" if n == 1 else f"{n} {PLURALS[level]}"
