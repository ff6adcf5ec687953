"""Disruption budgets and quorums of workloads hold through the loss of any one domain of a level."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.checks.n1_workloads import NO_PODS
from bayplan.auditing.layout import LEVELS, OBSERVED
from bayplan.auditing.outcomes import (
    BROKEN,
    HOLDS,
    NOT_APPLICABLE,
    OPEN,
    Check,
    CheckOutcome,
    Facts,
    not_in_use,
    workloads_text,
)
from bayplan.auditing.survivability import GroupTolerance
from bayplan.auditing.workload_groups import BUDGET, Workloads


def _run(level: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        if facts.workloads is None:
            return NO_PODS
        needing = _needing(facts.workloads)
        if not needing:
            return CheckOutcome(NOT_APPLICABLE, "no workload has a disruption budget or needs a majority")
        idle = not_in_use(facts, level)
        if idle is not None:
            return idle
        tolerances = _standings(facts, level)
        if tolerances is None:
            return CheckOutcome(NOT_APPLICABLE, f"the loss of a {level} was not asked about")
        weak = [name for name in needing if name in tolerances and not tolerances[name].at_most]
        unsure = [name for name in needing if name not in tolerances or not tolerances[name].tolerance]
        if weak:
            return CheckOutcome(BROKEN, _message(facts, level, weak), (), OBSERVED, workloads=tuple(weak))
        if unsure:
            message = f"one {level} may leave too few of {workloads_text(unsure)}"
            return CheckOutcome(OPEN, message, (), OBSERVED, workloads=tuple(unsure))
        return CheckOutcome(HOLDS, f"budgets and majorities hold whichever {level} is lost", (), OBSERVED)

    return run


def _needing(workloads: Workloads) -> list[str]:
    return [one.group.name for one in workloads.all if one.source == BUDGET or one.group.need > 1]


def _standings(facts: Facts, level: str) -> dict[str, GroupTolerance] | None:
    """How each group stands at the level, none of them where nothing is known of it; None if it was not asked."""
    if facts.survival is None or level not in facts.survival.asked:
        return None
    found = facts.survival.at(level)
    return {} if found is None or found.workloads is None else {one.group: one for one in found.workloads.tolerances}


def _message(facts: Facts, level: str, weak: list[str]) -> str:
    assert facts.survival is not None
    found, text = facts.survival.at(level), f"one {level} can leave too few of {workloads_text(weak)}"
    if found is None or not facts.survival.rescheduled:
        return text
    after = {name for loss in found.losses.values() for name in loss.still_broken}
    n_mended = sum(name not in after for name in weak)
    return f"{text}; placing again mends {n_mended} of them" if n_mended else text


CHECKS = tuple(
    Check(f"fd-need-workloads-{level}", f"Budgets and quorums survive any one {level}", "N-1", _run(level))
    for level in LEVELS
)
