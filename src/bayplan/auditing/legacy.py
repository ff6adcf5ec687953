"""
The verdict of the retired upstream script, in both of its states, weaknesses included.

It mirrors scs_0214_node_distribution_RETIRED/k8s_node_distribution_check.py of SovereignCloudStack/standards.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.auditing.catalogue import HOST_KEY, REGION_KEY, ZONE_KEY
from bayplan.auditing.layout import DECLARED, AuditNode, Layout
from bayplan.auditing.outcomes import BROKEN, HOLDS, CheckOutcome

ID = "node-distribution-check"
_LABEL = "node-role.kubernetes.io/control-plane"


def judge(layout: Layout, state: str) -> CheckOutcome:
    """What the script would have said of the nodes; `state` is `old` or `head`."""
    nodes, old = layout.nodes, state == "old"
    if len(nodes) < 2:
        return CheckOutcome(BROKEN, "fewer than two nodes", tuple(node.name for node in nodes), DECLARED)
    control = [node for node in nodes if _LABEL in node.labels] or list(nodes)
    workers = [node for node in nodes if _LABEL not in node.labels] if len(control) < len(nodes) else []
    keys = (REGION_KEY, ZONE_KEY, HOST_KEY) if old else (REGION_KEY, ZONE_KEY)
    missing = tuple(node.name for node in (*control, *workers) if any(key not in node.labels for key in keys))
    if missing:
        return CheckOutcome(BROKEN, "a label is missing", missing, DECLARED)
    if old and not _differ(control, keys):
        return CheckOutcome(BROKEN, "no label of the control plane varies", tuple(n.name for n in control), DECLARED)
    return CheckOutcome(HOLDS, "the script would have passed it", (), DECLARED)


def _differ(nodes: Sequence[AuditNode], keys: Sequence[str]) -> bool:
    """From large to small, the first label with two values settles it: hosts are never compared once zones differ."""
    return any(len({node.labels[key] for node in nodes}) > 1 for key in keys)
