"""Hosts are told by one key, and everywhere."""

from __future__ import annotations

from bayplan.auditing.catalogue import KEYS
from bayplan.auditing.layout import DECLARED, HOST
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, Check, CheckOutcome, Facts


def _run(facts: Facts) -> CheckOutcome:
    used: dict[str, int] = {}
    disagreeing = []
    labelled = [node for node in facts.layout.nodes if HOST in node.keys]
    for node in labelled:
        present = {key: node.labels[key] for key in {node.keys[HOST], *KEYS[HOST]} if node.labels.get(key)}
        for key in present:
            used[key] = used.get(key, 0) + 1
        if len(set(present.values())) > 1:
            disagreeing.append(node.name)
    if not used:
        return CheckOutcome(NOT_APPLICABLE, "no node has a host label")
    keys = ", ".join(sorted(used))
    if disagreeing:
        return CheckOutcome(BROKEN, f"{keys} disagree", tuple(disagreeing), DECLARED)
    if max(used.values()) < len(labelled):
        return CheckOutcome(BROKEN, f"no one of {keys} is on all nodes", (), DECLARED, "use one key on all nodes")
    return CheckOutcome(HOLDS, f"hosts are labelled by {keys}", (), DECLARED)


CHECKS = (Check("lbl-mixed-keys", "One host label everywhere", "label catalogue", _run),)
