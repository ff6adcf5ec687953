"""
PodDisruptionBudgets: an integer or percentage, and a selector. The resulting number of pods is not known here.

Mirrors pkg/apis/policy/validation/validation.go and, for integers and percentages,
pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

import re

from bayplan.validating import go_text, names, selectors, type_checks
from bayplan.validating.fields import NEGATIVE, Cause, Field
from bayplan.wire.controllers import PodDisruptionBudgetSpec
from bayplan.wire.meta import LabelSelector

BOTH = "minAvailable and maxUnavailable cannot be both set"
NO_PERCENTAGE = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
ABOVE_100 = "must not be greater than 100%"
EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def validate_disruption_budget(budget: Field) -> list[Cause]:
    """The causes for rejecting a PodDisruptionBudget."""
    spec = budget["spec"]
    if undecodable := type_checks.validate_types(spec, PodDisruptionBudgetSpec):
        return undecodable
    least, most = spec["minAvailable"], spec["maxUnavailable"]
    found = names.validate_metadata(budget["metadata"], names.path_segment)
    if least.present and most.present:
        found.append(spec.invalid(BOTH, _spec_json(spec)))
    found += [*_validate_amount(least), *_validate_amount(most), *selectors.validate_selector(spec["selector"])]
    return found + spec["unhealthyPodEvictionPolicy"].check_enum(EVICTION_POLICIES, empty_is_default=False)


def _validate_amount(field: Field) -> list[Cause]:
    if field.number() < 0:
        return [field.invalid_number(NEGATIVE)]
    if not isinstance(field.value, str):
        return []
    shown = go_text.as_json(field.text())
    if not re.fullmatch("[0-9]+%", field.text()):
        return [field.invalid(NO_PERCENTAGE, shown)]
    return [field.invalid(ABOVE_100, shown)] if int(field.text()[:-1]) > 100 else []


def _spec_json(spec: Field) -> str:
    """The spec as upstream prints its internal type, whose fields have other names than the API's."""
    parts = {
        "MinAvailable": go_text.as_json(spec["minAvailable"].value),
        "Selector": go_text.struct_json(spec["selector"].value, LabelSelector),
        "MaxUnavailable": go_text.as_json(spec["maxUnavailable"].value),
        "UnhealthyPodEvictionPolicy": go_text.as_json(spec["unhealthyPodEvictionPolicy"].value),
    }
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"
