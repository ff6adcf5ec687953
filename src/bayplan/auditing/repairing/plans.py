"""
The demands of an audit on where control-plane members are, a repair plan as a value, and the layout it leads to.

Knows nothing of how a plan is found: that is `plan_search`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing import spread as spreading
from bayplan.auditing import survival
from bayplan.auditing.layout import ETCD, HOST, LEVELS, ZONE, AuditNode, ComponentInstance, Layout
from bayplan.auditing.spread import Locations

ADD_FIRST, REMOVE_FIRST, LEARNER, NOT_YET = "add-first", "remove-first", "as a learner", "not yet"

Spot = tuple[str, ...]  # the domain at each demanded level, the smallest first


class NodeMove(msgspec.Struct, frozen=True):
    """
    The move of one node: `source` and `target` are its domains by level, `new` the levels with a new target domain.

    `how`: whether its successor joins before or after it is removed. A node that does not exist yet has no source, and
    `components` are what it will run.
    """

    node: str
    source: Mapping[str, str]
    target: Mapping[str, str]
    new: tuple[str, ...] = ()
    how: str = ADD_FIRST
    components: tuple[str, ...] = ()


class RepairPlan(msgspec.Struct, frozen=True, kw_only=True):
    """
    `starts` are components to start on nodes that lack them, `adds` new nodes, `moves` the rest, in a safe order.

    `further` counts the new domains by level: at the host level, machines. `unknown` are nodes that must be labelled
    before a plan can be made. Not `exact`: a shorter plan may exist. Not `safe`: some step would lose the majority.
    """

    starts: tuple[tuple[str, str], ...] = ()
    adds: tuple[NodeMove, ...] = ()
    moves: tuple[NodeMove, ...] = ()
    further: Mapping[str, int] = msgspec.field(default_factory=dict)
    passes: bool = False
    exact: bool = True
    safe: bool = True
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    before: Mapping[str, int] = msgspec.field(default_factory=dict)
    after: Mapping[str, int] = msgspec.field(default_factory=dict)

    @property
    def n_changes(self) -> int:
        return len(self.starts) + len(self.adds) + len(self.moves)


def new_name(level: str, taken: Iterable[str]) -> str:
    """A name for a new domain that no label can have, because it contains spaces."""
    return f"new {level} {1 + sum(map(is_new, taken))}"


def is_new(domain: str) -> bool:
    return domain.startswith("new ")


# Demands

TWICE, SEPARATE, HALF, LOSS = "twice", "separate", "half", "loss"
NODES = "control plane"  # the group of the control-plane nodes themselves
WORKERS = "workers"  # the group of the worker nodes


class SpreadDemand(msgspec.Struct, frozen=True):
    """
    What every component must meet at a level, or, with `of_workers`, the worker nodes.

    TWICE: at least two instances, on any nodes. SEPARATE: at least two domains. HALF: no domain holds more than half,
    rounded up. LOSS: after the loss of any one domain etcd has its majority, and every other component one instance.
    """

    level: str = HOST
    rule: str = LOSS
    of_workers: bool = False

    def concerns(self, group: str) -> bool:
        return (group == WORKERS) == self.of_workers

    def met(self, group: str, n: int, fullest: int) -> bool:
        if self.rule == TWICE:
            return n >= 2
        return self._rule(group)(n, fullest)

    def cap(self, group: str, n: int) -> int:
        """The most members that one domain may hold; 1 even where the demand cannot be met."""
        return max((most for most in range(1, n + 1) if self.met(group, n, most)), default=1)

    def least(self, group: str) -> int:
        """The fewest members with which the demand can be met."""
        return next(n for n in itertools.count(1) if self.met(group, n, 1))

    def _rule(self, group: str) -> Callable[[int, int], bool]:
        if self.rule == LOSS and (group == ETCD or group.startswith(f"{ETCD}-")):
            return spreading.quorum
        return spreading.half if self.rule == HALF else spreading.separate


# The demands of checks, by the start of their id. The other checks concern labels, or more than moves can achieve.
_DEMANDS = (
    ("scs-0214-cp-machines", SpreadDemand(HOST, SEPARATE)),
    ("scs-0214-cp-zones", SpreadDemand(ZONE, SEPARATE)),
    ("scs-0213-dup-", SpreadDemand(HOST, TWICE)),
    ("scs-0213-half-", SpreadDemand(HOST, HALF)),
    *((f"fd-quorum-etcd-{level}", SpreadDemand(level, LOSS)) for level in LEVELS),
    *((f"fd-n1-component-{level}", SpreadDemand(level, LOSS)) for level in LEVELS),
    ("bsi-cp-three-", SpreadDemand(ZONE, LOSS)),
    ("scs-0214-worker-spread", SpreadDemand(HOST, SEPARATE, of_workers=True)),
    ("bsi-worker-two-zones", SpreadDemand(ZONE, SEPARATE, of_workers=True)),
)


def demands_of(check_ids: Iterable[str]) -> list[SpreadDemand]:
    """The demands of these checks, each once."""
    ids = list(check_ids)
    found = [demand for start, demand in _DEMANDS if any(check_id.startswith(start) for check_id in ids)]
    return list(dict.fromkeys(found))


def members_of(layout: Layout, demands: Iterable[SpreadDemand] = ()) -> dict[str, list[str]]:
    """
    The node of each member by component, and the control-plane nodes as a group of their own.

    The workers are a group if one of the demands concerns them; a single worker has nothing to be apart from.
    """
    known = layout.by_name()
    found = {name: [m.node for m in members if m.node in known] for name, members in layout.members.items()}
    if layout.control_plane:
        found[NODES] = [node.name for node in layout.control_plane]
    if any(demand.of_workers for demand in demands) and len(layout.workers) > 1:
        found[WORKERS] = [node.name for node in layout.workers]
    return {name: nodes for name, nodes in found.items() if nodes}


def meets(layout: Layout, demands: Sequence[SpreadDemand]) -> bool:
    """Whether every group certainly meets every demand, whatever the values of missing labels."""
    locations, known = Locations(layout), layout.by_name()
    members = members_of(layout, demands)
    for demand in demands:
        for group, nodes in members.items():
            found = spreading.spread_over_domains(layout, [known[node] for node in nodes], demand.level, locations)
            if demand.concerns(group) and not demand.met(group, found.n, found.hi):
                return False
    return True


def tolerances(layout: Layout, demands: Iterable[SpreadDemand]) -> dict[str, int]:
    """How many domains of each demanded level may certainly fail."""
    asked = list(dict.fromkeys(demand.level for demand in demands))
    reports = {one.level: one.control_plane.tolerance for one in survival.survey_losses(layout, levels=asked)}
    return {level: reports.get(level, 0) for level in asked}


# The layout after a plan


def layout_after(layout: Layout, found: RepairPlan) -> Layout:
    """The layout once the plan is carried out, for the audit to judge."""
    moved, known = {move.node: move for move in found.moves}, layout.by_name()
    place = _NodeMover(layout)
    components = {name: list(members) for name, members in layout.members.items()}
    for component, node in found.starts:
        components[component].append(ComponentInstance(node))
    added = []
    for move in found.adds:
        for component in move.components:
            components[component].append(ComponentInstance(move.node))
        peers = [known[m.node] for m in layout.members[move.components[0]] if m.node in known]
        added.append(msgspec.structs.replace(place(peers[0], move), name=move.node, components=move.components))
    return msgspec.structs.replace(
        layout,
        nodes=(*(place(node, moved.get(node.name)) for node in layout.nodes), *added),
        external=tuple(place(node, moved.get(node.name)) for node in layout.external),
        groupings=tuple(
            msgspec.structs.replace(one, pairs=tuple(pair for pair in one.pairs if pair[0] not in moved))
            for one in layout.groupings
        ),
        members={
            name: tuple(ComponentInstance(m.node, m.healthy or m.node in moved) for m in members)
            for name, members in components.items()
        },
    )


class _NodeMover:
    """
    Gives nodes the domains and labels of a plan; other sources are assumed to agree with the new labels.

    A node that is not moved keeps the domains that were inferred from other nodes, even if those are moved.
    """

    def __init__(self, layout: Layout) -> None:
        self._locations = Locations(layout)
        self._node_in: dict[tuple[str, str], AuditNode] = {}
        for node in layout.by_name().values():
            for level, domain in zip(LEVELS, self._locations.location_of(node.name), strict=True):
                if domain and node.at(level):
                    self._node_in.setdefault((level, domain), node)

    def __call__(self, node: AuditNode, move: NodeMove | None) -> AuditNode:
        if move is None:
            return msgspec.structs.replace(node, domains=self._known(node))
        domains = self._domains(node, move)
        labels = {
            key: self._label(level, key, domain) for level, key in node.keys.items() if (domain := domains.get(level))
        }
        return msgspec.structs.replace(
            node, domains=domains, labels={**node.labels, **labels}, other_sources=(), vacuous="", ready=True
        )

    def _label(self, level: str, key: str, domain: str) -> str:
        """The label that names the domain: that of a node there, else the name itself without its spaces."""
        model = self._node_in.get((level, domain))
        return (model.labels.get(key) if model is not None else None) or domain.replace(" ", "-")

    def _known(self, node: AuditNode) -> dict[str, str | None]:
        """The node's domains as labels would name them, including those inferred from other nodes."""
        found = dict(node.domains)
        for level, domain in zip(LEVELS, self._locations.location_of(node.name), strict=True):
            if domain and not found.get(level):
                found[level] = self._node_in[level, domain].at(level)
        return found

    def _domains(self, node: AuditNode, move: NodeMove) -> dict[str, str | None]:
        """The domains of the plan, and the larger ones of a node already there, or else its own."""
        existing = [level for level in LEVELS if level in move.target and level not in move.new]
        model = self._node_in[existing[0], move.target[existing[0]]] if existing else node
        smallest = LEVELS.index(existing[0]) if existing else 1 + max(map(LEVELS.index, move.target), default=-1)
        known = self._known(model)
        larger = {level: known.get(level) for level in LEVELS[smallest:]}
        return {**dict.fromkeys(LEVELS), **move.target, **larger}
