"""No group of at least two replicas is lost with one host or zone."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import HOST, OBSERVED, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, OPEN, Check, Facts, Outcome

_SHOWN = 5


def _run(level: str) -> Callable[[Facts], Outcome]:
    def run(facts: Facts) -> Outcome:
        if facts.workloads is None:
            return Outcome(NOT_APPLICABLE, "no pods were given")
        weak: list[str] = []
        unsure: list[str] = []
        for name, nodes in sorted(facts.workloads.items()):
            members = [facts.known[node] for node in nodes if node in facts.known]
            if len(members) < 2:
                continue
            holds = facts.spread(members, level).judge(spread.separate)
            if not holds:
                (unsure if holds is None else weak).append(name)
        if weak:
            return Outcome(BROKEN, f"one {level} can take all replicas of {_told(weak)}", (), OBSERVED)
        if unsure:
            return Outcome(OPEN, f"one {level} may hold all replicas of {_told(unsure)}", (), OBSERVED)
        return Outcome(HOLDS, f"no workload of several replicas stands in one {level} alone", (), OBSERVED)

    return run


def _told(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


CHECKS = tuple(
    Check(f"fd-n1-workloads-{level}", f"Workloads survive any one {level}", "N-1", _run(level))
    for level in (HOST, ZONE)
)
