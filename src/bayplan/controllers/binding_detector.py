"""
The bindings that Karmada's detector creates for resource templates and their policies.

Mirrors v1.18.2: pkg/detector for the choice of policy and the binding, pkg/webhook/propagationpolicy/mutating.go for
the defaults. Policies do not preempt each other (in Karmada, `preemption` needs a feature gate).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bayplan.controllers.resource_interpreter import ResourceTemplate
from bayplan.mapping import bindings, placements, selectors
from bayplan.model.bindings import UNKNOWN_LABELS
from bayplan.model.labels import Selector
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
_OF_POLICY = (CLAIMED_NAMESPACE, CLAIMED_NAME, CLAIMED_CLUSTER_WIDE)
_RESERVED_NAMESPACES = ("karmada-system", "karmada-cluster")
_RESERVED_NAMESPACE_PREFIXES = ("karmada-es-", "kube-")
_NO_MATCH, _ALL, _LABELS, _NAME = range(4)


def is_propagated(template: ResourceTemplate) -> bool:
    """Whether Karmada propagates the object: system namespaces are excluded."""
    namespace = template.metadata.namespace
    if (template.metadata.labels or {}).get(CLAIMED_BY):  # propagated by a MultiClusterService
        return False
    return namespace not in _RESERVED_NAMESPACES and not namespace.startswith(_RESERVED_NAMESPACE_PREFIXES)


def claiming_policy(binding: ResourceBinding, policies: PoliciesByName) -> PropagationPolicy | None:
    """The policy that the binding was created for, by its annotations, else by the permanent id in its labels."""
    claimed = claimed_by(binding.metadata)
    if claimed is not None:
        return policies.by_name.get(claimed)
    labels = binding.metadata.labels or {}
    ids = [(key, labels[key]) for key in (NAMESPACED_ID, CLUSTER_WIDE_ID) if labels.get(key)]
    return next((policies.by_id[one] for one in ids if one in policies.by_id), None)


class PoliciesByName(msgspec.Struct, frozen=True):
    """The policies that are not being deleted, by namespace and name, and by the label with their permanent id."""

    by_name: dict[tuple[str, str], PropagationPolicy]
    by_id: dict[tuple[str, str], PropagationPolicy]


def policies_by_name(policies: Iterable[PropagationPolicy]) -> PoliciesByName:
    """The policies, to be found by the bindings that they claim."""
    found = PoliciesByName({}, {})
    for policy in policies:
        if policy.metadata.deletion_timestamp is None:
            found.by_name[policy.metadata.namespace, policy.metadata.name] = policy
            found.by_id.update((label, policy) for label in _permanent_id(policy).items())
    return found


def binding_for(
    template: ResourceTemplate, policy: PropagationPolicy, priorities: Mapping[str, int]
) -> ResourceBinding:
    """The binding that Karmada would create; `priorities` are the values of PriorityClasses by name."""
    meta = template.metadata
    spec = BindingSpec(
        resource=ResourceReference(
            api_version=template.api_version,
            kind=template.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
        ),
        replicas=template.replicas,
        replica_requirements=template.requirements,
        components=list(template.components) if template.components else None,
    )
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
        spec=_under_policy(spec, policy, priorities, meta.labels or {}),
    )


def updated_binding(
    binding: ResourceBinding,
    template: ResourceTemplate | None,
    policy: PropagationPolicy | None,
    priorities: Mapping[str, int],
    *,
    template_altered: bool = False,
) -> ResourceBinding:
    """
    The binding after a change of its template or policy; its result and all fields not derived from them stay.

    Without its template, the groups of the binding are those that its known labels give. A policy with lazy activation
    reaches it only with a change of the template.
    """
    spec, metadata = binding.spec, binding.metadata
    if template is not None and template.components is not None:
        components = list(template.components) or None
        spec = msgspec.structs.replace(spec, replicas=0, replica_requirements=None, components=components)
    elif template is not None and template.interpreted and not spec.components:
        spec = msgspec.structs.replace(spec, replicas=template.replicas, replica_requirements=template.requirements)
    if policy is not None and (policy.spec.activation_preference != LAZY or template_altered):
        labels = bindings.known_labels(binding) if template is None else template.metadata.labels or {}
        spec = _under_policy(spec, policy, priorities, labels)
        kept = {key: text for key, text in (metadata.annotations or {}).items() if key not in _OF_POLICY}
        metadata = msgspec.structs.replace(metadata, annotations={**kept, **_annotations(policy)})
    return msgspec.structs.replace(binding, spec=spec, metadata=metadata)


def _under_policy(
    spec: BindingSpec, policy: PropagationPolicy, priorities: Mapping[str, int], labels: Mapping[str, str]
) -> BindingSpec:
    """The binding's spec with everything that the policy decides; `labels` are the template's."""
    is_namespaced, named = bool(spec.resource.namespace), policy.spec.schedule_priority
    priority = priorities.get(named.priority_class_name) if named is not None and is_namespaced else None
    return msgspec.structs.replace(
        spec,
        placement=placement_of(policy),
        workload_affinity_groups=_groups(labels, policy.spec) if is_namespaced else None,
        scheduler_name=policy.spec.scheduler_name,
        schedule_priority=None if priority is None else BindingSchedulePriority(priority=priority),
    )


class SelectionVerdict(enum.Enum):
    """Whether a policy selects the template of a binding, of which only what the binding reveals is known."""

    SELECTED = enum.auto()
    NOT_SELECTED = enum.auto()
    NOT_KNOWN = enum.auto()


Parsed = dict[int, Selector | None]  # the selectors of policies that are kept, by the identity of what was written


def selection(policy: PropagationPolicy, binding: ResourceBinding, parsed: Parsed) -> SelectionVerdict:
    """Whether the policy selects the template of the binding by its kind, name and known labels."""
    named, namespace = binding.spec.resource, policy.metadata.namespace
    found = SelectionVerdict.NOT_SELECTED
    for one in policy.spec.resource_selectors or ():
        if (one.api_version, one.kind) != (named.api_version, named.kind):
            continue
        if (one.namespace or namespace or named.namespace) != named.namespace or one.name not in ("", named.name):
            continue
        if one.name or one.label_selector is None:
            return SelectionVerdict.SELECTED
        if id(one) not in parsed:
            valid = selectors.selector_of(one.label_selector)
            parsed[id(one)] = valid if valid is not None and placements.is_valid_selector(valid) else None
        by_labels = parsed[id(one)]
        if by_labels is None:
            continue
        labels = bindings.known_labels(binding)
        is_open = UNKNOWN_LABELS in labels
        if all(need.matches(labels) for need in by_labels.requirements if not is_open or need.key in labels):
            if all(need.key in labels for need in by_labels.requirements) or not is_open:
                return SelectionVerdict.SELECTED
            found = SelectionVerdict.NOT_KNOWN
    return found


def claimed_for(binding: ResourceBinding, policy: PropagationPolicy | None) -> ResourceBinding:
    """The binding with the labels and annotations that say which policy it belongs to; None: to no policy."""
    meta = binding.metadata
    labels = {key: value for key, value in (meta.labels or {}).items() if key not in (NAMESPACED_ID, CLUSTER_WIDE_ID)}
    annotations = {key: text for key, text in (meta.annotations or {}).items() if key not in _OF_POLICY}
    if policy is not None:
        labels, annotations = {**labels, **_permanent_id(policy)}, {**annotations, **_annotations(policy)}
    metadata = msgspec.structs.replace(meta, labels=labels, annotations=annotations)
    return msgspec.structs.replace(binding, metadata=metadata)


def is_plain(policy: PropagationPolicy) -> bool:
    """Whether the policy decides nothing but the placement, the same for all bindings."""
    spec, annotations = policy.spec, policy.metadata.annotations or {}
    return (
        spec.placement.workload_affinity is None
        and spec.schedule_priority is None
        and placement_annotation.PLACEMENT_ANNOTATION not in annotations
    )


def placement_of(policy: PropagationPolicy) -> dict[str, Any]:
    """The placement of the policy as its bindings have it."""
    return placement_with_defaults(msgspec.to_builtins(policy.spec.placement))


def missing_group_keys(binding: ResourceBinding, policy: PropagationPolicy) -> list[str]:
    """
    The keys by which the policy groups workloads, if the value of the binding's template is not known.

    By a key that the binding was grouped by before, its groups are known, also if it has none.
    """
    written = policy.spec.placement.workload_affinity
    if written is None or not binding.spec.resource.namespace:
        return []
    labels = bindings.known_labels(binding)
    if UNKNOWN_LABELS not in labels:
        return []
    keys = [term.group_by_label_key for term in (written.affinity, written.anti_affinity) if term is not None]
    return [key for key in keys if key not in labels and key not in _grouped_by(binding)]


def _grouped_by(binding: ResourceBinding) -> list[str]:
    """The keys of Karmada's workload affinity in the binding's own placement."""
    written = (binding.spec.placement or {}).get("workloadAffinity")
    terms = [written.get(name) for name in ("affinity", "antiAffinity")] if isinstance(written, dict) else []
    return [str(term.get("groupByLabelKey")) for term in terms if isinstance(term, dict)]


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


def claimed_by(metadata: ObjectMeta) -> tuple[str, str] | None:
    """Namespace and name of the policy that has claimed the template or created the binding, if any."""
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    if labels.get(NAMESPACED_ID) and annotations.get(CLAIMED_NAMESPACE) and annotations.get(CLAIMED_NAME):
        return annotations[CLAIMED_NAMESPACE], annotations[CLAIMED_NAME]
    if labels.get(CLUSTER_WIDE_ID) and annotations.get(CLAIMED_CLUSTER_WIDE):
        return "", annotations[CLAIMED_CLUSTER_WIDE]
    return None


def explicitness(template: ResourceTemplate, policy: PropagationPolicy) -> int:
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
    if by_labels is None or not placements.is_valid_selector(by_labels):
        return _NO_MATCH
    return _LABELS if by_labels.matches(meta.labels or {}) else _NO_MATCH


def _groups(labels: Mapping[str, str], spec: PropagationSpec) -> WorkloadAffinityGroups | None:
    written = spec.placement.workload_affinity
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


def _annotations(policy: PropagationPolicy) -> dict[str, str]:
    """Which policy it is, and Bayplan's own placement fields, which a binding created from files keeps."""
    meta = policy.metadata
    named = {CLAIMED_NAMESPACE: meta.namespace, CLAIMED_NAME: meta.name}
    found = named if meta.namespace else {CLAIMED_CLUSTER_WIDE: meta.name}
    text = (meta.annotations or {}).get(placement_annotation.PLACEMENT_ANNOTATION)
    return found if text is None else {**found, placement_annotation.PLACEMENT_ANNOTATION: text}
