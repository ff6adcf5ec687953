"""
PodDisruptionBudgets: one of two numbers, and a selector. Knows nothing of what they come to.

Mirrors pkg/apis/policy/validation/validation.go and, for numbers and shares, pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

import re

from bayplan.validating import causes, go_structs, go_text, metadata, names, selectors, shapes
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire.controllers import PodDisruptionBudgetSpec
from bayplan.wire.meta import LabelSelector

BOTH = "minAvailable and maxUnavailable cannot be both set"
NO_SHARE = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
TOO_MUCH = "must not be greater than 100%"
NEGATIVE = "must be greater than or equal to 0"
EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def budget(field: Field) -> list[Cause]:
    """What is wrong with a PodDisruptionBudget."""
    spec = field["spec"]
    if misshapen := shapes.causes_of(spec, PodDisruptionBudgetSpec):
        return misshapen
    least, most, policy = spec["minAvailable"], spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]
    found = metadata.causes_of(field["metadata"], names.path_segment)
    if least.present and most.present:
        found.append(causes.invalid(spec.path, _shown(spec), BOTH))
    found += [*_number_or_share(least), *_number_or_share(most), *selectors.selector(spec["selector"])]
    if policy.present and policy.text() not in EVICTION_POLICIES:
        found.append(causes.unsupported(policy.path, go_text.as_json(policy.text()), EVICTION_POLICIES))
    return found


def _number_or_share(field: Field) -> list[Cause]:
    if field.number() < 0:
        return [causes.invalid(field.path, str(field.number()), NEGATIVE)]
    if not isinstance(field.value, str):
        return []
    shown = go_text.as_json(field.text())
    if not re.fullmatch("[0-9]+%", field.text()):
        return [causes.invalid(field.path, shown, NO_SHARE)]
    return [causes.invalid(field.path, shown, TOO_MUCH)] if int(field.text()[:-1]) > 100 else []


def _shown(spec: Field) -> str:
    """The spec as upstream prints its own copy of it, whose fields have other names than ours."""
    policy = spec["unhealthyPodEvictionPolicy"]
    parts = {
        "MinAvailable": go_text.as_json(spec["minAvailable"].value),
        "Selector": go_structs.shown(spec["selector"], LabelSelector),
        "MaxUnavailable": go_text.as_json(spec["maxUnavailable"].value),
        "UnhealthyPodEvictionPolicy": go_text.as_json(policy.value),
    }
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"
