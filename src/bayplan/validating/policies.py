"""
PropagationPolicy and ClusterPropagationPolicy: the rules of Karmada's webhook, and those of the policies' schema.

The webhook's rules mirror `ValidatePropagationSpec` and `ValidateFailover` in Karmada's
pkg/util/validation/validation.go for a policy on creation. Of the defaults that Karmada's mutating webhook sets first,
these count: the namespace of a resource selector, without which few policies would pass, and those that
`placements.scheduling_strategy` names.

The schema's rules (enumerations, lengths, minimums) mirror the markers in Karmada's
pkg/apis/policy/v1alpha1/propagation_types.go in the wording of apiextensions-apiserver. An API server applies them
before it calls any webhook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bayplan.validating import go_text, names, placement_annotation, placements, tiers, type_checks
from bayplan.validating.fields import NEGATIVE, Cause, Field
from bayplan.wire import meta as wire_meta
from bayplan.wire import placements as wire

PREEMPT_ALWAYS = "Always"
SERVICE_IMPORT = ("multicluster.x-k8s.io/v1alpha1", "ServiceImport")
GRACEFUL_MODES = ("Gracefully", "Graciously")

NO_DEPENDENCIES = "application failover is set, propagateDeps must be true"
OTHER_NAMESPACE = "namespace of resource selector must be the same as the namespace of the policy"
PREEMPTS_ALL = "name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption"
SUSPENDED_TWICE = "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"
NOT_GRACEFUL = "only takes effect when purgeMode is gracefully"
NO_GRACE = "should not be empty when purgeMode is gracefully"
NOT_POSITIVE = "must be greater than 0"

FieldRule = Callable[[Field], list[Cause]]


def validate_propagation_policy(policy: Field) -> list[Cause]:
    """The causes for rejecting a PropagationPolicy; a missing namespace comes with the request and matches any."""
    return _validate_policy(policy, policy["metadata"]["namespace"].text())


def validate_cluster_propagation_policy(policy: Field) -> list[Cause]:
    """The causes for rejecting a ClusterPropagationPolicy, which may select in any namespace."""
    return _validate_policy(policy, "")


def _validate_policy(policy: Field, namespace: str) -> list[Cause]:
    metadata, spec = policy["metadata"], policy["spec"]
    undecodable = [
        *type_checks.validate_types(metadata, wire_meta.ObjectMeta),
        *type_checks.validate_types(spec, wire.PropagationSpec),
    ]
    return undecodable or [
        *names.validate_metadata(metadata, names.dns_subdomain),
        *placements.validate_placement(spec["placement"]),
        *_validate_dependencies(spec),
        *validate_failover(spec["failover"]),
        *_validate_resource_selectors(spec, namespace),
        *_validate_suspension(spec["suspension"]),
        *placement_annotation.validate_extensions(metadata, spec["placement"]),
    ]


def _validate_dependencies(spec: Field) -> list[Cause]:
    propagate = spec["propagateDeps"]
    if not spec["failover"]["application"].present or propagate.is_true():
        return []
    for selector in spec["resourceSelectors"].items():
        if (selector["apiVersion"].text(), selector["kind"].text()) == SERVICE_IMPORT:
            return []  # Karmada enables it for a ServiceImport
    return [propagate.invalid(NO_DEPENDENCIES, "false")]


def _validate_resource_selectors(spec: Field, namespace: str) -> list[Cause]:
    selectors = spec["resourceSelectors"].items()
    found: list[Cause] = []
    if namespace:
        selected = [selector["namespace"] for selector in selectors]
        found += [field.invalid(OTHER_NAMESPACE) for field in selected if field.text() not in ("", namespace)]
    if spec["preemption"].text() == PREEMPT_ALWAYS:
        found += [one["name"].invalid(PREEMPTS_ALL) for one in selectors if not one["name"].text()]
    return found


def _validate_suspension(suspension: Field) -> list[Cause]:
    if not suspension["dispatching"].is_true() or not suspension["dispatchingOnClusters"]["clusterNames"].items():
        return []
    # Upstream's path contains the field twice.
    shown = go_text.struct_json(suspension.value, wire.Suspension)
    return [suspension["suspension"].invalid(SUSPENDED_TWICE, shown)]


def validate_failover(failover: Field) -> list[Cause]:
    """
    The causes for rejecting the failover behaviour; an absent one is valid.

    The schema's default for an absent purge mode is graceful. The grace period that Karmada's mutating webhook then
    sets counts only where no mode was written; a written mode is validated as it is, as in the recorded answers.
    """
    found = _validate_application_failover(failover["application"])
    for kind in ("application", "cluster"):
        for rule in failover[kind]["statePreservation"]["rules"].items():
            found += rule["aliasLabelName"].check_text(names.label_key)
    return found


def _validate_application_failover(behaviour: Field) -> list[Cause]:
    tolerated, grace = behaviour["decisionConditions"]["tolerationSeconds"], behaviour["gracePeriodSeconds"]
    mode = behaviour["purgeMode"]
    graceful = mode.text() in GRACEFUL_MODES
    found: list[Cause] = []
    if tolerated.number() < 0:
        found.append(tolerated.invalid_number(NEGATIVE))
    if grace.present and mode.present and not graceful:
        found.append(grace.invalid_number(NOT_GRACEFUL))
    if graceful and not grace.present:
        found.append(grace.invalid(NO_GRACE, "null"))
    if grace.present and grace.number() <= 0:
        found.append(grace.invalid_number(NOT_POSITIVE))
    return found


def validate_schema(policy: Field) -> list[Cause]:
    """The causes for which the schema rejects a policy; none for a policy that cannot be decoded."""
    spec = policy["spec"]
    if type_checks.validate_types(spec, wire.PropagationSpec):
        return []
    return [cause for path, rule in _SCHEMA for field in _fields_at(spec, path.split()) for cause in rule(field)]


def _fields_at(field: Field, path: list[str]) -> Iterator[Field]:
    """The fields at the end of a path; `[]` stands for every item of a list. An absent parent has none."""
    if not path:
        yield field
    elif field.present:
        for one in field.items() if path[0] == "[]" else [field[path[0]]]:
            yield from _fields_at(one, path[1:])


def _enum(*supported: str) -> FieldRule:
    def check(field: Field) -> list[Cause]:
        if not field.present or field.text() in supported:
            return []
        return [field.unsupported(supported, go_text.quoted(field.text()))]

    return check


def _check_at_least_one(field: Field) -> list[Cause]:
    if field.number(1) >= 1:
        return []
    return [field.invalid_number(f"{field.path} in body should be greater than or equal to 1")]


def _check_not_empty(field: Field) -> list[Cause]:
    if not field.present:
        return [field.required()]
    return [] if field.items() else [field.invalid(f"{field.path} in body should have at least 1 items", "0")]


def _check_present(field: Field) -> list[Cause]:
    return [] if field.present else [field.required()]


_TERM = "placement clusterAffinities []"
_SCHEDULING = "placement replicaScheduling"
_STATE = "statePreservation rules"
_SCHEMA: tuple[tuple[str, FieldRule], ...] = (
    ("resourceSelectors", _check_not_empty),
    ("resourceSelectors [] apiVersion", _check_present),
    ("resourceSelectors [] kind", _check_present),
    (f"{_TERM} affinityName", _check_present),
    (f"{_TERM} affinityName", tiers.validate_name_length),
    (f"{_TERM} overflowAffinities [] affinityName", _check_present),
    (f"{_TERM} overflowAffinities [] affinityName", tiers.validate_name_length),
    ("placement spreadConstraints [] spreadByField", _enum("cluster", "region", "zone", "provider")),
    (f"{_SCHEDULING} replicaSchedulingType", _enum("Duplicated", "Divided")),
    (f"{_SCHEDULING} replicaDivisionPreference", _enum("Aggregated", "Weighted")),
    (f"{_SCHEDULING} weightPreference dynamicWeight", _enum("AvailableReplicas")),
    (f"{_SCHEDULING} weightPreference staticWeightList [] targetCluster", _check_present),
    (f"{_SCHEDULING} weightPreference staticWeightList [] weight", _check_present),
    (f"{_SCHEDULING} weightPreference staticWeightList [] weight", _check_at_least_one),
    ("placement workloadAffinity affinity groupByLabelKey", _check_present),
    ("placement workloadAffinity antiAffinity groupByLabelKey", _check_present),
    ("preemption", _enum("Always", "Never")),
    ("conflictResolution", _enum("Abort", "Overwrite")),
    ("activationPreference", _enum("Lazy")),
    ("failover application decisionConditions", _check_present),
    ("failover application purgeMode", _enum("Directly", "Gracefully", "Never", "Immediately", "Graciously")),
    (f"failover application {_STATE}", _check_present),
    (f"failover application {_STATE} [] aliasLabelName", _check_present),
    (f"failover application {_STATE} [] jsonPath", _check_present),
    ("failover cluster purgeMode", _enum("Directly", "Gracefully")),
    (f"failover cluster {_STATE}", _check_present),
    (f"failover cluster {_STATE} [] aliasLabelName", _check_present),
    (f"failover cluster {_STATE} [] jsonPath", _check_present),
    ("schedulePriority priorityClassSource", _check_present),
    ("schedulePriority priorityClassSource", _enum("KubePriorityClass")),
    ("schedulePriority priorityClassName", _check_present),
)
