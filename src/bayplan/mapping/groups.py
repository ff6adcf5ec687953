"""
The group that a pod names, and the terms that this gives it.

A member has a label that no manifest can have, by which terms select it: one domain of a topology key is affinity to
the own group, and the rules between groups are affinity and anti-affinity to members of other groups. So the index
counts members as it counts any peers, and rules between groups are symmetric as those between pods are.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.caching import METER, memoised
from bayplan.mapping import selectors
from bayplan.model import labels as label_model
from bayplan.model.groups import (
    COSCHEDULING_LABEL,
    GROUP,
    GROUP_AFFINITY,
    GROUP_ANNOTATIONS,
    GROUP_MIN,
    GROUP_TOPOLOGY,
    GROUP_TOPOLOGY_PREFERRED,
    MEMBER_OF,
    NO_TOPOLOGY,
    GroupDeclaration,
    GroupMembership,
    GroupSource,
    GroupTopology,
)
from bayplan.model.terms import AffinityTerms, PodTerm
from bayplan.model.workloads import Needs
from bayplan.validating import groups as group_rules
from bayplan.validating.affinity import PREFERRED, REQUIRED
from bayplan.validating.fields import Field
from bayplan.validating.groups import SIDES
from bayplan.wire.pods import CoschedulingPodGroup, Pod, PodAffinityTerm, PodGroup

COMPOSITE = "it is part of a CompositePodGroup, which is not supported"
WEIGHT_OF_OWN_DOMAIN = 100  # of the preferred domain of the own group: the highest that a term can have
Written = tuple[tuple[str, str], ...]


class MemberOf(msgspec.Struct, frozen=True):
    """What makes a pod a member: its group, what its annotation says between groups, and what is wrong with either."""

    membership: GroupMembership | None
    between_groups: str = ""
    fault: str = ""


NO_MEMBER = MemberOf(None)
_READS_OWN_LABELS = "atchLabelKeys"  # matchLabelKeys or mismatchLabelKeys


def member_of(pod: Pod) -> MemberOf:
    """The group that the pod names."""
    meta, by_object = pod.metadata, pod.spec.scheduling_group
    label = meta.labels.get(COSCHEDULING_LABEL, "") if meta.labels else ""
    annotations: Written = ()
    if meta.annotations:
        annotations = tuple(
            (name, meta.annotations[name]) for name in sorted(GROUP_ANNOTATIONS & meta.annotations.keys())
        )
    if by_object is None and not label and not annotations:
        return NO_MEMBER
    pod_labels = tuple(sorted((meta.labels or {}).items())) if annotations else ()
    return _read_membership(by_object.pod_group_name if by_object is not None else "", label, annotations, pod_labels)


@memoised(4096)
def _read_membership(by_object: str, label: str, annotations: Written, pod_labels: Written) -> MemberOf:
    METER.charge(sum(len(text) for _, text in annotations))
    written, labels = dict(annotations), dict(pod_labels)
    if label:
        labels[COSCHEDULING_LABEL] = label
    metadata = {"annotations": written, "labels": labels}
    content = {"metadata": metadata, "spec": {"schedulingGroup": {"podGroupName": by_object}}}
    if causes := group_rules.validate_membership(Field("", content), labels):
        return MemberOf(None, fault="; ".join(str(cause) for cause in causes))
    return MemberOf(_membership(by_object, label, written), written.get(GROUP_AFFINITY, ""))


def _membership(by_object: str, label: str, annotations: Mapping[str, str]) -> GroupMembership | None:
    if by_object:
        return GroupMembership(GroupSource.POD_GROUP, by_object)
    if label:
        return GroupMembership(GroupSource.COSCHEDULING, label)
    if GROUP not in annotations:
        return None
    preferred = annotations.get(GROUP_TOPOLOGY_PREFERRED, "")
    topology = GroupTopology(
        annotations.get(GROUP_TOPOLOGY, ""),
        f"metadata.annotations[{GROUP_TOPOLOGY}]",
        tuple(group_rules.preferred_keys(preferred)) if preferred else (),
        f"metadata.annotations[{GROUP_TOPOLOGY_PREFERRED}]",
    )
    least = group_rules.members(annotations.get(GROUP_MIN, "")) or 0
    return GroupMembership(GroupSource.ANNOTATION, annotations[GROUP], least, topology)


def declaration_of(written: PodGroup | CoschedulingPodGroup) -> GroupDeclaration:
    """What a PodGroup declares; without a gang policy, its pods are placed one by one."""
    namespace, name = written.metadata.namespace, written.metadata.name
    if isinstance(written, CoschedulingPodGroup):
        return GroupDeclaration(GroupSource.COSCHEDULING, namespace, name, written.spec.min_member)
    spec = written.spec
    gang, constraints = spec.scheduling_policy.gang, spec.scheduling_constraints
    keys = [one.key for one in constraints.topology or ()] if constraints is not None else []
    path = f"PodGroup {namespace}/{name}: spec.schedulingConstraints.topology[0].key"
    return GroupDeclaration(
        GroupSource.POD_GROUP,
        namespace,
        name,
        0 if gang is None else gang.min_count,
        GroupTopology(keys[0], path) if keys else NO_TOPOLOGY,
        spec.priority,
        COMPOSITE if spec.parent_composite_pod_group_name else "",
    )


def needs_of_member(
    needs: Needs, key: str, topology: GroupTopology, between_groups: str, labels: label_model.Labels
) -> Needs:
    """The needs of a member of a group, with the terms that this gives it."""
    reads_labels = _READS_OWN_LABELS in between_groups
    return _with_terms(needs, key, topology, between_groups, tuple(sorted(labels.items())) if reads_labels else ())


@memoised(4096)
def _with_terms(needs: Needs, key: str, topology: GroupTopology, between_groups: str, pod_labels: Written) -> Needs:
    METER.charge(len(between_groups))
    own = label_model.selector_of([label_model.Requirement(MEMBER_OF, label_model.IN, (key,))])
    found = needs.affinity
    required, anti, preferred, anti_preferred = _between(between_groups, key, dict(pod_labels))
    if topology.required:
        required.insert(0, PodTerm(own, topology.required, path=topology.required_path))
    for name in topology.preferred:
        preferred.append(PodTerm(own, name, weight=WEIGHT_OF_OWN_DOMAIN, path=topology.preferred_path))
    if not (required or anti or preferred or anti_preferred):
        return needs
    affinity = AffinityTerms(
        found.required,
        (*found.anti_required, *anti),
        (*found.preferred, *preferred),
        (*found.anti_preferred, *anti_preferred),
        (*found.group_required, *required),
    )
    return msgspec.structs.replace(needs, affinity=affinity)


def _between(
    text: str, key: str, labels: dict[str, str]
) -> tuple[list[PodTerm], list[PodTerm], list[PodTerm], list[PodTerm]]:
    """The terms of the annotation: required, required against, preferred, preferred against."""
    found: tuple[list[PodTerm], list[PodTerm], list[PodTerm], list[PodTerm]] = ([], [], [], [])
    if not text:
        return found
    read = group_rules.read_group_affinity(text)
    in_group = label_model.Requirement(MEMBER_OF, label_model.EXISTS, ())
    not_own = label_model.Requirement(MEMBER_OF, label_model.NOT_IN, (key,))
    for position, (side, affinity) in enumerate(
        zip(SIDES, (read.group_affinity, read.group_anti_affinity), strict=True)
    ):
        if affinity is None:
            continue
        # Affinity counts the own group: its first member decides, as for pods that have affinity to themselves.
        scope = (in_group,) if position == 0 else (in_group, not_own)
        path = f"metadata.annotations[{GROUP_AFFINITY}].{side}"
        for i, term in enumerate(affinity.required_during_scheduling_ignored_during_execution or ()):
            found[position].append(_term(term, f"{path}.{REQUIRED}[{i}]", scope, labels))
        for i, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
            at = f"{path}.{PREFERRED}[{i}].podAffinityTerm"
            found[2 + position].append(_term(weighted.pod_affinity_term, at, scope, labels, weighted.weight))
    return found


def _term(
    term: PodAffinityTerm,
    path: str,
    scope: tuple[label_model.Requirement, ...],
    labels: dict[str, str],
    weight: int = 0,
) -> PodTerm:
    selector = selectors.selector_of(term.label_selector)
    if selector is not None:
        selector = selectors.with_label_keys(selector, labels, term.match_label_keys, term.mismatch_label_keys)
    if selector is not None:
        selector = label_model.selector_of((*selector.requirements, *scope))
    return PodTerm(
        selector,
        term.topology_key,
        None if term.namespaces is None else tuple(term.namespaces),
        selectors.selector_of(term.namespace_selector),
        weight=weight,
        path=path,
    )
