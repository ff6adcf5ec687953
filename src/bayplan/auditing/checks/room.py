"""What the loss of any one domain of a level displaces finds room on the nodes that are left."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.checks.n1_workloads import NO_PODS
from bayplan.auditing.layout import LEVELS, OBSERVED
from bayplan.auditing.outcomes import (
    BROKEN,
    HOLDS,
    NOT_APPLICABLE,
    OPEN,
    PLURALS,
    Check,
    CheckOutcome,
    Facts,
    not_in_use,
)
from bayplan.auditing.workload_loss import amounts_text


def _run(level: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        survival = facts.survival
        if facts.workloads is None or survival is None:
            return NO_PODS
        idle = not_in_use(facts, level)
        if idle is not None:
            return idle
        if not survival.rescheduled:
            return CheckOutcome(NOT_APPLICABLE, survival.note)
        if level not in survival.asked:
            return CheckOutcome(NOT_APPLICABLE, f"the loss of a {level} was not asked about")
        found = survival.at(level)
        losses = list(found.losses.values()) if found is not None else []
        homeless = sorted((loss for loss in losses if loss.stranded), key=lambda loss: -len(loss.stranded))
        if homeless:
            worst, n = homeless[0], len(homeless[0].stranded)
            message = f"losing {level} {worst.event.domain} leaves {n} pod{'s'[: n != 1]} without a place"
            some = f"; {len(homeless)} of {len(losses)} {PLURALS[level]} leave some"
            fix = f"add room for {amounts_text(worst.shortage)}"
            return CheckOutcome(BROKEN, message + some, tuple(sorted(worst.event.nodes)), OBSERVED, fix)
        bare = tuple(node.name for node in facts.layout.nodes if not node.at(level))
        if bare:
            return CheckOutcome(OPEN, f"{len(bare)} nodes have no known {level}", bare, OBSERVED)
        if not losses:
            return CheckOutcome(NOT_APPLICABLE, f"all nodes are in one {level}: nothing would be left")
        n_displaced = max(loss.n_displaced for loss in losses)
        message = f"whichever {level} is lost, all its pods find room again, {n_displaced} at the most"
        return CheckOutcome(HOLDS, message, (), OBSERVED)

    return run


CHECKS = tuple(
    Check(f"fd-room-{level}", f"What any one {level} displaces finds room", "N-1 with rescheduling", _run(level))
    for level in LEVELS
)
