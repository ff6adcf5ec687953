"""No group of at least two replicas is lost with one domain of a level."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
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

NO_PODS = CheckOutcome(NOT_APPLICABLE, "no pods were given")


def _run(level: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        if facts.workloads is None:
            return NO_PODS
        idle = not_in_use(facts, level)
        if idle is not None:
            return idle
        weak: list[str] = []
        unsure: list[str] = []
        for one in facts.workloads.owners:
            members = [facts.known[m.node] for m in one.group.members if m.node in facts.known]
            if len(members) >= 2:
                holds = facts.spread(members, level).judge(spread.separate)
                if not holds:
                    (unsure if holds is None else weak).append(one.group.name)
        if weak:
            message = f"one {level} can take all replicas of {workloads_text(weak)}"
            fix = "spread them; --repair writes the stanza"
            return CheckOutcome(BROKEN, message, (), OBSERVED, fix, workloads=tuple(weak))
        if unsure:
            message = f"one {level} may hold all replicas of {workloads_text(unsure)}"
            return CheckOutcome(OPEN, message, (), OBSERVED, workloads=tuple(unsure))
        return CheckOutcome(HOLDS, f"no workload of several replicas stands in one {level} alone", (), OBSERVED)

    return run


CHECKS = tuple(
    Check(f"fd-n1-workloads-{level}", f"Workloads survive any one {level}", "N-1", _run(level)) for level in LEVELS
)
