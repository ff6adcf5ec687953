"""Control-plane nodes stand on at least two physical machines; zones prove it where hosts are not labelled."""

from __future__ import annotations

from bayplan.auditing import spread
from bayplan.auditing.layout import HOST, INFERRED
from bayplan.auditing.outcomes import HOLDS, OPEN, Check, CheckOutcome, Facts, hidden, layout_text, state_of


def _run(facts: Facts) -> CheckOutcome:
    nodes = facts.layout.control_plane
    if not nodes:
        return hidden()
    found = facts.spread(nodes, HOST)
    state = state_of(found.judge(spread.separate))
    message = f"control-plane nodes: {layout_text(found)}"
    if state == OPEN:
        fix = f"label {', '.join(found.unknown)} with the id of the physical host"
        return CheckOutcome(state, message, found.unknown, INFERRED, fix)
    if found.unknown and state == HOLDS:
        message = f"{message}; zones and regions settle it"
    fix = "" if found.hi < found.n else "move control-plane nodes to further machines, at least three in all"
    return CheckOutcome(state, message, tuple(node.name for node in nodes), found.evidence, fix)


CHECKS = (Check("scs-0214-cp-machines", "Control plane on several physical machines", "SCS-0214-v2, MUST", _run),)
