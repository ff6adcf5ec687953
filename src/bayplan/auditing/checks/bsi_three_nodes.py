"""There are three control-plane nodes."""

from __future__ import annotations

from bayplan.auditing.layout import DECLARED
from bayplan.auditing.outcomes import BROKEN, HOLDS, Check, CheckOutcome, Facts, hidden


def _run(facts: Facts) -> CheckOutcome:
    names = tuple(node.name for node in facts.layout.control_plane)
    if not names:
        return hidden()
    return CheckOutcome(HOLDS if len(names) >= 3 else BROKEN, f"{len(names)} control-plane nodes", names, DECLARED)


CHECKS = (Check("bsi-cp-three-nodes", "Three control-plane nodes", "BSI APP.4.4.A19", _run),)
