"""
What a policy does when an application or a cluster fails.

Mirrors `ValidateFailover` in Karmada's pkg/util/validation/validation.go. An absent purge mode is graceful by the
policies' schema. The grace period that Karmada's mutating webhook then fills in counts only where no mode was written:
a mode that was is judged as it stands in the recorded answers.
"""

from __future__ import annotations

from bayplan.validating import causes, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

GRACEFUL = ("Gracefully", "Graciously")

NEGATIVE = "must be greater than or equal to 0"
NOT_GRACEFUL = "only takes effect when purgeMode is gracefully"
NO_GRACE = "should not be empty when purgeMode is gracefully"
NOT_POSITIVE = "must be greater than 0"


def causes_of(failover: Field) -> list[Cause]:
    """What is wrong with the failover behaviour; nothing if there is none."""
    found = _application(failover["application"]) if failover["application"].present else []
    for kind in ("application", "cluster"):
        for rule in failover.under(kind, "statePreservation", "rules").items():
            found += selectors.label_key(rule["aliasLabelName"])
    return found


def _application(behaviour: Field) -> list[Cause]:
    tolerated = behaviour.under("decisionConditions", "tolerationSeconds")
    grace = behaviour["gracePeriodSeconds"]
    mode = behaviour["purgeMode"]
    graceful = mode.text() in GRACEFUL
    found: list[Cause] = []
    if tolerated.number() < 0:
        found.append(causes.invalid(tolerated.path, str(tolerated.number()), NEGATIVE))
    if grace.present and mode.present and not graceful:
        found.append(causes.invalid(grace.path, str(grace.number()), NOT_GRACEFUL))
    if graceful and not grace.present:
        found.append(causes.invalid(grace.path, "null", NO_GRACE))
    if grace.present and grace.number() <= 0:
        found.append(causes.invalid(grace.path, str(grace.number()), NOT_POSITIVE))
    return found
