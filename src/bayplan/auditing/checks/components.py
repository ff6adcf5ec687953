"""Every control-plane component exists twice, and half of it stands on other machines than the other half."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import APISERVER, HOST
from bayplan.auditing.outcomes import (
    BROKEN,
    HOLDS,
    OPEN,
    SHORT_NAMES,
    UNKNOWN_COMPONENTS,
    Check,
    Facts,
    Outcome,
    hidden,
    layout_text,
    state_of,
)
from bayplan.auditing.spread import Spread


def unknown(facts: Facts, component: str) -> Outcome | None:
    """What to say where the members of a component are not known; None where they are."""
    if facts.hidden:
        seen = f"; {facts.layout.n_leases} API servers hold a lease" if facts.layout.n_leases else ""
        found = hidden()
        return Outcome(OPEN, found.message + (seen if component == APISERVER else ""))
    return None if component in facts.layout.members else Outcome(OPEN, UNKNOWN_COMPONENTS)


def _duplicated(component: str) -> Callable[[Facts], Outcome]:
    def run(facts: Facts) -> Outcome:
        absent = unknown(facts, component)
        if absent is not None:
            return absent
        members = facts.layout.members[component]
        names = tuple(dict.fromkeys(member.node for member in members))
        evidence = facts.layout.component_evidence[component]
        state = HOLDS if len(members) >= 2 else BROKEN
        message = f"{len(members)} of {component}"
        return Outcome(state, message, names, evidence, "" if state == HOLDS else f"run a second {component}")

    return run


def _half(component: str) -> Callable[[Facts], Outcome]:
    def run(facts: Facts) -> Outcome:
        absent = unknown(facts, component)
        if absent is not None:
            return absent
        found = facts.spread(facts.layout.nodes_of(component), HOST)
        state = state_of(found.judge(spread.half))
        names = found.unknown if state == OPEN else tuple(name for names in _fullest(found) for name in names)
        message = f"{component}: {layout_text(found)}{_literal(found)}"
        return Outcome(state, message, names, facts.layout.component_evidence[component])

    return run


def _fullest(found: Spread) -> list[tuple[str, ...]]:
    return [
        names for names in found.nodes_by_domain.values() if len(names) == found.hi and not found.judge(spread.half)
    ]


def _literal(found: Spread) -> str:
    """The other reading, two halves that share no host; it is told only where every host is known."""
    if found.unknown or found.n < 2 or not found.judge(spread.half):
        return ""
    sums = {0}
    for count in found.counts:
        sums |= {count + other for other in sums}
    return "" if sums & {found.n // 2, (found.n + 1) // 2} else "; not two halves that share no host"


CHECKS = (
    *(
        Check(f"scs-0213-dup-{short}", f"At least two of {name}", "SCS-0213, REQUIRED", _duplicated(name))
        for short, name in SHORT_NAMES.items()
    ),
    *(
        Check(f"scs-0213-half-{short}", f"Half of {name} on other machines", "SCS-0213, SHOULD", _half(name))
        for short, name in SHORT_NAMES.items()
    ),
)
