"""
The bindings that Karmada's detector creates for resource templates and their policies.

Mirrors v1.18.2: pkg/detector for the choice of policy and the binding, pkg/webhook/propagationpolicy/mutating.go for
the defaults. Policies do not preempt each other (in Karmada, `preemption` needs a feature gate).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.controllers.resource_interpreter import ResourceTemplate
from bayplan.mapping import selectors
from bayplan.validating import placement_annotation
from bayplan.wire import kinds
from bayplan.wire.fleets import (
    BindingSchedulePriority,
    BindingSpec,
    ResourceBinding,
    ResourceReference,
    WorkloadAffinityGroups,
)
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.placements import PropagationPolicy, PropagationSpec, ResourceSelector

_BINDING_VERSION = kinds.named("ResourceBinding").api_version
NAMESPACED_ID = "propagationpolicy.karmada.io/permanent-id"
CLUSTER_WIDE_ID = "clusterpropagationpolicy.karmada.io/permanent-id"
CLAIMED_NAMESPACE = "propagationpolicy.karmada.io/namespace"
CLAIMED_NAME = "propagationpolicy.karmada.io/name"
CLAIMED_CLUSTER_WIDE = "clusterpropagationpolicy.karmada.io/name"
CLAIMED_BY = "resourcetemplate.karmada.io/claimed-by"
LAZY = "Lazy"
_RESERVED_NAMESPACES = ("karmada-system", "karmada-cluster")
_RESERVED_NAMESPACE_PREFIXES = ("karmada-es-", "kube-")
_NO_MATCH, _ALL, _LABELS, _NAME = range(4)


def is_propagated(template: ResourceTemplate) -> bool:
    """Whether Karmada propagates the object: system namespaces are excluded."""
    namespace = template.metadata.namespace
    if (template.metadata.labels or {}).get(CLAIMED_BY):  # propagated by a MultiClusterService
        return False
    return namespace not in _RESERVED_NAMESPACES and not namespace.startswith(_RESERVED_NAMESPACE_PREFIXES)


def policy_for(template: ResourceTemplate, policies: Sequence[PropagationPolicy]) -> PropagationPolicy | None:
    """
    The policy of the template: the one that has claimed it, else the best of its namespace, else the best cluster-wide.

    Among those that select it: the highest `priority`, then the most explicit selector, then the first name.
    """
    alive = [policy for policy in policies if policy.metadata.deletion_timestamp is None]
    claimed = _claimed_by(template)
    if claimed is not None:
        found = next((p for p in alive if (p.metadata.namespace, p.metadata.name) == claimed), None)
        return found if found is not None and _explicitness(template, found) else None
    namespace = template.metadata.namespace
    own = [policy for policy in alive if namespace and policy.metadata.namespace == namespace]
    return _best(template, own) or _best(template, [policy for policy in alive if not policy.metadata.namespace])


def binding_for(
    template: ResourceTemplate, policy: PropagationPolicy, priorities: Mapping[str, int]
) -> ResourceBinding:
    """The binding that Karmada would create; `priorities` are the values of PriorityClasses by name."""
    meta, spec = template.metadata, policy.spec
    placement = placement_with_defaults(msgspec.to_builtins(spec.placement))
    named = spec.schedule_priority
    priority = priorities.get(named.priority_class_name) if named is not None and meta.namespace else None
    return ResourceBinding(
        api_version=_BINDING_VERSION,
        kind="ResourceBinding" if meta.namespace else "ClusterResourceBinding",
        metadata=ObjectMeta(
            name=template.binding_name,
            namespace=meta.namespace,
            labels=_permanent_id(policy),
            annotations=_annotations(policy),
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=BindingSpec(
            resource=ResourceReference(
                api_version=template.api_version,
                kind=template.kind,
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
            ),
            replicas=template.replicas,
            replica_requirements=template.requirements,
            placement=placement,
            workload_affinity_groups=_groups(template, spec) if meta.namespace else None,
            scheduler_name=spec.scheduler_name,
            schedule_priority=None if priority is None else BindingSchedulePriority(priority=priority),
        ),
    )


def updated_binding(
    binding: ResourceBinding,
    template: ResourceTemplate,
    policy: PropagationPolicy | None,
    priorities: Mapping[str, int],
) -> ResourceBinding:
    """The binding after a change of its template or policy; its result and all fields not derived from them stay."""
    spec = binding.spec
    if template.interpreted and not spec.components:
        spec = msgspec.structs.replace(spec, replicas=template.replicas, replica_requirements=template.requirements)
    metadata = binding.metadata
    if policy is not None and policy.spec.activation_preference != LAZY:
        created = binding_for(template, policy, priorities)
        spec = msgspec.structs.replace(
            spec,
            placement=created.spec.placement,
            scheduler_name=created.spec.scheduler_name,
            schedule_priority=created.spec.schedule_priority,
            workload_affinity_groups=created.spec.workload_affinity_groups,
        )
        annotations = {**(metadata.annotations or {}), **(created.metadata.annotations or {})}
        metadata = msgspec.structs.replace(metadata, annotations=annotations or None)
    return msgspec.structs.replace(binding, spec=spec, metadata=metadata)


def placement_with_defaults(placement: dict[str, Any]) -> dict[str, Any]:
    """The placement with the defaults of the API server and the webhook."""
    filled = dict(placement)
    if "spreadConstraints" in placement:
        filled["spreadConstraints"] = [_spread(constraint) for constraint in placement["spreadConstraints"]]
    strategy = placement.get("replicaScheduling")
    if strategy is not None:
        filled["replicaScheduling"] = strategy = {"replicaSchedulingType": "Divided", **strategy}
        if strategy["replicaSchedulingType"] == "Divided":
            strategy.setdefault("replicaDivisionPreference", "Weighted")
    return filled


def _spread(written: Mapping[str, Any]) -> dict[str, Any]:
    filled = dict(written)
    if not filled.get("spreadByField") and not filled.get("spreadByLabel"):
        filled["spreadByField"] = "cluster"
    filled["minGroups"] = filled.get("minGroups") or 1
    return filled


def _claimed_by(template: ResourceTemplate) -> tuple[str, str] | None:
    """Namespace and name of the policy that has claimed the template, if any."""
    labels, annotations = template.metadata.labels or {}, template.metadata.annotations or {}
    if labels.get(NAMESPACED_ID) and annotations.get(CLAIMED_NAMESPACE) and annotations.get(CLAIMED_NAME):
        return annotations[CLAIMED_NAMESPACE], annotations[CLAIMED_NAME]
    if labels.get(CLUSTER_WIDE_ID) and annotations.get(CLAIMED_CLUSTER_WIDE):
        return "", annotations[CLAIMED_CLUSTER_WIDE]
    return None


def _best(template: ResourceTemplate, policies: Iterable[PropagationPolicy]) -> PropagationPolicy | None:
    fitting = [(policy, _explicitness(template, policy)) for policy in policies]
    ranked = [(-(policy.spec.priority or 0), -how, policy.metadata.name, policy) for policy, how in fitting if how]
    return min(ranked, key=lambda entry: entry[:3])[3] if ranked else None


def _explicitness(template: ResourceTemplate, policy: PropagationPolicy) -> int:
    """How explicitly the policy selects the template: not at all, with all of its kind, by labels, by name."""
    namespace = policy.metadata.namespace
    listed = policy.spec.resource_selectors or ()
    return max((_selected(template, selector, namespace) for selector in listed), default=_NO_MATCH)


def _selected(template: ResourceTemplate, selector: ResourceSelector, namespace: str) -> int:
    meta = template.metadata
    where = selector.namespace or namespace
    if (template.api_version, template.kind) != (selector.api_version, selector.kind):
        return _NO_MATCH
    if where and where != meta.namespace:
        return _NO_MATCH
    if selector.name:
        return _NAME if selector.name == meta.name else _NO_MATCH
    if selector.label_selector is None:
        return _ALL
    by_labels = selectors.selector_of(selector.label_selector)
    return _LABELS if by_labels is not None and by_labels.matches(meta.labels or {}) else _NO_MATCH


def _groups(template: ResourceTemplate, spec: PropagationSpec) -> WorkloadAffinityGroups | None:
    written, labels = spec.placement.workload_affinity, template.metadata.labels or {}
    if written is None:
        return None
    terms = (written.affinity, written.anti_affinity)
    keys = (term.group_by_label_key if term is not None else "" for term in terms)
    affinity, anti_affinity = (f"{key}={labels[key]}" if key in labels else "" for key in keys)
    return (
        WorkloadAffinityGroups(affinity_group=affinity, anti_affinity_group=anti_affinity)
        if affinity or anti_affinity
        else None
    )


def _permanent_id(policy: PropagationPolicy) -> dict[str, str]:
    key = NAMESPACED_ID if policy.metadata.namespace else CLUSTER_WIDE_ID
    return {key: (policy.metadata.labels or {}).get(key) or policy.metadata.name}


def _annotations(policy: PropagationPolicy) -> dict[str, str] | None:
    """The annotation with Bayplan's own placement fields, which a binding created from files keeps."""
    text = (policy.metadata.annotations or {}).get(placement_annotation.PLACEMENT_ANNOTATION)
    return None if text is None else {placement_annotation.PLACEMENT_ANNOTATION: text}
