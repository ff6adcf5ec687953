"""
Templates and policies → bindings, as Karmada's detector makes them.

Mirrors v1.18.2: pkg/detector for the choice of policy and the binding, pkg/webhook/propagationpolicy/mutating.go for
what is filled in. Policies do not take templates from each other (`preemption` needs a feature gate there, too).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.controllers.resource_interpreter import Template
from bayplan.mapping import selectors
from bayplan.validating import placement_annotation
from bayplan.wire.fleets import (
    BindingSchedulePriority,
    BindingSpec,
    ResourceBinding,
    ResourceReference,
    WorkloadAffinityGroups,
)
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.placements import PropagationPolicy, PropagationSpec, ResourceSelector

NAMESPACED_ID = "propagationpolicy.karmada.io/permanent-id"
CLUSTER_WIDE_ID = "clusterpropagationpolicy.karmada.io/permanent-id"
CLAIMED_NAMESPACE = "propagationpolicy.karmada.io/namespace"
CLAIMED_NAME = "propagationpolicy.karmada.io/name"
CLAIMED_CLUSTER_WIDE = "clusterpropagationpolicy.karmada.io/name"
CLAIMED_BY = "resourcetemplate.karmada.io/claimed-by"
LAZY = "Lazy"
_RESERVED = ("karmada-system", "karmada-cluster")
_RESERVED_PREFIXES = ("karmada-es-", "kube-")
_NO_MATCH, _ALL, _LABELS, _NAME = range(4)


def is_propagated(template: Template) -> bool:
    """Whether Karmada looks at the object at all: namespaces of its own and of Kubernetes are left alone."""
    namespace = template.metadata.namespace
    if (template.metadata.labels or {}).get(CLAIMED_BY):  # a MultiClusterService takes care of it
        return False
    return namespace not in _RESERVED and not namespace.startswith(_RESERVED_PREFIXES)


def policy_for(template: Template, policies: Sequence[PropagationPolicy]) -> PropagationPolicy | None:
    """
    The policy that the template follows: the one that has claimed it, else the best of its namespace, else of all.

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


def binding_for(template: Template, policy: PropagationPolicy, priorities: Mapping[str, int]) -> ResourceBinding:
    """The binding that Karmada would make; `priorities` are those of the PriorityClasses, by name."""
    meta, spec = template.metadata, policy.spec
    placement = with_defaults(msgspec.to_builtins(spec.placement))
    wish = spec.schedule_priority
    priority = priorities.get(wish.priority_class_name) if wish is not None and meta.namespace else None
    return ResourceBinding(
        api_version="work.karmada.io/v1alpha2",
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


def refreshed(
    binding: ResourceBinding, template: Template, policy: PropagationPolicy | None, priorities: Mapping[str, int]
) -> ResourceBinding:
    """The binding after its template or policy changed; its result stays, and so does what nobody can tell."""
    spec = binding.spec
    if template.interpreted and not spec.components:
        spec = msgspec.structs.replace(spec, replicas=template.replicas, replica_requirements=template.requirements)
    metadata = binding.metadata
    if policy is not None and policy.spec.activation_preference != LAZY:
        made = binding_for(template, policy, priorities)
        spec = msgspec.structs.replace(
            spec,
            placement=made.spec.placement,
            scheduler_name=made.spec.scheduler_name,
            schedule_priority=made.spec.schedule_priority,
            workload_affinity_groups=made.spec.workload_affinity_groups,
        )
        annotations = {**(metadata.annotations or {}), **(made.metadata.annotations or {})}
        metadata = msgspec.structs.replace(metadata, annotations=annotations or None)
    return msgspec.structs.replace(binding, spec=spec, metadata=metadata)


def with_defaults(placement: dict[str, Any]) -> dict[str, Any]:
    """The placement with what API server and webhook fill in; what was given stays as it is."""
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


def _claimed_by(template: Template) -> tuple[str, str] | None:
    """Namespace and name of the policy that has claimed the template already."""
    labels, notes = template.metadata.labels or {}, template.metadata.annotations or {}
    if labels.get(NAMESPACED_ID) and notes.get(CLAIMED_NAMESPACE) and notes.get(CLAIMED_NAME):
        return notes[CLAIMED_NAMESPACE], notes[CLAIMED_NAME]
    if labels.get(CLUSTER_WIDE_ID) and notes.get(CLAIMED_CLUSTER_WIDE):
        return "", notes[CLAIMED_CLUSTER_WIDE]
    return None


def _best(template: Template, policies: Iterable[PropagationPolicy]) -> PropagationPolicy | None:
    fitting = [(policy, _explicitness(template, policy)) for policy in policies]
    ranked = [(-(policy.spec.priority or 0), -how, policy.metadata.name, policy) for policy, how in fitting if how]
    return min(ranked, key=lambda entry: entry[:3])[3] if ranked else None


def _explicitness(template: Template, policy: PropagationPolicy) -> int:
    """How closely the policy names the template: not at all, as one of all, by labels, by name."""
    namespace = policy.metadata.namespace
    listed = policy.spec.resource_selectors or ()
    return max((_selected(template, selector, namespace) for selector in listed), default=_NO_MATCH)


def _selected(template: Template, selector: ResourceSelector, namespace: str) -> int:
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
    wanted = selectors.selector_of(selector.label_selector)
    return _LABELS if wanted is not None and wanted.matches(meta.labels or {}) else _NO_MATCH


def _groups(template: Template, spec: PropagationSpec) -> WorkloadAffinityGroups | None:
    written, labels = spec.placement.workload_affinity, template.metadata.labels or {}
    if written is None:
        return None
    terms = (written.affinity, written.anti_affinity)
    keys = (term.group_by_label_key if term is not None else "" for term in terms)
    together, apart = (f"{key}={labels[key]}" if key in labels else "" for key in keys)
    return WorkloadAffinityGroups(affinity_group=together, anti_affinity_group=apart) if together or apart else None


def _permanent_id(policy: PropagationPolicy) -> dict[str, str]:
    key = NAMESPACED_ID if policy.metadata.namespace else CLUSTER_WIDE_ID
    return {key: (policy.metadata.labels or {}).get(key) or policy.metadata.name}


def _annotations(policy: PropagationPolicy) -> dict[str, str] | None:
    """The rules that Karmada has no field for; a binding made from files keeps them."""
    text = (policy.metadata.annotations or {}).get(placement_annotation.PLACEMENT_ANNOTATION)
    return None if text is None else {placement_annotation.PLACEMENT_ANNOTATION: text}
