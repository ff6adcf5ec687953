"""Every node carries a label for its zone, its region and its host."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.catalogue import HOST_KEY, REGION_KEY, ZONE_KEY
from bayplan.auditing.layout import DECLARED, HOST, INFERRED, REGION, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, Check, CheckOutcome, Facts


def _run(level: str, key: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        # A host that follows from the provider needs no label.
        missing = tuple(
            node.name
            for node in facts.layout.nodes
            if level not in node.keys and not (level == HOST and node.evidence.get(HOST) == INFERRED)
        )
        if not missing:
            return CheckOutcome(HOLDS, f"all {len(facts.layout.nodes)} nodes have a {level} label", (), DECLARED)
        message = f"{len(missing)} of {len(facts.layout.nodes)} nodes have no {level} label"
        return CheckOutcome(BROKEN, message, missing, DECLARED, f"set {key} on them")

    return run


CHECKS = (
    Check("scs-0214-labels-zone", "Every node has a zone label", "SCS-0214-v2, MUST", _run(ZONE, ZONE_KEY)),
    Check("scs-0214-labels-region", "Every node has a region label", "SCS-0214-v2, MUST", _run(REGION, REGION_KEY)),
    Check(
        "lbl-host-present",
        "Every node has a host label",
        "SCS-0214-v2 draft, MUST; SCS-0213, should",
        _run(HOST, HOST_KEY),
    ),
)
