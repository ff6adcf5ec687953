"""Every control-plane component exists twice."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.outcomes import BROKEN, HOLDS, SHORT_NAMES, Check, CheckOutcome, Facts, unknown_members


def _run(component: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        absent = unknown_members(facts, component)
        if absent is not None:
            return absent
        members = facts.layout.members[component]
        names = tuple(dict.fromkeys(member.node for member in members))
        evidence = facts.layout.component_evidence[component]
        state = HOLDS if len(members) >= 2 else BROKEN
        message = f"{len(members)} of {component}"
        return CheckOutcome(state, message, names, evidence, "" if state == HOLDS else f"run a second {component}")

    return run


CHECKS = tuple(
    Check(f"scs-0213-dup-{short}", f"At least two of {name}", "SCS-0213, REQUIRED", _run(name))
    for short, name in SHORT_NAMES.items()
)
