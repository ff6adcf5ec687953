"""The control plane stands in every zone in use: what older texts asked for."""

from __future__ import annotations

from bayplan.auditing.layout import DECLARED, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, OPEN, Check, CheckOutcome, Facts, hidden


def _run(facts: Facts) -> CheckOutcome:
    nodes = facts.layout.control_plane
    if not nodes:
        return hidden()
    used = {zone for node in facts.layout.nodes if (zone := node.at(ZONE))}
    held = {node.at(ZONE) for node in nodes}
    bare = sorted(used - held)
    if not bare:
        return CheckOutcome(HOLDS, f"the control plane is in all {len(used)} zones in use", (), DECLARED)
    message = f"no control-plane node in {', '.join(bare)}"
    return CheckOutcome(OPEN if None in held else BROKEN, message, (), DECLARED)


CHECKS = (Check("scs-0214-cp-each-zone", "Control plane in each zone in use", "SCS-0214-v1 and v2 draft, MUST", _run),)
