"""
The causes for which an API server rejects an object, dispatched by its kind. No rule is defined here.

A kind without rules is admitted, apart from its pod template. `validate` covers what decides where pods are
scheduled. `validate_all` adds the rules on how pods run, which placing pods does not need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bayplan.model.kubernetes_versions import DEFAULT_VERSION, KubernetesVersion
from bayplan.validating import (
    autoscalers,
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
from bayplan.wire import kinds
from bayplan.wire.kinds import ApiKind, Trait

_EMPTY_TOPOLOGY_KEY = ('Invalid value: "":', "Required value: can not be empty")
_TERM_KEY = re.compile(r"\.pod(Anti)?Affinity\..*\.topologyKey$")


def _validate_pod_group(pod_group: Field) -> list[Cause]:
    from bayplan.validating import groups  # few clusters have them

    return groups.validate_pod_group(pod_group)


# The rules of each kind, beside those on pod templates and placements.
_RULES: dict[str, Callable[[Field], list[Cause]]] = {
    "Pod": pods.validate_pod,
    "Deployment": controllers.validate_deployment,
    "ReplicaSet": controllers.validate_replica_set,
    "StatefulSet": controllers.validate_stateful_set,
    "DaemonSet": controllers.validate_daemon_set,
    "Job": controllers.validate_job,
    "CronJob": controllers.validate_cron_job,
    "ReplicationController": controllers.validate_replication_controller,
    "HorizontalPodAutoscaler": autoscalers.validate_autoscaler,
    "PodDisruptionBudget": disruption_budgets.validate_disruption_budget,
    "PodGroup": _validate_pod_group,
    "PropagationPolicy": policies.validate_propagation_policy,
    "ClusterPropagationPolicy": policies.validate_cluster_propagation_policy,
    "ResourceBinding": bindings.validate_resource_binding,
    "ClusterResourceBinding": bindings.validate_cluster_resource_binding,
}


def validate(obj: dict[str, object], version: KubernetesVersion = DEFAULT_VERSION) -> list[Cause]:
    """The causes for rejecting the decoded object, apart from how its pods run: none if it is admitted."""
    row, field = _row_of(obj), Field("", obj, version)
    found = _RULES[row.kind](field) if row is not None and row.kind in _RULES else []
    if row is not None and Trait.HAS_PLACEMENT in row.traits:
        return found
    # An object without a placement of its own may be a resource template with a placement annotation.
    metadata = field["metadata"]
    if placement_annotation.PLACEMENT_ANNOTATION not in metadata["annotations"].names():
        return found
    extensions = placement_annotation.validate_extensions(metadata)
    return found + [cause for cause in extensions if cause not in found]


def without_empty_keys(causes: Iterable[Cause]) -> list[Cause]:
    """The causes that remain where the empty topology key of pod affinity terms has a meaning."""
    return [
        cause
        for cause in causes
        if not (_TERM_KEY.search(cause.field) and cause.message.startswith(_EMPTY_TOPOLOGY_KEY))
    ]


def validate_all(obj: dict[str, object], version: KubernetesVersion = DEFAULT_VERSION) -> list[Cause]:
    """All causes for rejecting the decoded object, including how its pods run: none if it is admitted."""
    from bayplan.validating.pod_runtime import pod_specs  # ten modules that placing pods does not need

    found, pod = validate(obj, version), pod_or_template(obj, version)
    if pod is None or any(cause.reason == fields.TYPE_INVALID for cause in found):
        return found  # an object that cannot be decoded is not validated any further
    field = Field("", obj, version)
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
    row = _row_of(obj)
    return policies.validate_schema(Field("", obj)) if row is not None and row.held_in == "policies" else []


def pod_or_template(obj: dict[str, object], version: KubernetesVersion = DEFAULT_VERSION) -> Field | None:
    """The pod, or the pod template of the object; None if the object creates no pods."""
    row = _row_of(obj)
    if row is None or row.pod_path is None:
        return None
    field = Field("", obj, version)
    for name in row.pod_path:
        field = field[name]
    return field


def has_placement(obj: dict[str, object]) -> bool:
    """Whether the object is of a kind that has a Karmada placement."""
    row = _row_of(obj)
    return row is not None and Trait.HAS_PLACEMENT in row.traits


def _row_of(obj: dict[str, object]) -> ApiKind | None:
    """The kind of the object, if it is known; without a version, the one with its name."""
    kind, version = str(obj.get("kind")), obj.get("apiVersion")
    if not isinstance(version, str):
        return next((row for row in kinds.KINDS.values() if row.kind == kind), None)
    return kinds.KINDS.get((version.split("/")[0] if "/" in version else "", kind))
