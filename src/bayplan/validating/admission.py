"""
The causes for which an API server rejects an object, dispatched by its kind. No rule is defined here.

A kind without rules is admitted; a new kind is a new row of `_KINDS`. `validate` covers what decides where pods are
scheduled. `validate_all` adds the rules on how pods run, which placing pods does not need.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan.validating import (
    bindings,
    controllers,
    disruption_budgets,
    fields,
    placement_annotation,
    pods,
    policies,
    selectors,
)
from bayplan.validating.fields import Cause, Field
from bayplan.validating.pod_runtime import pod_specs

_TEMPLATE = ("spec", "template")
_CRON_TEMPLATE = ("spec", "jobTemplate", "spec", "template")


class _KindRules(msgspec.Struct, frozen=True):
    """
    The rules of one kind.

    `group` is its API group and `template` the path to its pod template, if it has one. A kind with `has_placement` has
    a Karmada placement. `schema` is validated before any webhook and apart from `validate`.
    """

    group: str
    validate: Callable[[Field], list[Cause]]
    template: tuple[str, ...] = ()
    has_placement: bool = False
    schema: Callable[[Field], list[Cause]] | None = None


_POLICIES, _BINDINGS = "policy.karmada.io", "work.karmada.io"
_KINDS: dict[str, _KindRules] = {
    "Pod": _KindRules("", pods.validate_pod),
    "Deployment": _KindRules("apps", controllers.validate_deployment, _TEMPLATE),
    "ReplicaSet": _KindRules("apps", controllers.validate_deployment, _TEMPLATE),
    "StatefulSet": _KindRules("apps", controllers.validate_stateful_set, _TEMPLATE),
    "DaemonSet": _KindRules("apps", controllers.validate_daemon_set, _TEMPLATE),
    "Job": _KindRules("batch", controllers.validate_job, _TEMPLATE),
    "CronJob": _KindRules("batch", controllers.validate_cron_job, _CRON_TEMPLATE),
    "ReplicationController": _KindRules("", controllers.validate_replication_controller, _TEMPLATE),
    "PodDisruptionBudget": _KindRules("policy", disruption_budgets.validate_disruption_budget),
    "PropagationPolicy": _KindRules(
        _POLICIES, policies.validate_propagation_policy, has_placement=True, schema=policies.validate_schema
    ),
    "ClusterPropagationPolicy": _KindRules(
        _POLICIES, policies.validate_cluster_propagation_policy, has_placement=True, schema=policies.validate_schema
    ),
    "ResourceBinding": _KindRules(_BINDINGS, bindings.validate_resource_binding, has_placement=True),
    "ClusterResourceBinding": _KindRules(_BINDINGS, bindings.validate_cluster_resource_binding, has_placement=True),
}


def validate(obj: dict[str, object]) -> list[Cause]:
    """The causes for rejecting the decoded object, apart from how its pods run: none if it is admitted."""
    rules, field = _rules_of(obj), Field("", obj)
    found = rules.validate(field) if rules else []
    if rules and rules.has_placement:
        return found
    # An object without a placement of its own may be a resource template with a placement annotation.
    extensions = placement_annotation.validate_extensions(field["metadata"])
    return found + [cause for cause in extensions if cause not in found]


def validate_all(obj: dict[str, object]) -> list[Cause]:
    """All causes for rejecting the decoded object, including how its pods run: none if it is admitted."""
    found, pod = validate(obj), pod_or_template(obj)
    if pod is None or any(cause.reason == fields.TYPE_INVALID for cause in found):
        return found  # an object that cannot be decoded is not validated any further
    field = Field("", obj)
    # With an invalid selector, upstream does not get to the template of these kinds.
    skips_template = bool(selectors.validate_selector(field["spec"]["selector"]))
    match obj.get("kind"):
        case "Pod":
            return found + pod_specs.validate_pod_runtime(pod)
        case "StatefulSet":
            found += pod_specs.validate_claim_templates(field)
            return found if skips_template else found + pod_specs.validate_stateful_set_runtime(field)
        case "Deployment" | "ReplicaSet" if skips_template:
            return found
    return found + pod_specs.validate_template_runtime(pod)


def validate_schema(obj: dict[str, object]) -> list[Cause]:
    """The causes for which the schema of the object's kind rejects it, before any webhook is called."""
    rules = _rules_of(obj)
    return rules.schema(Field("", obj)) if rules and rules.schema else []


def pod_or_template(obj: dict[str, object]) -> Field | None:
    """The pod, or the pod template of the object; None if the object creates no pods."""
    rules = _rules_of(obj)
    if rules is None or not (rules.template or rules.validate is pods.validate_pod):
        return None
    field = Field("", obj)
    for name in rules.template:
        field = field[name]
    return field


def has_placement(obj: dict[str, object]) -> bool:
    """Whether the object is of a kind that has a Karmada placement."""
    rules = _rules_of(obj)
    return rules is not None and rules.has_placement


def _rules_of(obj: dict[str, object]) -> _KindRules | None:
    """The rules of the object's kind; a kind of the same name in another group has none."""
    rules = _KINDS.get(str(obj.get("kind")))
    version = obj.get("apiVersion")
    if rules is None or not isinstance(version, str):
        return rules
    group = version.split("/")[0] if "/" in version else ""
    return rules if group == rules.group else None
