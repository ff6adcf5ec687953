"""Nodes of each role stand in so many zones: three for the control plane, two for workers and infrastructure."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.layout import ZONE, AuditNode
from bayplan.auditing.outcomes import (
    BROKEN,
    HOLDS,
    NOT_APPLICABLE,
    OPEN,
    Check,
    CheckOutcome,
    Facts,
    hidden,
    layout_text,
)

INFRA = "node-role.kubernetes.io/infra"


def _at_least(n_zones: int, what: str, choose: Callable[[Facts], list[AuditNode]]) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        nodes = choose(facts)
        if not nodes:
            return CheckOutcome(NOT_APPLICABLE, f"no {what}") if what != "control-plane nodes" else hidden()
        found = facts.spread(nodes, ZONE)
        state = HOLDS if found.fewest >= n_zones else BROKEN if found.most < n_zones else OPEN
        return CheckOutcome(state, f"{what}: {layout_text(found)}", found.unknown, found.evidence)

    return run


def _infra(facts: Facts) -> list[AuditNode]:
    """By their label, which OpenShift and others set on nodes for routers, registries and monitoring."""
    return [node for node in facts.layout.nodes if INFRA in node.labels]


CHECKS = (
    Check(
        "bsi-cp-three-zones",
        "Control plane over three zones",
        "BSI APP.4.4.A19",
        _at_least(3, "control-plane nodes", lambda facts: list(facts.layout.control_plane)),
    ),
    Check(
        "bsi-worker-two-zones",
        "Workers over two zones",
        "BSI APP.4.4.A19",
        _at_least(2, "workers", lambda facts: list(facts.layout.workers)),
    ),
    Check(
        "bsi-infra-two-zones",
        "Infrastructure nodes over two zones",
        "BSI APP.4.4.A19",
        _at_least(2, "infrastructure nodes", _infra),
    ),
)
