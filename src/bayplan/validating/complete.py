"""
Every rule of an API server that Bayplan knows: what decides where pods go, and how they run there. Knows none itself.

`admission` alone is for those who place pods: they need not know how a container is probed.
"""

from __future__ import annotations

from bayplan.validating import admission, causes, fields, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.running import pod_specs


def causes_of(obj: dict[str, object]) -> list[Cause]:
    """Everything that an API server would hold against the decoded object: none if it would be admitted."""
    found = admission.causes(obj)
    if any(cause.reason == causes.TYPE_INVALID for cause in found):
        return found  # what cannot be decoded is not looked at any further
    return found + _running(obj)


def _running(obj: dict[str, object]) -> list[Cause]:
    field, pod = fields.root(obj), admission.pod_like(obj)
    if pod is None:
        return []
    match obj.get("kind"):
        case "Pod":
            return pod_specs.pod(pod)
        case "StatefulSet":
            made = pod_specs.claims_of_stateful_set(field)
            return made if _is_passed_over(field) else made + pod_specs.of_stateful_set(field)
        case "Deployment" | "ReplicaSet" if _is_passed_over(field):
            return []
    return pod_specs.template(pod)


def _is_passed_over(field: Field) -> bool:
    """Whether upstream does not look at the template: with a selector that means nothing it does not get there."""
    return bool(selectors.selector(field.under("spec", "selector")))
