"""
The fewest moves after which a control plane meets its demands, in a safe order.

A plan is found by trying assignments, the fewest moves first, and proven on the layout it leads to. Knows nothing of
profiles: the caller says what is demanded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.auditing.layout import ETCD, Layout
from bayplan.auditing.repairing import ordering, planned_layout
from bayplan.auditing.repairing.demands import SpreadDemand, meets, members_of, tolerances
from bayplan.auditing.repairing.plans import NodeMove, RepairPlan, Spot, is_new
from bayplan.auditing.repairing.searching import Problem

HOSTED = "the control plane runs as pods of another cluster: spread them there, by constraints over its zones and hosts"


def plan(
    layout: Layout,
    demands: Sequence[SpreadDemand],
    *,
    usable: frozenset[str] | None = None,
    keep: frozenset[str] = frozenset(),
) -> RepairPlan:
    """
    The plan with the fewest moves, among those the one with the fewest new machines, then the most even one.

    `usable` are the domains of the smallest level that may take a node, all known ones if not given. `keep` are nodes
    that had better stay: the only holder of a lease, of a local volume.
    """
    members = members_of(layout)
    if not members:
        return RepairPlan(notes=("no control plane is visible: ask whoever runs it",))
    if layout.is_hosted:
        return RepairPlan(passes=meets(layout, demands), notes=(HOSTED,))
    if meets(layout, demands):
        return RepairPlan(passes=True, before=tolerances(layout, demands), after=tolerances(layout, demands))
    problem = Problem(layout, demands, usable, keep)
    if problem.unknown:
        note = "where these nodes sit decides what has to move: label them first"
        return RepairPlan(unknown=problem.unknown, notes=(note,), before=tolerances(layout, demands))
    assignment, exact = problem.solve()
    return _proven(problem, assignment, exact=exact)


def _proven(problem: Problem, assignment: Mapping[str, Spot], *, exact: bool) -> RepairPlan:
    """The plan in a safe order, judged on the layout that it leads to."""
    moves = {node: _move(problem, node, spot) for node, spot in assignment.items()}
    adds = ordering.in_joining_order([moves[node] for node in problem.new_nodes], problem)
    ordered, safe = ordering.in_safe_order(
        [moves[node] for node in assignment if node not in problem.new_nodes], problem
    )
    further = {
        level: len({spot[i] for spot in assignment.values() if is_new(spot[i])})
        for i, level in enumerate(problem.levels)
    }
    draft = RepairPlan(starts=tuple(problem.starts), adds=adds, moves=ordered, further=further, exact=exact, safe=safe)
    after = planned_layout.planned(problem.layout, draft)
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


def _move(problem: Problem, node: str, spot: Spot) -> NodeMove:
    source = problem.spot_of.get(node, ())
    target = dict(zip(problem.levels, spot, strict=True))
    new = tuple(level for level, domain in target.items() if is_new(domain))
    components = problem.new_nodes.get(node, ())
    return NodeMove(node, dict(zip(problem.levels, source, strict=False)), target, new, components=components)
