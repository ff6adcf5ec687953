"""A host stands in one zone, a zone in one region."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.layout import DECLARED, HOST, REGION, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, Check, CheckOutcome, Facts


def _run(level: str, above: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        nodes: dict[str, list[str]] = {}
        parents: dict[str, set[str]] = {}
        for node in facts.layout.nodes:
            here, parent = node.at(level), node.at(above)
            if here and parent:
                nodes.setdefault(here, []).append(node.name)
                parents.setdefault(here, set()).add(parent)
        torn = {here: sorted(found) for here, found in parents.items() if len(found) > 1}
        if torn:
            message = "; ".join(f"{level} {here} is in {', '.join(found)}" for here, found in torn.items())
            names = tuple(name for here in torn for name in nodes[here])
            return CheckOutcome(BROKEN, message, names, DECLARED, "correct the labels: one of them is wrong")
        if not parents:
            return CheckOutcome(NOT_APPLICABLE, f"no node has both a {level} and a {above}")
        return CheckOutcome(HOLDS, f"every {level} is in one {above}", (), DECLARED)

    return run


CHECKS = (
    Check("lbl-host-one-zone", "A host stands in one zone", "KEP-1659", _run(HOST, ZONE)),
    Check("lbl-zone-one-region", "A zone stands in one region", "KEP-1659", _run(ZONE, REGION)),
)
