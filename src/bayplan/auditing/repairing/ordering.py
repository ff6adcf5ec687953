"""An order of moves that never costs the majority. Knows nothing of where nodes go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bayplan.auditing import survivability
from bayplan.auditing.layout import ComponentInstance
from bayplan.auditing.repairing.plans import ADD_FIRST, LEARNER, NOT_YET, REMOVE_FIRST, NodeMove
from bayplan.auditing.repairing.searching import Problem


def in_joining_order(adds: Sequence[NodeMove], problem: Problem) -> tuple[NodeMove, ...]:
    """New members one by one; where the majority could not wait for one, it joins without a vote at first."""
    groups = {group.name: group for group in survivability.components(problem.layout.members)}
    ordered = []
    for move in adds:
        joined = [groups[name] for name in move.components if groups[name].quorum]
        waits = all(group.n_healthy >= survivability.majority(len(group.members) + 1) for group in joined)
        ordered.append(msgspec.structs.replace(move, how=ADD_FIRST if waits else LEARNER))
        for name in move.components:
            members = (*groups[name].members, ComponentInstance(move.node))
            groups[name] = msgspec.structs.replace(groups[name], members=members)
    return tuple(ordered)


def in_safe_order(moves: Sequence[NodeMove], problem: Problem) -> tuple[tuple[NodeMove, ...], bool]:
    """
    One after another, those that are down first: replacing one of these only adds survivors.

    Whoever works is replaced one for one, so the number of survivors stays and the order among them is free.
    """
    joined = {name: [*members] for name, members in problem.layout.members.items()}
    for node, components in problem.new_nodes.items():  # they came first
        for component in components:
            joined[component].append(ComponentInstance(node))
    groups = survivability.components(joined)
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
