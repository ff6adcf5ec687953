"""What a check asks of where the members of a group are. Knows nothing of how to get there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import msgspec

from bayplan.auditing import spread as spreading
from bayplan.auditing import survival
from bayplan.auditing.layout import ETCD, HOST, LEVELS, ZONE, Layout
from bayplan.auditing.spread import Places

TWICE, SEPARATE, HALF, LOSS = "twice", "separate", "half", "loss"
NODES = "control plane"  # the group of the control-plane nodes themselves


class SpreadDemand(msgspec.Struct, frozen=True):
    """
    What every component must meet at a level.

    TWICE: at least two instances, wherever. SEPARATE: at least two domains. HALF: no domain holds more than half,
    rounded up. LOSS: any one domain may fail and etcd keeps its majority, everything else one instance.
    """

    level: str = HOST
    rule: str = LOSS

    def met(self, group: str, n: int, fullest: int) -> bool:
        if self.rule == TWICE:
            return n >= 2
        return self._rule(group)(n, fullest)

    def cap(self, group: str, n: int) -> int:
        """The most members that one domain may hold, at least 1 even where nothing helps."""
        return max((most for most in range(1, n + 1) if self.met(group, n, most)), default=1)

    def least(self, group: str) -> int:
        """The fewest members that can meet it."""
        return next(n for n in itertools.count(1) if self.met(group, n, 1))

    def _rule(self, group: str) -> Callable[[int, int], bool]:
        if self.rule == LOSS and (group == ETCD or group.startswith(f"{ETCD}-")):
            return spreading.quorum
        return spreading.half if self.rule == HALF else spreading.separate


# What the checks ask of a placement; the others ask for labels, or for more than moving nodes can give.
_DEMANDS = (
    ("scs-0214-cp-machines", SpreadDemand(HOST, SEPARATE)),
    ("scs-0214-cp-zones", SpreadDemand(ZONE, SEPARATE)),
    ("scs-0213-dup-", SpreadDemand(HOST, TWICE)),
    ("scs-0213-half-", SpreadDemand(HOST, HALF)),
    *((f"fd-quorum-etcd-{level}", SpreadDemand(level, LOSS)) for level in LEVELS),
    *((f"fd-n1-component-{level}", SpreadDemand(level, LOSS)) for level in LEVELS),
    ("bsi-cp-three-", SpreadDemand(ZONE, LOSS)),
)


def demands_of(check_ids: Iterable[str]) -> list[SpreadDemand]:
    """What these checks ask of where the control plane is, each demand once."""
    ids = list(check_ids)
    found = [demand for start, demand in _DEMANDS if any(check_id.startswith(start) for check_id in ids)]
    return list(dict.fromkeys(found))


def members_of(layout: Layout) -> dict[str, list[str]]:
    """The node of each member by component, and the control-plane nodes as a group of their own."""
    known = layout.by_name()
    found = {name: [m.node for m in members if m.node in known] for name, members in layout.members.items()}
    if layout.control_plane:
        found[NODES] = [node.name for node in layout.control_plane]
    return {name: nodes for name, nodes in found.items() if nodes}


def meets(layout: Layout, demands: Iterable[SpreadDemand]) -> bool:
    """Whether every component certainly meets every demand, whatever the missing labels are."""
    places, known = Places(layout), layout.by_name()
    for demand in demands:
        for group, nodes in members_of(layout).items():
            found = spreading.spread(layout, [known[node] for node in nodes], demand.level, places)
            if not demand.met(group, found.n, found.hi):
                return False
    return True


def tolerances(layout: Layout, demands: Iterable[SpreadDemand]) -> dict[str, int]:
    """How many domains of each demanded level may fail, for certain."""
    asked = list(dict.fromkeys(demand.level for demand in demands))
    reports = {one.level: one.control_plane.tolerance for one in survival.survey(layout, levels=asked)}
    return {level: reports.get(level, 0) for level in asked}
