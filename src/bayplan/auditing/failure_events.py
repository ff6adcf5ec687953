"""What may fail at once: the nodes of a domain of a level, or any other set of nodes that shares something."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.auditing.layout import LEVELS, Layout
from bayplan.auditing.spread import Places

NODE = "node"  # the smallest level: every node is a domain of its own


class FailureEvent(msgspec.Struct, frozen=True):
    """A failure: all nodes of a domain of a level, or any named set of nodes, are gone at once."""

    level: str
    domain: str
    nodes: frozenset[str]


def events(level: str, domain_by_node: Mapping[str, str | None]) -> list[FailureEvent]:
    """One event per domain of a level, or per value of anything nodes share: a power feed, a kernel version."""
    nodes: dict[str, set[str]] = {}
    for node, domain in domain_by_node.items():
        if domain:
            nodes.setdefault(domain, set()).add(node)
    return [FailureEvent(level, domain, frozenset(names)) for domain, names in sorted(nodes.items())]


def label_events(key: str, labels_by_node: Mapping[str, Mapping[str, str]]) -> list[FailureEvent]:
    """One event per value of a node label."""
    return events(key, {node: labels.get(key) for node, labels in labels_by_node.items()})


def level_events(layout: Layout, level: str, places: Places | None = None) -> list[FailureEvent]:
    """The failures of a level, of anything else that nodes share by name, or of a label key, over all nodes."""
    nodes = layout.by_name().values()
    if level == NODE:
        return events(NODE, {node.name: node.name for node in nodes})
    if level in layout.levels:
        return events(level, domains_at(layout, level, places))
    return events(level, {node.name: node.shares.get(level) or node.labels.get(level) for node in nodes})


def domains_at(layout: Layout, level: str, places: Places | None = None) -> dict[str, str | None]:
    """Every node's domain, None where unknown; the same name under two parents is two domains."""
    places, position = places or Places(layout), LEVELS.index(level)
    return {name: places.of(name)[position] for name in layout.by_name()}
