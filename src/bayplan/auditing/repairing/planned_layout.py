"""The layout that a plan leads to, for the audit to judge again. Knows nothing of how the plan was found."""

from __future__ import annotations

import msgspec

from bayplan.auditing.layout import LEVELS, AuditNode, ComponentInstance, Layout
from bayplan.auditing.repairing.plans import NodeMove, RepairPlan
from bayplan.auditing.spread import Places


def planned(layout: Layout, found: RepairPlan) -> Layout:
    """The layout once the plan is carried out, for the audit to judge again."""
    moved, known = {move.node: move for move in found.moves}, layout.by_name()
    settle = _Settling(layout)
    components = {name: list(members) for name, members in layout.members.items()}
    for component, node in found.starts:
        components[component].append(ComponentInstance(node))
    added = []
    for move in found.adds:
        for component in move.components:
            components[component].append(ComponentInstance(move.node))
        peers = [known[m.node] for m in layout.members[move.components[0]] if m.node in known]
        added.append(msgspec.structs.replace(settle(peers[0], move), name=move.node, components=move.components))
    return msgspec.structs.replace(
        layout,
        nodes=(*(settle(node, moved.get(node.name)) for node in layout.nodes), *added),
        external=tuple(settle(node, moved.get(node.name)) for node in layout.external),
        members={
            name: tuple(ComponentInstance(m.node, m.healthy or m.node in moved) for m in members)
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

    def __call__(self, node: AuditNode, move: NodeMove | None) -> AuditNode:
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

    def _domains(self, node: AuditNode, move: NodeMove) -> dict[str, str | None]:
        """What the plan says; around that, what is known of its neighbours there, or else where it was."""
        there = [level for level in LEVELS if level in move.target and level not in move.new]
        neighbour = self._resident[there[0], move.target[there[0]]] if there else node
        smallest = LEVELS.index(there[0]) if there else 1 + max(map(LEVELS.index, move.target), default=-1)
        known = self._known(neighbour)
        around = {level: known.get(level) for level in LEVELS[smallest:]}
        return {**dict.fromkeys(LEVELS), **move.target, **around}
