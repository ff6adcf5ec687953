"""
The repair plan with the fewest moves after which a control plane meets its demands, in a safe order.

Assignments of nodes to spots are tried, those with the fewest moves first; the plan is then checked on the layout it
leads to. Knows nothing of profiles: the caller gives the demands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from bayplan.auditing import survivability
from bayplan.auditing.layout import ETCD, LEVELS, ComponentInstance, Layout
from bayplan.auditing.repairing import plans
from bayplan.auditing.repairing.plans import (
    ADD_FIRST,
    LEARNER,
    NODES,
    NOT_YET,
    REMOVE_FIRST,
    TWICE,
    WORKERS,
    NodeMove,
    RepairPlan,
    Spot,
    SpreadDemand,
    is_new,
    meets,
    members_of,
    new_name,
    tolerances,
)
from bayplan.auditing.spread import Locations

MAX_TRIED_ASSIGNMENTS = 200_000  # after which the search returns a good plan instead of the best
HOSTED = "the control plane runs as pods of another cluster: spread them there, by constraints over its zones and hosts"


def plan_repair(
    layout: Layout,
    demands: Sequence[SpreadDemand],
    *,
    usable: frozenset[str] | None = None,
    keep: frozenset[str] = frozenset(),
) -> RepairPlan:
    """
    The plan with the fewest moves, among those the one with the fewest new machines, then the most even one.

    `usable` are the domains of the smallest level that may receive a node, by default all known ones. `keep` are nodes
    that should not move if possible: the holder of a lease or of a local volume.
    """
    if not members_of(layout) or layout.is_hosted:
        note = HOSTED if layout.is_hosted else "no control plane is visible: ask its operator"
        return _plan_for_workers(layout, demands, note, usable=usable, keep=keep)
    if meets(layout, demands):
        return RepairPlan(passes=True, before=tolerances(layout, demands), after=tolerances(layout, demands))
    problem = RepairProblem(layout, demands, usable, keep)
    if problem.unknown:
        note = "where these nodes are decides what has to move: label them first"
        return RepairPlan(unknown=problem.unknown, notes=(note,), before=tolerances(layout, demands))
    assignment, exact = problem.solve()
    return _checked_plan(problem, assignment, exact=exact)


def _plan_for_workers(
    layout: Layout,
    demands: Sequence[SpreadDemand],
    note: str,
    *,
    usable: frozenset[str] | None,
    keep: frozenset[str],
) -> RepairPlan:
    """The plan for the workers of a cluster whose control plane cannot be planned here."""
    of_workers = [demand for demand in demands if demand.of_workers]
    met = meets(layout, demands) if layout.is_hosted else len(of_workers) == len(demands) and meets(layout, demands)
    if meets(layout, of_workers):
        return RepairPlan(passes=met, notes=(note,))
    problem = RepairProblem(msgspec.structs.replace(layout, members={}, external=()), of_workers, usable, keep)
    if problem.unknown:
        return RepairPlan(unknown=problem.unknown, notes=(note,))
    assignment, exact = problem.solve()
    found = _checked_plan(problem, assignment, exact=exact)
    passes = found.passes and (len(of_workers) == len(demands) or met)
    return msgspec.structs.replace(found, passes=passes, notes=(note, *found.notes))


def _checked_plan(problem: RepairProblem, assignment: Mapping[str, Spot], *, exact: bool) -> RepairPlan:
    """The plan in a safe order, checked on the layout that it leads to."""
    moves = {node: _node_move(problem, node, spot) for node, spot in assignment.items()}
    adds = in_joining_order([moves[node] for node in problem.new_nodes], problem)
    ordered, safe = in_safe_order([moves[node] for node in assignment if node not in problem.new_nodes], problem)
    further = {
        level: len({spot[i] for spot in assignment.values() if is_new(spot[i])})
        for i, level in enumerate(problem.levels)
    }
    draft = RepairPlan(starts=tuple(problem.starts), adds=adds, moves=ordered, further=further, exact=exact, safe=safe)
    after = plans.layout_after(problem.layout, draft)
    notes = [] if safe else ["no order keeps the majority throughout: repair the members that are down first"]
    if len(problem.members.get(ETCD, ())) % 2 == 0 and ETCD in problem.members:
        notes.append("an even number of etcd members tolerates no more than one fewer would")
    passes = meets(after, problem.demands)
    if not passes:
        notes.append("labels contradict each other, such as a machine in two zones: correct them first")
    return msgspec.structs.replace(
        draft,
        passes=passes,
        notes=tuple(notes),
        before=tolerances(problem.layout, problem.demands),
        after=tolerances(after, problem.demands),
    )


def _node_move(problem: RepairProblem, node: str, spot: Spot) -> NodeMove:
    source = problem.spot_of.get(node, ())
    target = dict(zip(problem.levels, spot, strict=True))
    new = tuple(level for level, domain in target.items() if is_new(domain))
    components = problem.new_nodes.get(node, ())
    return NodeMove(node, dict(zip(problem.levels, source, strict=False)), target, new, components=components)


# The fewest moves


class RepairProblem:
    """The nodes that may move, and the spots for them. `spot_of` has no entry for nodes that do not exist yet."""

    def __init__(
        self, layout: Layout, demands: Sequence[SpreadDemand], usable: frozenset[str] | None, keep: frozenset[str]
    ) -> None:
        self.layout, self.demands = layout, demands
        unmet = [demand for demand in demands if demand.of_workers and not meets(layout, [demand])]
        self.placing = [d for d in demands if d.rule != TWICE and (not d.of_workers or d in unmet)]
        self.levels = tuple(level for level in LEVELS if any(demand.level == level for demand in self.placing))
        located = self._located()
        spots = {name: spot for name, spot in located.items() if all(spot)}
        self.partly = [spot for spot in located.values() if not all(spot)]
        self.members = members_of(layout, unmet)
        nodes = sorted({node for nodes in self.members.values() for node in nodes})
        self.unknown = tuple(node for node in nodes if node not in spots)
        self.spot_of = {node: spots[node] for node in nodes if node in spots}
        self.crowd = Counter(spots[node.name] for node in layout.workers if node.name in spots)
        free = sorted(
            {spot for spot in spots.values() if usable is None or usable.issuperset(spot[:1])},
            key=lambda spot: (self.crowd[spot], spot),
        )
        occupied = set(self.spot_of.values())
        self.occupied = [spot for spot in free if spot in occupied]
        self.empty = [spot for spot in free if spot not in occupied]
        self.rank = {node: i for i, node in enumerate(self._by_preference(nodes, keep))}
        self.starts: list[tuple[str, str]] = []
        self.new_nodes: dict[str, tuple[str, ...]] = {}
        if not self.unknown:
            self._fill_up()

    def _located(self) -> dict[str, Spot]:
        """The spot of every node, with nothing for unknown domains."""
        places, positions = Locations(self.layout), [LEVELS.index(level) for level in self.levels]
        return {
            name: tuple(places.location_of(name)[position] or "" for position in positions)
            for name in self.layout.by_name()
        }

    def _by_preference(self, nodes: Sequence[str], keep: frozenset[str]) -> list[str]:
        """The order in which to prefer nodes for moves: not working, then youngest first; nodes to keep last."""
        known = self.layout.by_name()
        youngest = sorted(nodes, key=lambda node: known[node].created, reverse=True)
        return sorted(youngest, key=lambda n: (n in keep, known[n].ready and not known[n].unschedulable))

    def _fill_up(self) -> None:
        """Add members until every demand can be met: first on nodes that lack the component, then on new nodes."""
        inside = [node.name for node in self.layout.control_plane]
        demands = [demand for demand in self.demands if not demand.of_workers]
        full = _components_of_a_full_node(self.layout)
        missing = 0
        for group in sorted(self.members.keys() - {WORKERS}) if demands else ():
            if group in full:
                self._start(group, [node for node in inside if node not in self.members[group]])
            short = max(demand.least(group) for demand in demands) - len(self.members[group])
            if group in full or group == NODES:
                missing = max(missing, short)
            else:  # it runs on nodes of its own
                self.new_nodes.update({f"new-{group}-{i + 1}": (group,) for i in range(short)})
        if missing and ETCD in full and (len(self.members[ETCD]) + missing) % 2 == 0:
            missing += 1  # an even number of stacked members is rejected, and would tolerate no more
        self.new_nodes.update({f"new-control-plane-{i + 1}": full for i in range(missing)})
        for node, components in self.new_nodes.items():
            for group in (*components, NODES) if components == full else components:
                self.members.setdefault(group, []).append(node)

    def _start(self, group: str, lacking: list[str]) -> None:
        """Start a component on nodes that lack it while that may help; of etcd no more members than necessary."""
        nodes = self.members[group]
        least = max(demand.least(group) for demand in self.demands if demand.concerns(group))
        while lacking and (len(nodes) < least or (group != ETCD and not self._group_met(group, self.spot_of))):
            taken = Counter(domain for node in nodes for domain in self.spot_of[node])
            chosen = min(lacking, key=lambda node: (*(taken[domain] for domain in self.spot_of[node][::-1]), node))
            lacking.remove(chosen)
            nodes.append(chosen)
            self.starts.append((group, chosen))

    def solve(self) -> tuple[dict[str, Spot], bool]:
        """The spot of every moved or new node, and whether no shorter plan exists."""
        tries = 0
        for n_moves in range(self._fewest(), len(self.spot_of) + 1):
            best: tuple[tuple[object, ...], dict[str, Spot]] | None = None
            for movers in self._movers(n_moves):
                for assignment in self._assignments([*self.new_nodes, *movers]):
                    tries += 1
                    if tries > MAX_TRIED_ASSIGNMENTS:
                        return best[1] if best else self._solve_greedily(), False
                    if self.met(assignment):
                        cost = self._cost(assignment)
                        if best is None or cost < best[0]:
                            best = cost, assignment
            if best is not None:
                return best[1], True
        return self._solve_greedily(), False

    def met(self, assignment: Mapping[str, Spot]) -> bool:
        where = {**self.spot_of, **assignment}
        return all(self._group_met(group, where) for group in self.members)

    def _group_met(self, group: str, where: Mapping[str, Spot]) -> bool:
        nodes = self.members[group]
        for demand in self.placing:
            if not demand.concerns(group):
                continue
            position = self.levels.index(demand.level)
            fullest = max(Counter(where[node][position] for node in nodes).values())
            if not demand.met(group, len(nodes), fullest):
                return False
        return True

    def _fewest(self) -> int:
        """A lower bound of the number of moves: the members above the cap have to move."""
        return max(self._excesses(self.spot_of), default=0)

    def _excesses(self, where: Mapping[str, Spot]) -> Iterator[int]:
        for demand in self.placing:
            position = self.levels.index(demand.level)
            for group, nodes in self.members.items():
                if not demand.concerns(group):
                    continue
                counts = Counter(where[node][position] for node in nodes if node in where)
                cap = demand.cap(group, len(nodes))
                yield sum(max(count - cap, 0) for count in counts.values())

    def _movers(self, n: int) -> Iterator[list[str]]:
        """Every choice of n nodes; of nodes with equal spot and components, those preferred for moves."""
        alike: dict[object, list[str]] = {}
        for node in sorted(self.spot_of, key=self.rank.__getitem__):
            parts = tuple(group for group, nodes in sorted(self.members.items()) if node in nodes)
            alike.setdefault((self.spot_of[node], parts), []).append(node)
        yield from _chosen(list(alike.values()), n)

    def _assignments(self, nodes: Sequence[str], opened: tuple[Spot, ...] = ()) -> Iterator[dict[str, Spot]]:
        """Every assignment of the nodes to other spots: used ones, those opened before, or one more."""
        if not nodes:
            yield {}
            return
        node, *rest = nodes
        for spot in self._choices(node, opened):
            further = opened if spot in self.occupied or spot in opened else (*opened, spot)
            for others in self._assignments(rest, further):
                yield {node: spot, **others}

    def _choices(self, node: str, opened: Sequence[Spot]) -> Iterator[Spot]:
        """
        Spots for a node. Empty spots of a larger domain are equivalent: one of them, or a new one, is offered.

        A larger domain is also known by a node of which the smaller one is not.
        """
        here = self.spot_of.get(node)
        yield from (spot for spot in (*self.occupied, *opened) if spot != here)
        seen = [*self.spot_of.values(), *self.empty, *opened, *self.partly]
        for depth in range(1, len(self.levels) + 1):
            fresh = tuple(new_name(level, {spot[i] for spot in opened}) for i, level in enumerate(self.levels[:depth]))
            for above in sorted({spot[depth:] for spot in seen if all(spot[depth:])}):
                spare = (spot for spot in self.empty if depth == 1 and spot[1:] == above and spot not in opened)
                yield next(spare, fresh + above)

    def _cost(self, assignment: Mapping[str, Spot]) -> tuple[object, ...]:
        where = {**self.spot_of, **assignment}
        new = [len({spot[i] for spot in assignment.values() if is_new(spot[i])}) for i in range(len(self.levels))]
        # Fewer new sites, then fewer new zones, then fewer new machines; then the more even placement.
        uneven = [sum(n * n for n in Counter(spot[i] for spot in where.values()).values()) for i in range(len(new))]
        ranks = sorted(self.rank.get(node, -1) for node in assignment)
        crowd = sum(self.crowd[spot] for spot in assignment.values())
        return sum(new), new[::-1], uneven[::-1], ranks, crowd, sorted(assignment.items())

    def _solve_greedily(self) -> dict[str, Spot]:
        """The best move, repeated. A new spot relieves an overfull domain and overfills none, so this terminates."""
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


def _chosen(classes: Sequence[list[str]], n: int) -> Iterator[list[str]]:
    """Every choice of n nodes, of each class the first ones."""
    if not classes or n == 0:
        if n == 0:
            yield []
        return
    first, *rest = classes
    for count in range(min(len(first), n) + 1):
        for others in _chosen(rest, n - count):
            yield [*first[:count], *others]


def _components_of_a_full_node(layout: Layout) -> tuple[str, ...]:
    """The components that an additional control-plane node would run: all but an etcd that runs elsewhere."""
    inside = {node.name for node in layout.control_plane}
    return tuple(sorted(name for name, members in layout.members.items() if any(m.node in inside for m in members)))


# A safe order


def in_joining_order(adds: Sequence[NodeMove], problem: RepairProblem) -> tuple[NodeMove, ...]:
    """The order in which new members join; one that the majority could not wait for joins as a learner."""
    groups = {group.name: group for group in survivability.component_groups(problem.layout.members)}
    ordered = []
    for move in adds:
        joined = [groups[name] for name in move.components if groups[name].quorum]
        waits = all(group.n_healthy >= survivability.majority(len(group.members) + 1) for group in joined)
        ordered.append(msgspec.structs.replace(move, how=ADD_FIRST if waits else LEARNER))
        for name in move.components:
            members = (*groups[name].members, ComponentInstance(move.node))
            groups[name] = msgspec.structs.replace(groups[name], members=members)
    return tuple(ordered)


def in_safe_order(moves: Sequence[NodeMove], problem: RepairProblem) -> tuple[tuple[NodeMove, ...], bool]:
    """
    The moves in order, those of nodes that are down first: replacing one of these only adds survivors.

    Working nodes are replaced one for one, so the number of survivors does not change and their order is free.
    """
    joined = {name: [*members] for name, members in problem.layout.members.items()}
    for node, components in problem.new_nodes.items():  # they join first
        for component in components:
            joined[component].append(ComponentInstance(node))
    groups = survivability.component_groups(joined)
    down = {member.node for group in groups for member in group.members if not member.healthy}
    waiting, ordered, safe = sorted(moves, key=lambda m: (m.node not in down, problem.rank[m.node])), [], True
    for move in waiting:
        how = how_to_replace(move.node, groups)
        safe = safe and how != NOT_YET
        ordered.append(msgspec.structs.replace(move, how=how))
        groups = [
            msgspec.structs.replace(
                group, members=tuple(ComponentInstance(m.node, m.healthy or m.node == move.node) for m in group.members)
            )
            for group in groups
        ]
    return tuple(ordered), safe


def how_to_replace(node: str, groups: Iterable[survivability.InstanceGroup]) -> str:
    """
    Add first if the successor may join before the node is removed, else remove first if that is safe, else not yet.

    A joining member counts for the majority before it works. A member that is down is removed first, at no cost.
    """
    hit = [group for group in groups if any(member.node == node for member in group.members)]
    down = any(not member.healthy for group in hit for member in group.members if member.node == node)
    larger = [survivability.majority(len(g.members) + 1) if g.quorum else g.need for g in hit]
    may_add = all(group.n_healthy >= need for group, need in zip(hit, larger, strict=True))
    may_remove = all(group.survivors(frozenset({node})) >= group.need for group in hit)
    if may_remove and (down or not may_add):
        return REMOVE_FIRST
    return ADD_FIRST if may_add else NOT_YET
