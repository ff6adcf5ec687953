"""A single zone with the provider's default name says nothing."""

from __future__ import annotations

from bayplan.auditing.catalogue import DEFAULT_ZONE
from bayplan.auditing.layout import DECLARED, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, Check, CheckOutcome, Facts


def _run(facts: Facts) -> CheckOutcome:
    zones = {node.at(ZONE) for node in facts.layout.nodes} - {None}
    if not zones:
        return CheckOutcome(NOT_APPLICABLE, "no node has a zone label")
    if zones == {DEFAULT_ZONE}:
        message = f"the only zone is {DEFAULT_ZONE}, the default of OpenStack: it tells nothing"
        return CheckOutcome(BROKEN, message, (), DECLARED)
    return CheckOutcome(HOLDS, f"{len(zones)} zone{'s'[: len(zones) != 1]}", (), DECLARED)


CHECKS = (Check("lbl-zone-uninformative", "Zones tell something", "label catalogue", _run),)
