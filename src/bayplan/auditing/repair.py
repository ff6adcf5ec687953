"""
The fewest moves after which a control plane meets its demands, in a safe order, and the stanza that spreads a workload.

A plan is found by trying assignments, the fewest moves first, and proven on the layout it leads to. Knows nothing of
profiles: the caller says what is demanded.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from bayplan.auditing import spread as spreading
from bayplan.auditing import survivability
from bayplan.auditing.layout import ETCD, HOST, LEVELS, ZONE, AuditNode, Layout, Member
from bayplan.auditing.spread import Places

TWICE, SEPARATE, HALF, LOSS = "twice", "separate", "half", "loss"
ADD_FIRST, REMOVE_FIRST, LEARNER, NOT_YET = "add-first", "remove-first", "as a learner", "not yet"
NODES = "control plane"  # the group of the control-plane nodes themselves
MOST_TRIES = 200_000  # assignments looked at before the search settles for a good plan instead of the best

Spot = tuple[str, ...]  # the domain at each demanded level, the smallest first


class Demand(msgspec.Struct, frozen=True):
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


class Move(msgspec.Struct, frozen=True):
    """
    One node goes elsewhere: `source` and `target` are the domains by level, `new` the levels at which it is a new one.

    `how` says whether its successor joins before it leaves or after. A node that does not exist yet has no source, and
    `components` are what it is to run.
    """

    node: str
    source: Mapping[str, str]
    target: Mapping[str, str]
    new: tuple[str, ...] = ()
    how: str = ADD_FIRST
    components: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """
    `starts` are components to start on nodes that lack them, `adds` new nodes, `moves` the rest, in a safe order.

    `further` counts the new domains by level: at the host level, machines. `unknown` are nodes to be labelled before
    anything can be planned. Not `exact`: a shorter plan may exist. Not `safe`: some step would cost the majority.
    """

    starts: tuple[tuple[str, str], ...] = ()
    adds: tuple[Move, ...] = ()
    moves: tuple[Move, ...] = ()
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


# What the checks ask of a placement; the others ask for labels, or for more than moving nodes can give.
_DEMANDS = (
    ("scs-0214-cp-machines", Demand(HOST, SEPARATE)),
    ("scs-0214-cp-zones", Demand(ZONE, SEPARATE)),
    ("scs-0213-dup-", Demand(HOST, TWICE)),
    ("scs-0213-half-", Demand(HOST, HALF)),
    *((f"fd-quorum-etcd-{level}", Demand(level, LOSS)) for level in LEVELS),
    *((f"fd-n1-component-{level}", Demand(level, LOSS)) for level in LEVELS),
    ("bsi-cp-three-", Demand(ZONE, LOSS)),
)


def demands_of(check_ids: Iterable[str]) -> list[Demand]:
    """What these checks ask of where the control plane is, each demand once."""
    ids = list(check_ids)
    found = [demand for start, demand in _DEMANDS if any(check_id.startswith(start) for check_id in ids)]
    return list(dict.fromkeys(found))


def plan(
    layout: Layout,
    demands: Sequence[Demand],
    *,
    usable: frozenset[str] | None = None,
    keep: frozenset[str] = frozenset(),
) -> Plan:
    """
    The plan with the fewest moves, among those the one with the fewest new machines, then the most even one.

    `usable` are the domains of the smallest level that may take a node, all known ones if not given. `keep` are nodes
    that had better stay: the only holder of a lease, of a local volume.
    """
    members = _members(layout)
    if not members:
        return Plan(notes=("no control plane is visible: ask whoever runs it",))
    if meets(layout, demands):
        return Plan(passes=True, before=tolerances(layout, demands), after=tolerances(layout, demands))
    problem = _Problem(layout, demands, usable, keep)
    if problem.unknown:
        note = "where these nodes sit decides what has to move: label them first"
        return Plan(unknown=problem.unknown, notes=(note,), before=tolerances(layout, demands))
    assignment, exact = problem.solve()
    return _proven(problem, assignment, exact=exact)


def meets(layout: Layout, demands: Iterable[Demand]) -> bool:
    """Whether every component certainly meets every demand, whatever the missing labels are."""
    places, known = Places(layout), layout.by_name()
    for demand in demands:
        for group, nodes in _members(layout).items():
            found = spreading.spread(layout, [known[node] for node in nodes], demand.level, places)
            if not demand.met(group, found.n, found.hi):
                return False
    return True


def tolerances(layout: Layout, demands: Iterable[Demand]) -> dict[str, int]:
    """How many domains of each demanded level may fail, for certain."""
    reports = {report.level: report.tolerance for report in survivability.survey(layout)}
    return {demand.level: reports.get(demand.level, 0) for demand in demands}


def planned(layout: Layout, found: Plan) -> Layout:
    """The layout once the plan is carried out, for the audit to judge again."""
    moved, known = {move.node: move for move in found.moves}, layout.by_name()
    settle = _Settling(layout)
    components = {name: list(members) for name, members in layout.members.items()}
    for component, node in found.starts:
        components[component].append(Member(node))
    added = []
    for move in found.adds:
        for component in move.components:
            components[component].append(Member(move.node))
        peers = [known[m.node] for m in layout.members[move.components[0]] if m.node in known]
        added.append(msgspec.structs.replace(settle(peers[0], move), name=move.node, components=move.components))
    return msgspec.structs.replace(
        layout,
        nodes=(*(settle(node, moved.get(node.name)) for node in layout.nodes), *added),
        external=tuple(settle(node, moved.get(node.name)) for node in layout.external),
        members={
            name: tuple(Member(m.node, m.healthy or m.node in moved) for m in members)
            for name, members in components.items()
        },
    )


class _Settling:
    """
    Puts nodes where a plan wants them, labels included; other sources are taken to agree with the labels again.

    Who stays keeps what was concluded from neighbours, even if these leave.
    """

    def __init__(self, layout: Layout) -> None:
        self._places = Places(layout)
        self._resident: dict[tuple[str, str], AuditNode] = {}
        for node in layout.by_name().values():
            for level, domain in zip(LEVELS, self._places.of(node.name), strict=True):
                if domain and node.at(level):
                    self._resident.setdefault((level, domain), node)

    def __call__(self, node: AuditNode, move: Move | None) -> AuditNode:
        if move is None:
            return msgspec.structs.replace(node, domains=self._known(node))
        domains = self._domains(node, move)
        labels = {key: domains[level] or "" for level, key in node.keys.items() if domains.get(level)}
        return msgspec.structs.replace(
            node, domains=domains, labels={**node.labels, **labels}, second=(), vacuous="", ready=True
        )

    def _known(self, node: AuditNode) -> dict[str, str | None]:
        """The node's domains as labels would say them, those included that only its neighbours tell."""
        found = dict(node.domains)
        for level, domain in zip(LEVELS, self._places.of(node.name), strict=True):
            if domain and not found.get(level):
                found[level] = self._resident[level, domain].at(level)
        return found

    def _domains(self, node: AuditNode, move: Move) -> dict[str, str | None]:
        """What the plan says; around that, what is known of its neighbours there, or else where it was."""
        there = [level for level in LEVELS if level in move.target and level not in move.new]
        neighbour = self._resident[there[0], move.target[there[0]]] if there else node
        smallest = LEVELS.index(there[0]) if there else 1 + max(map(LEVELS.index, move.target), default=-1)
        known = self._known(neighbour)
        around = {level: known.get(level) for level in LEVELS[smallest:]}
        return {**dict.fromkeys(LEVELS), **move.target, **around}


def _members(layout: Layout) -> dict[str, list[str]]:
    """The node of each member by component, and the control-plane nodes as a group of their own."""
    known = layout.by_name()
    found = {name: [m.node for m in members if m.node in known] for name, members in layout.members.items()}
    if layout.control_plane:
        found[NODES] = [node.name for node in layout.control_plane]
    return {name: nodes for name, nodes in found.items() if nodes}


def _of_a_full_node(layout: Layout) -> tuple[str, ...]:
    """The components that a control-plane node like the others would run: all but an etcd that lives elsewhere."""
    inside = {node.name for node in layout.control_plane}
    return tuple(sorted(name for name, members in layout.members.items() if any(m.node in inside for m in members)))


# Searching


class _Problem:
    """Who may go where. `spot_of` has no entry for nodes that are still to be made."""

    def __init__(
        self, layout: Layout, demands: Sequence[Demand], usable: frozenset[str] | None, keep: frozenset[str]
    ) -> None:
        self.layout, self.demands = layout, demands
        self.placing = [demand for demand in demands if demand.rule != TWICE]
        self.levels = tuple(level for level in LEVELS if any(demand.level == level for demand in self.placing))
        spots = self._spots()
        self.members = _members(layout)
        nodes = sorted({node for nodes in self.members.values() for node in nodes})
        self.unknown = tuple(node for node in nodes if node not in spots)
        self.spot_of = {node: spots[node] for node in nodes if node in spots}
        self.crowd = Counter(spots[node.name] for node in layout.workers if node.name in spots)
        free = sorted(
            {spot for spot in spots.values() if usable is None or usable.issuperset(spot[:1])}, key=self._crowding
        )
        occupied = set(self.spot_of.values())
        self.occupied = [spot for spot in free if spot in occupied]
        self.empty = [spot for spot in free if spot not in occupied]
        self.rank = {node: i for i, node in enumerate(self._by_preference(nodes, keep))}
        self.starts: list[tuple[str, str]] = []
        self.new_nodes: dict[str, tuple[str, ...]] = {}
        if not self.unknown:
            self._fill_up()

    def _crowding(self, spot: Spot) -> tuple[int, Spot]:
        return self.crowd[spot], spot

    def _spots(self) -> dict[str, Spot]:
        places, positions = Places(self.layout), [LEVELS.index(level) for level in self.levels]
        found = {}
        for name in self.layout.by_name():
            spot = tuple(places.of(name)[position] or "" for position in positions)
            if all(spot):
                found[name] = spot
        return found

    def _by_preference(self, nodes: Sequence[str], keep: frozenset[str]) -> list[str]:
        """Who had better move first: those that do not work, then the youngest; at last those to keep."""
        known = self.layout.by_name()
        youngest = sorted(nodes, key=lambda node: known[node].created, reverse=True)
        return sorted(youngest, key=lambda n: (n in keep, known[n].ready and not known[n].unschedulable))

    def _fill_up(self) -> None:
        """Enough members for every demand: first on nodes that lack the component, then on new nodes."""
        inside = [node.name for node in self.layout.control_plane]
        full = _of_a_full_node(self.layout)
        missing = 0
        for group in sorted(self.members):
            if group in full:
                self._start(group, [node for node in inside if node not in self.members[group]])
            short = max(demand.least(group) for demand in self.demands) - len(self.members[group])
            if group in full or group == NODES:
                missing = max(missing, short)
            else:  # it lives on nodes of its own
                self.new_nodes.update({f"new-{group}-{i + 1}": (group,) for i in range(short)})
        if missing and ETCD in full and (len(self.members[ETCD]) + missing) % 2 == 0:
            missing += 1  # an even number of stacked members is refused, and would gain nothing
        self.new_nodes.update({f"new-control-plane-{i + 1}": full for i in range(missing)})
        for node, components in self.new_nodes.items():
            for group in (*components, NODES) if components == full else components:
                self.members.setdefault(group, []).append(node)

    def _start(self, group: str, lacking: list[str]) -> None:
        """Start a component on nodes that lack it while that may help; of etcd no more members than it takes."""
        nodes = self.members[group]
        least = max(demand.least(group) for demand in self.demands)
        while lacking and (len(nodes) < least or (group != ETCD and not self._group_met(group, self.spot_of))):
            taken = Counter(domain for node in nodes for domain in self.spot_of[node])
            chosen = min(lacking, key=lambda node: (*(taken[domain] for domain in self.spot_of[node][::-1]), node))
            lacking.remove(chosen)
            nodes.append(chosen)
            self.starts.append((group, chosen))

    def solve(self) -> tuple[dict[str, Spot], bool]:
        """Where every moved or new node goes; False with a plan that may not be the shortest."""
        tries = 0
        for n_moves in range(self._fewest(), len(self.spot_of) + 1):
            best: tuple[tuple[object, ...], dict[str, Spot]] | None = None
            for movers in self._movers(n_moves):
                for assignment in self._assignments([*self.new_nodes, *movers]):
                    tries += 1
                    if tries > MOST_TRIES:
                        return best[1] if best else self._step_by_step(), False
                    if self.met(assignment):
                        cost = self._cost(assignment)
                        if best is None or cost < best[0]:
                            best = cost, assignment
            if best is not None:
                return best[1], True
        return self._step_by_step(), False

    def met(self, assignment: Mapping[str, Spot]) -> bool:
        where = {**self.spot_of, **assignment}
        return all(self._group_met(group, where) for group in self.members)

    def _group_met(self, group: str, where: Mapping[str, Spot]) -> bool:
        nodes = self.members[group]
        for demand in self.placing:
            position = self.levels.index(demand.level)
            fullest = max(Counter(where[node][position] for node in nodes).values())
            if not demand.met(group, len(nodes), fullest):
                return False
        return True

    def _fewest(self) -> int:
        """No plan has fewer moves: what stands above the cap has to go."""
        return max(self._excesses(self.spot_of), default=0)

    def _excesses(self, where: Mapping[str, Spot]) -> Iterator[int]:
        for demand in self.placing:
            position = self.levels.index(demand.level)
            for group, nodes in self.members.items():
                counts = Counter(where[node][position] for node in nodes if node in where)
                cap = demand.cap(group, len(nodes))
                yield sum(max(count - cap, 0) for count in counts.values())

    def _movers(self, n: int) -> Iterator[list[str]]:
        """Every choice of so many nodes; of nodes alike in place and components, those that had better move."""
        alike: dict[object, list[str]] = {}
        for node in sorted(self.spot_of, key=self.rank.__getitem__):
            parts = tuple(group for group, nodes in sorted(self.members.items()) if node in nodes)
            alike.setdefault((self.spot_of[node], parts), []).append(node)
        classes = list(alike.values())
        for counts in itertools.product(*(range(min(len(nodes), n) + 1) for nodes in classes)):
            if sum(counts) == n:
                yield [node for nodes, count in zip(classes, counts, strict=True) for node in nodes[:count]]

    def _assignments(self, nodes: Sequence[str], opened: tuple[Spot, ...] = ()) -> Iterator[dict[str, Spot]]:
        """Every way to send the nodes elsewhere: to spots in use, to those opened on the way, or to one more."""
        if not nodes:
            yield {}
            return
        node, *rest = nodes
        for spot in self._choices(node, opened):
            further = opened if spot in self.occupied or spot in opened else (*opened, spot)
            for others in self._assignments(rest, further):
                yield {node: spot, **others}

    def _choices(self, node: str, opened: Sequence[Spot]) -> Iterator[Spot]:
        """Empty spots of one larger domain are all alike, so only the next of them is offered, or else a new one."""
        here = self.spot_of.get(node)
        yield from (spot for spot in (*self.occupied, *opened) if spot != here)
        seen = [*self.spot_of.values(), *self.empty, *opened]
        for depth in range(1, len(self.levels) + 1):
            fresh = tuple(_new_name(level, {spot[i] for spot in opened}) for i, level in enumerate(self.levels[:depth]))
            for above in sorted({spot[depth:] for spot in seen}):
                spare = (spot for spot in self.empty if depth == 1 and spot[1:] == above and spot not in opened)
                yield next(spare, fresh + above)

    def _cost(self, assignment: Mapping[str, Spot]) -> tuple[object, ...]:
        where = {**self.spot_of, **assignment}
        new = [len({spot[i] for spot in assignment.values() if is_new(spot[i])}) for i in range(len(self.levels))]
        # Fewer new sites before fewer new zones before fewer new machines; then the more even placement.
        uneven = [sum(n * n for n in Counter(spot[i] for spot in where.values()).values()) for i in range(len(new))]
        ranks = sorted(self.rank.get(node, -1) for node in assignment)
        crowd = sum(self.crowd[spot] for spot in assignment.values())
        return sum(new), new[::-1], uneven[::-1], ranks, crowd, sorted(assignment.items())

    def _step_by_step(self) -> dict[str, Spot]:
        """One best move after another. A new place takes from an overfull domain and overfills none, so it ends."""
        found: dict[str, Spot] = {}
        waiting = list(self.new_nodes)
        while waiting or not self.met(found):
            opened = tuple(dict.fromkeys(spot for spot in found.values() if spot not in self.occupied))
            movers = waiting[:1] or sorted(self.spot_of.keys() - found.keys())
            tries = [{**found, node: spot} for node in movers for spot in self._choices(node, opened)]
            if not tries:
                break
            found = min(tries, key=lambda t: (sum(self._excesses({**self.spot_of, **t})), self._cost(t)))
            waiting = waiting[1:]
        return found


def _new_name(level: str, taken: Iterable[str]) -> str:
    """A name that no label can have: it holds spaces."""
    return f"new {level} {1 + sum(map(is_new, taken))}"


def is_new(domain: str) -> bool:
    return domain.startswith("new ")


# Proving and ordering


def _proven(problem: _Problem, assignment: Mapping[str, Spot], *, exact: bool) -> Plan:
    """The plan in a safe order, judged on the layout that it leads to."""
    moves = {node: _move(problem, node, spot) for node, spot in assignment.items()}
    adds = _in_joining_order([moves[node] for node in problem.new_nodes], problem)
    ordered, safe = _in_safe_order([moves[node] for node in assignment if node not in problem.new_nodes], problem)
    further = {
        level: len({spot[i] for spot in assignment.values() if is_new(spot[i])})
        for i, level in enumerate(problem.levels)
    }
    draft = Plan(starts=tuple(problem.starts), adds=adds, moves=ordered, further=further, exact=exact, safe=safe)
    after = planned(problem.layout, draft)
    notes = [] if safe else ["no order keeps the majority all the way: mend the members that are down first"]
    if len(problem.members.get(ETCD, ())) % 2 == 0 and ETCD in problem.members:
        notes.append("an even number of etcd members tolerates no more than one fewer would")
    passes = meets(after, problem.demands)
    if not passes:
        notes.append("labels contradict each other, as a machine in two zones does: put these right first")
    return msgspec.structs.replace(
        draft,
        passes=passes,
        notes=tuple(notes),
        before=tolerances(problem.layout, problem.demands),
        after=tolerances(after, problem.demands),
    )


def _move(problem: _Problem, node: str, spot: Spot) -> Move:
    source = problem.spot_of.get(node, ())
    target = dict(zip(problem.levels, spot, strict=True))
    new = tuple(level for level, domain in target.items() if is_new(domain))
    components = problem.new_nodes.get(node, ())
    return Move(node, dict(zip(problem.levels, source, strict=False)), target, new, components=components)


def _in_joining_order(adds: Sequence[Move], problem: _Problem) -> tuple[Move, ...]:
    """New members one by one; where the majority could not wait for one, it joins without a vote at first."""
    groups = {group.name: group for group in survivability.components(problem.layout.members)}
    ordered = []
    for move in adds:
        joined = [groups[name] for name in move.components if groups[name].quorum]
        waits = all(group.n_healthy >= survivability.majority(len(group.members) + 1) for group in joined)
        ordered.append(msgspec.structs.replace(move, how=ADD_FIRST if waits else LEARNER))
        for name in move.components:
            members = (*groups[name].members, Member(move.node))
            groups[name] = msgspec.structs.replace(groups[name], members=members)
    return tuple(ordered)


def _in_safe_order(moves: Sequence[Move], problem: _Problem) -> tuple[tuple[Move, ...], bool]:
    """
    One after another, those that are down first: replacing one of these only adds survivors.

    Whoever works is replaced one for one, so the number of survivors stays and the order among them is free.
    """
    joined = {name: [*members] for name, members in problem.layout.members.items()}
    for node, components in problem.new_nodes.items():  # they came first
        for component in components:
            joined[component].append(Member(node))
    groups = survivability.components(joined)
    down = {member.node for group in groups for member in group.members if not member.healthy}
    waiting, ordered, safe = sorted(moves, key=lambda m: (m.node not in down, problem.rank[m.node])), [], True
    for move in waiting:
        how = how_to_replace(move.node, groups)
        safe = safe and how != NOT_YET
        ordered.append(msgspec.structs.replace(move, how=how))
        groups = [
            msgspec.structs.replace(
                group, members=tuple(Member(m.node, m.healthy or m.node == move.node) for m in group.members)
            )
            for group in groups
        ]
    return tuple(ordered), safe


def how_to_replace(node: str, groups: Iterable[survivability.Group]) -> str:
    """
    Whether the successor may join before the node leaves, else whether the node may leave first, else not yet.

    A joining member counts for the majority before it works. A member that is down leaves first: that costs nothing.
    """
    hit = [group for group in groups if any(member.node == node for member in group.members)]
    down = any(not member.healthy for group in hit for member in group.members if member.node == node)
    larger = [survivability.majority(len(g.members) + 1) if g.quorum else g.need for g in hit]
    may_add = all(group.n_healthy >= need for group, need in zip(hit, larger, strict=True))
    may_remove = all(group.survivors(frozenset({node})) >= group.need for group in hit)
    if may_remove and (down or not may_add):
        return REMOVE_FIRST
    return ADD_FIRST if may_add else NOT_YET
