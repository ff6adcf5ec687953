"""Host labels name the machine, not the node."""

from __future__ import annotations

from bayplan.auditing.layout import DECLARED, HOST
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, Check, CheckOutcome, Facts


def _run(facts: Facts) -> CheckOutcome:
    labelled = [node for node in facts.layout.nodes if HOST in node.keys]
    empty = tuple(node.name for node in labelled if node.vacuous)
    if not labelled:
        return CheckOutcome(NOT_APPLICABLE, "no node has a host label")
    if empty:
        message = f"the host label of {len(empty)} nodes names the node itself and proves nothing"
        return CheckOutcome(BROKEN, message, empty, DECLARED, "set it to the id of the hypervisor")
    return CheckOutcome(HOLDS, "host labels differ from the nodes' own names and ids", (), DECLARED)


CHECKS = (Check("lbl-host-vacuous", "Host labels name the physical machine", "SCS-0214-v2 draft", _run),)
