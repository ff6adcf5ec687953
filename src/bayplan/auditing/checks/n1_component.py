"""Every component keeps one healthy instance whichever domain of a level is lost."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import COMPONENTS, LEVELS
from bayplan.auditing.outcomes import (
    BROKEN,
    HIDDEN,
    HOLDS,
    OPEN,
    UNKNOWN_COMPONENTS,
    Check,
    CheckOutcome,
    Facts,
    not_in_use,
)


def _run(level: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        idle = not_in_use(facts, level)
        if idle is not None:
            return idle
        if facts.hidden:
            return CheckOutcome(OPEN, HIDDEN)
        weak = {component: _survives(facts, component, level) for component in COMPONENTS}
        evidence = next(iter(facts.layout.component_evidence.values()), "")
        lost = [component for component, holds in weak.items() if holds is False]
        if lost:
            return CheckOutcome(BROKEN, f"one {level} can take all of {', '.join(lost)}", (), evidence)
        unsure = [component for component, holds in weak.items() if holds is None]
        if any(component not in facts.layout.members for component in unsure):
            return CheckOutcome(OPEN, UNKNOWN_COMPONENTS)
        if unsure:
            return CheckOutcome(OPEN, f"one {level} may hold all of {', '.join(unsure)}", (), evidence)
        return CheckOutcome(HOLDS, f"no single {level} holds all of a component", (), evidence)

    return run


def _survives(facts: Facts, component: str, level: str) -> bool | None:
    members = facts.layout.members.get(component)
    if members is None:
        return None
    healthy = [facts.known[m.node] for m in members if m.healthy and m.node in facts.known]
    return facts.spread(healthy, level).judge(spread.separate)


CHECKS = tuple(
    Check(f"fd-n1-component-{level}", f"Every component survives any one {level}", "N-1", _run(level))
    for level in LEVELS
)
