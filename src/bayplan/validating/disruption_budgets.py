"""
PodDisruptionBudgets: an integer or percentage, and a selector. The resulting number of pods is not known here.

Mirrors pkg/apis/policy/validation/validation.go.
"""

from __future__ import annotations

from bayplan.validating import amounts, go_text, names, selectors, type_checks
from bayplan.validating.fields import Cause, Field
from bayplan.wire.controllers import PodDisruptionBudgetSpec
from bayplan.wire.meta import LabelSelector

BOTH = "minAvailable and maxUnavailable cannot be both set"
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
    for amount in (least, most):
        found += [*amounts.validate_amount(amount), *amounts.validate_share(amount)]
    found += selectors.validate_selector(spec["selector"])
    return found + spec["unhealthyPodEvictionPolicy"].check_enum(EVICTION_POLICIES, empty_is_default=False)


def _spec_json(spec: Field) -> str:
    """The spec as upstream prints its internal type, whose fields have other names than the API's."""
    parts = {
        "MinAvailable": go_text.as_json(spec["minAvailable"].value),
        "Selector": go_text.struct_json(spec["selector"].value, LabelSelector),
        "MaxUnavailable": go_text.as_json(spec["maxUnavailable"].value),
        "UnhealthyPodEvictionPolicy": go_text.as_json(spec["unhealthyPodEvictionPolicy"].value),
    }
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"
