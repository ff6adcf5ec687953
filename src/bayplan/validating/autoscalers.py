"""
HorizontalPodAutoscalers: what they scale, and between which numbers. Metrics and behaviour are not validated.

Mirrors pkg/apis/autoscaling/validation/validation.go.
"""

from __future__ import annotations

from bayplan.validating import names, type_checks
from bayplan.validating.fields import Cause, Field, missing_texts
from bayplan.wire.controllers import HorizontalPodAutoscalerSpec

NO_MAXIMUM, TOO_SMALL = "must be set and greater than 0", "must be greater than or equal to 1"
BELOW_MINIMUM = "must be greater than or equal to `minReplicas`"


def validate_autoscaler(autoscaler: Field) -> list[Cause]:
    """The causes for rejecting a HorizontalPodAutoscaler."""
    spec = autoscaler["spec"]
    if undecodable := type_checks.validate_types(spec, HorizontalPodAutoscalerSpec):
        return undecodable
    least, most, target = spec["minReplicas"], spec["maxReplicas"], spec["scaleTargetRef"]
    found = names.validate_metadata(autoscaler["metadata"], names.dns_subdomain)
    if least.present and least.number() < 1:
        found.append(least.invalid_number(TOO_SMALL))
    if not most.number():
        found.append(most.required(NO_MAXIMUM))
    elif most.number() < 0:
        found.append(most.invalid_number(TOO_SMALL))
    if least.present and most.number() < least.number():
        found.append(most.invalid_number(BELOW_MINIMUM))
    return found + missing_texts(target["kind"], target["name"])
