"""Labels and running components say the same of who belongs to the control plane."""

from __future__ import annotations

from bayplan.auditing.layout import ETCD, OBSERVED
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, Check, CheckOutcome, Facts


def _run(facts: Facts) -> CheckOutcome:
    layout = facts.layout
    if layout.is_hosted:
        return CheckOutcome(NOT_APPLICABLE, "the control plane runs on another cluster")
    if OBSERVED not in layout.component_evidence.values():
        return CheckOutcome(NOT_APPLICABLE, "no component was seen running")
    seen = {
        member.node
        for component, members in layout.members.items()
        if component != ETCD and layout.component_evidence[component] == OBSERVED
        for member in members
    }
    labelled = {node.name for node in layout.nodes if node.role_labels}
    if labelled == seen:
        return CheckOutcome(HOLDS, "role labels and running components agree", (), OBSERVED)
    texts = [f"{name} has the role but runs no component" for name in sorted(labelled - seen)]
    texts += [f"{name} runs a component without the role" for name in sorted(seen - labelled)]
    return CheckOutcome(BROKEN, "; ".join(texts), tuple(sorted(labelled ^ seen)), OBSERVED)


CHECKS = (Check("cp-role-mismatch", "Role labels match running components", "node roles", _run),)
