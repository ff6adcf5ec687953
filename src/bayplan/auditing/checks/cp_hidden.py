"""The control plane can be seen at all; otherwise nothing is said of it."""

from __future__ import annotations

from bayplan.auditing.layout import INFERRED, OBSERVED
from bayplan.auditing.outcomes import HIDDEN, HOLDS, OPEN, Check, CheckOutcome, Facts


def _run(facts: Facts) -> CheckOutcome:
    if facts.hidden:
        return CheckOutcome(OPEN, HIDDEN, fix="give the dump of the hosting cluster with --hosting")
    names = tuple(node.name for node in facts.layout.control_plane)
    observed = OBSERVED in facts.layout.component_evidence.values()
    where = " of the hosting cluster" if facts.layout.is_hosted else ""
    return CheckOutcome(HOLDS, f"{len(names)} control-plane nodes{where}", names, OBSERVED if observed else INFERRED)


CHECKS = (Check("cp-hidden", "The control plane is visible", "SCS-0214-v2", _run),)
