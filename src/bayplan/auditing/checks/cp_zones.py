"""Control-plane nodes span zones."""

from __future__ import annotations

from bayplan.auditing import spread
from bayplan.auditing.layout import ZONE
from bayplan.auditing.outcomes import Check, CheckOutcome, Facts, hidden, layout_text, state_of


def _run(facts: Facts) -> CheckOutcome:
    nodes = facts.layout.control_plane
    if not nodes:
        return hidden()
    found = facts.spread(nodes, ZONE)
    names = found.unknown or tuple(node.name for node in nodes)
    message = f"control-plane nodes: {layout_text(found)}"
    return CheckOutcome(state_of(found.judge(spread.separate)), message, names, found.evidence)


CHECKS = (Check("scs-0214-cp-zones", "Control plane over several zones", "SCS-0214-v2, SHOULD", _run),)
