"""Labels agree with every second source: pods bound earlier, storage, Machines, an inventory."""

from __future__ import annotations

from bayplan.auditing.layout import OBSERVED
from bayplan.auditing.outcomes import BROKEN, HOLDS, OPEN, Check, CheckOutcome, Facts


def _run(facts: Facts) -> CheckOutcome:
    wrong: dict[str, list[str]] = {}
    n_compared = 0
    for node in facts.layout.nodes:
        for source, level, value in node.other_sources:
            key = node.keys.get(level)
            if key is None:
                continue
            n_compared += 1
            if node.labels[key] != value:
                wrong.setdefault(node.name, []).append(f"{level} {node.labels[key]}, {source} says {value}")
    if wrong:
        message = "; ".join(f"{node}: {', '.join(texts)}" for node, texts in wrong.items())
        return CheckOutcome(
            BROKEN, message, tuple(wrong), OBSERVED, "set the labels anew: nothing refreshes them by itself"
        )
    if not n_compared:
        message = "no second source to compare labels with; a stale one would not show"
        return CheckOutcome(OPEN, message, fix="give pods, Machines or an inventory too")
    return CheckOutcome(HOLDS, f"labels agree with {n_compared} values of other sources", (), OBSERVED)


CHECKS = (Check("scs-0214-labels-current", "Labels are current", "SCS-0214-v2, MUST", _run),)
