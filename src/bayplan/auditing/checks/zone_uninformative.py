"""A single zone with the provider's default name says nothing."""

from __future__ import annotations

from bayplan.auditing.catalogue import DEFAULT_ZONE
from bayplan.auditing.layout import DECLARED, ZONE
from bayplan.auditing.outcomes import BROKEN, HOLDS, NOT_APPLICABLE, Check, Facts, Outcome


def _run(facts: Facts) -> Outcome:
    zones = {node.at(ZONE) for node in facts.layout.nodes} - {None}
    if not zones:
        return Outcome(NOT_APPLICABLE, "no node has a zone label")
    if zones == {DEFAULT_ZONE}:
        message = f"the only zone is {DEFAULT_ZONE}, the default of OpenStack: it tells nothing"
        return Outcome(BROKEN, message, (), DECLARED)
    return Outcome(HOLDS, f"{len(zones)} zone{'s'[: len(zones) != 1]}", (), DECLARED)


CHECKS = (Check("lbl-zone-uninformative", "Zones tell something", "label catalogue", _run),)
