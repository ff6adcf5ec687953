"""The control plane and the workers span zones; in older texts, the control plane stands in every one of them."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import DECLARED, HOST, ZONE, Layout
from bayplan.auditing.outcomes import (
    BROKEN,
    HOLDS,
    NOT_APPLICABLE,
    OPEN,
    Check,
    Facts,
    Outcome,
    hidden,
    layout_text,
    state_of,
)


def _control_plane(facts: Facts) -> Outcome:
    nodes = facts.layout.control_plane
    if not nodes:
        return hidden()
    found = facts.spread(nodes, ZONE)
    names = found.unknown or tuple(node.name for node in nodes)
    message = f"control-plane nodes: {layout_text(found)}"
    return Outcome(state_of(found.judge(spread.separate)), message, names, found.evidence)


def _workers(facts: Facts) -> Outcome:
    """In a single zone, hosts are asked for instead."""
    nodes = facts.layout.workers
    if len(nodes) < 2:
        return Outcome(NOT_APPLICABLE, f"{len(nodes)} worker{'s'[: len(nodes) != 1]}: nothing to spread")
    found = facts.spread(nodes, ZONE)
    holds = found.judge(spread.separate)
    if holds is False:
        found = facts.spread(nodes, HOST)
        holds = found.judge(spread.separate)
    names = () if holds else found.unknown or tuple(node.name for node in nodes)
    return Outcome(state_of(holds), f"workers: {layout_text(found)}", names, found.evidence)


def _zones(layout: Layout) -> set[str]:
    return {zone for node in layout.nodes if (zone := node.at(ZONE))}


def _each_zone(facts: Facts) -> Outcome:
    nodes = facts.layout.control_plane
    if not nodes:
        return hidden()
    used, held = _zones(facts.layout), {node.at(ZONE) for node in nodes}
    bare = sorted(used - held)
    if not bare:
        return Outcome(HOLDS, f"the control plane is in all {len(used)} zones in use", (), DECLARED)
    message = f"no control-plane node in {', '.join(bare)}"
    return Outcome(OPEN if None in held else BROKEN, message, (), DECLARED)


def _at_least(n_zones: int, *, workers: bool) -> Callable[[Facts], Outcome]:
    def run(facts: Facts) -> Outcome:
        nodes = facts.layout.workers if workers else facts.layout.control_plane
        what = "workers" if workers else "control-plane nodes"
        if not nodes:
            return Outcome(NOT_APPLICABLE, "no workers") if workers else hidden()
        found = facts.spread(nodes, ZONE)
        state = HOLDS if found.fewest >= n_zones else BROKEN if found.most < n_zones else OPEN
        return Outcome(state, f"{what}: {layout_text(found)}", found.unknown, found.evidence)

    return run


def _three_nodes(facts: Facts) -> Outcome:
    n = len(facts.layout.control_plane)
    names = tuple(node.name for node in facts.layout.control_plane)
    return Outcome(HOLDS if n >= 3 else BROKEN, f"{n} control-plane nodes", names, DECLARED) if n else hidden()


CHECKS = (
    Check("scs-0214-cp-zones", "Control plane over several zones", "SCS-0214-v2, SHOULD", _control_plane),
    Check("scs-0214-worker-spread", "Workers over several zones or hosts", "SCS-0214-v2, RECOMMENDED", _workers),
    Check("scs-0214-cp-each-zone", "Control plane in each zone in use", "SCS-0214-v1 and v2 draft, MUST", _each_zone),
    Check("bsi-cp-three-nodes", "Three control-plane nodes", "BSI APP.4.4.A19", _three_nodes),
    Check("bsi-cp-three-zones", "Control plane over three zones", "BSI APP.4.4.A19", _at_least(3, workers=False)),
    Check("bsi-worker-two-zones", "Workers over two zones", "BSI APP.4.4.A19", _at_least(2, workers=True)),
)
