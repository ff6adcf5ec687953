"""Half of every control-plane component stands on other machines than the other half."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import HOST
from bayplan.auditing.outcomes import (
    OPEN,
    SHORT_NAMES,
    Check,
    CheckOutcome,
    Facts,
    layout_text,
    state_of,
    unknown_members,
)
from bayplan.auditing.spread import DomainSpread


def _run(component: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        absent = unknown_members(facts, component)
        if absent is not None:
            return absent
        found = facts.spread(facts.layout.nodes_of(component), HOST)
        state = state_of(found.judge(spread.half))
        names = found.unknown if state == OPEN else tuple(name for names in _fullest(found) for name in names)
        message = f"{component}: {layout_text(found)}{_literal(found)}"
        return CheckOutcome(state, message, names, facts.layout.component_evidence[component])

    return run


def _fullest(found: DomainSpread) -> list[tuple[str, ...]]:
    return [
        names for names in found.nodes_by_domain.values() if len(names) == found.hi and not found.judge(spread.half)
    ]


def _literal(found: DomainSpread) -> str:
    """The other reading, two halves that share no host; it is told only where every host is known."""
    if found.unknown or found.n < 2 or not found.judge(spread.half):
        return ""
    sums = {0}
    for count in found.counts:
        sums |= {count + other for other in sums}
    return "" if sums & {found.n // 2, (found.n + 1) // 2} else "; not two halves that share no host"


CHECKS = tuple(
    Check(f"scs-0213-half-{short}", f"Half of {name} on other machines", "SCS-0213, SHOULD", _run(name))
    for short, name in SHORT_NAMES.items()
)
