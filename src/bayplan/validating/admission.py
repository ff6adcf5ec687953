"""
What an API server would refuse in an object, dispatched by its kind. Knows no rule itself.

A kind without rules is admitted. New kinds are new rows of `_KINDS`. How pods run once they are placed is not looked
at here: `complete` adds that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from bayplan.validating import (
    bindings,
    causes,
    controllers,
    disruption_budgets,
    fields,
    go_text,
    placement_annotation,
    pods,
    policies,
    selectors,
    shapes,
    tiers,
)
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.pod_runtime import pod_specs
from bayplan.wire import placements as wire

_TEMPLATE = ("spec", "template")
_CRON_TEMPLATE = ("spec", "jobTemplate", "spec", "template")


class _Kind(msgspec.Struct, frozen=True):
    """
    `group` is the API version's part before the slash; `template` leads to the pod template, if there is one; `placed`
    kinds have a placement.
    """

    group: str
    check: Callable[[Field], list[Cause]]
    template: tuple[str, ...] = ()
    placed: bool = False


def causes_of(obj: dict[str, object]) -> list[Cause]:
    """Everything that an API server would hold against the decoded object: none if it would be admitted."""
    kind, field = _kind(obj), fields.root(obj)
    found = kind.check(field) if kind else []
    # Whatever has no placement of its own may be a resource template that brings one along.
    brought = [] if kind and kind.placed else placement_annotation.causes_of(field["metadata"])
    return found + [cause for cause in brought if cause not in found]


def pod_like(obj: dict[str, object]) -> Field | None:
    """The pod in the object, or the template of its pods; none if it makes no pods."""
    kind = _kind(obj)
    if kind is None or not (kind.template or kind.check is pods.pod):
        return None
    return fields.root(obj).under(*kind.template)


def placed(obj: dict[str, object]) -> Field | None:
    """The object, if it is of a kind that has a placement."""
    kind = _kind(obj)
    return fields.root(obj) if kind and kind.placed else None


def _kind(obj: dict[str, object]) -> _Kind | None:
    """The row of the object's kind; kinds of the same name in other groups are somebody else's."""
    kind = _KINDS.get(str(obj.get("kind")))
    version = obj.get("apiVersion")
    if kind is None or not isinstance(version, str):
        return kind
    group = version.split("/")[0] if "/" in version else ""
    return kind if group == kind.group else None


_KINDS: dict[str, _Kind] = {
    "Pod": _Kind("", pods.pod),
    "Deployment": _Kind("apps", controllers.deployment, _TEMPLATE),
    "ReplicaSet": _Kind("apps", controllers.deployment, _TEMPLATE),
    "StatefulSet": _Kind("apps", controllers.stateful_set, _TEMPLATE),
    "DaemonSet": _Kind("apps", controllers.daemon_set, _TEMPLATE),
    "Job": _Kind("batch", controllers.job, _TEMPLATE),
    "CronJob": _Kind("batch", controllers.cron_job, _CRON_TEMPLATE),
    "ReplicationController": _Kind("", controllers.replication_controller, _TEMPLATE),
    "PodDisruptionBudget": _Kind("policy", disruption_budgets.budget),
    "PropagationPolicy": _Kind("policy.karmada.io", policies.namespaced, placed=True),
    "ClusterPropagationPolicy": _Kind("policy.karmada.io", policies.cluster_wide, placed=True),
    "ResourceBinding": _Kind("work.karmada.io", bindings.namespaced, placed=True),
    "ClusterResourceBinding": _Kind("work.karmada.io", bindings.cluster_wide, placed=True),
}


# RF merged from validating.complete: Every rule of an API server that Bayplan knows: what decides where pods go, and
# how they run there. Knows none itself. `admission` alone is for those who place pods: they need not know how a
# container is probed.


def complete_causes(obj: dict[str, object]) -> list[Cause]:
    """Everything that an API server would hold against the decoded object: none if it would be admitted."""
    found = causes_of(obj)
    if any(cause.reason == causes.TYPE_INVALID for cause in found):
        return found  # what cannot be decoded is not looked at any further
    return found + _running(obj)


def _running(obj: dict[str, object]) -> list[Cause]:
    field, pod = fields.root(obj), pod_like(obj)
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


# RF merged from validating.policy_schema: What the schema of Karmada's policies refuses before any webhook is asked:
# enumerations, lengths, minimums. Kept apart from `admission`, which answers as the webhook does. Mirrors the markers
# in Karmada's pkg/apis/policy/v1alpha1/propagation_types.go; worded as apiextensions-apiserver words them.

Rule = Callable[[Field], list[Cause]]
EACH = "[]"


def schema_causes(obj: dict[str, object]) -> list[Cause]:
    """What the schema holds against a policy; nothing for any other object, and for one that cannot be decoded."""
    field = placed(obj)
    if field is None or not field["kind"].text().endswith("Policy"):
        return []
    spec = field["spec"]
    if shapes.causes_of(spec, wire.PropagationSpec):
        return []
    return [cause for path, rule in _RULES for found in _at(spec, path.split()) for cause in rule(found)]


def _at(field: Field, names: list[str]) -> Iterator[Field]:
    """The fields that a path leads to; an absent parent leads nowhere."""
    if not names:
        yield field
    elif field.present:
        for one in field.items() if names[0] == EACH else [field[names[0]]]:
            yield from _at(one, names[1:])


def _one_of(*values: str) -> Rule:
    def check(field: Field) -> list[Cause]:
        if not field.present or field.text() in values:
            return []
        return [causes.unsupported(field.path, go_text.quoted(field.text()), values)]

    return check


def _at_least_one(field: Field) -> list[Cause]:
    if field.number(1) >= 1:
        return []
    detail = f"{field.path} in body should be greater than or equal to 1"
    return [causes.invalid(field.path, str(field.number()), detail)]


def _not_empty(field: Field) -> list[Cause]:
    if not field.present:
        return [causes.required(field.path)]
    if field.items():
        return []
    return [causes.invalid(field.path, "0", f"{field.path} in body should have at least 1 items")]


def _written(field: Field) -> list[Cause]:
    return [] if field.present else [causes.required(field.path)]


_TERM = "placement clusterAffinities []"
_SCHEDULING = "placement replicaScheduling"
_STATE = "statePreservation rules"
_RULES: tuple[tuple[str, Rule], ...] = (
    ("resourceSelectors", _not_empty),
    ("resourceSelectors [] apiVersion", _written),
    ("resourceSelectors [] kind", _written),
    (f"{_TERM} affinityName", _written),
    (f"{_TERM} affinityName", tiers.name_length),
    (f"{_TERM} overflowAffinities [] affinityName", _written),
    (f"{_TERM} overflowAffinities [] affinityName", tiers.name_length),
    ("placement spreadConstraints [] spreadByField", _one_of("cluster", "region", "zone", "provider")),
    (f"{_SCHEDULING} replicaSchedulingType", _one_of("Duplicated", "Divided")),
    (f"{_SCHEDULING} replicaDivisionPreference", _one_of("Aggregated", "Weighted")),
    (f"{_SCHEDULING} weightPreference dynamicWeight", _one_of("AvailableReplicas")),
    (f"{_SCHEDULING} weightPreference staticWeightList [] targetCluster", _written),
    (f"{_SCHEDULING} weightPreference staticWeightList [] weight", _written),
    (f"{_SCHEDULING} weightPreference staticWeightList [] weight", _at_least_one),
    ("placement workloadAffinity affinity groupByLabelKey", _written),
    ("placement workloadAffinity antiAffinity groupByLabelKey", _written),
    ("preemption", _one_of("Always", "Never")),
    ("conflictResolution", _one_of("Abort", "Overwrite")),
    ("activationPreference", _one_of("Lazy")),
    ("failover application decisionConditions", _written),
    ("failover application purgeMode", _one_of("Directly", "Gracefully", "Never", "Immediately", "Graciously")),
    (f"failover application {_STATE}", _written),
    (f"failover application {_STATE} [] aliasLabelName", _written),
    (f"failover application {_STATE} [] jsonPath", _written),
    ("failover cluster purgeMode", _one_of("Directly", "Gracefully")),
    (f"failover cluster {_STATE}", _written),
    (f"failover cluster {_STATE} [] aliasLabelName", _written),
    (f"failover cluster {_STATE} [] jsonPath", _written),
    ("schedulePriority priorityClassSource", _written),
    ("schedulePriority priorityClassSource", _one_of("KubePriorityClass")),
    ("schedulePriority priorityClassName", _written),
)
