"""
Groups of pods: the annotations `bayplan.io/group` and those that begin with it, and PodGroups.

Kubernetes has no field for rules between groups; `bayplan.io/group-affinity` holds them as YAML or JSON. A malformed
annotation is a cause with its path; it is never ignored. Does not know the other members of a group.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from bayplan.model.groups import (
    COSCHEDULING_LABEL,
    GROUP,
    GROUP_AFFINITY,
    GROUP_ANNOTATIONS,
    GROUP_MIN,
    GROUP_TOPOLOGY,
    GROUP_TOPOLOGY_PREFERRED,
)
from bayplan.validating import affinity, fields, names, type_checks
from bayplan.validating.affinity import MAX_ANNOTATION_LENGTH, REQUIRED_DURING_EXECUTION, PodAffinityScope
from bayplan.validating.fields import Cause, Field
from bayplan.wire import pods as wire_pods

OF_GROUP_ITSELF = (GROUP_MIN, GROUP_TOPOLOGY, GROUP_TOPOLOGY_PREFERRED)
MAX_MEMBERS = 100_000
MAX_PREFERRED_KEYS = 8  # each is a term of every member

NEEDS_GROUP = f"the pod is in no group: set {GROUP}"
DECLARED_BY_OBJECT = "the PodGroup of the pod says this"
ONE_GROUP = "a pod is in one group, and the pod names another in "
NOT_EXTENDED = "may not be set on terms between groups"
ONE_POLICY = "exactly one of `basic` and `gang`"
SIDES = ("groupAffinity", "groupAntiAffinity")


def validate_membership(pod: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    """The causes for rejecting what a pod says of its group, or a template, which has no `pod_labels` yet."""
    metadata = pod["metadata"]
    annotations = metadata["annotations"]
    written = GROUP_ANNOTATIONS.intersection(annotations.names())
    by_object = pod["spec"]["schedulingGroup"]["podGroupName"]
    found = by_object.check_text(names.dns_subdomain, optional=True)
    label = metadata["labels"].entry(COSCHEDULING_LABEL)
    if by_object.text() and label.text():
        found.append(by_object.forbidden(f"{ONE_GROUP}the label {COSCHEDULING_LABEL}"))
    if not written:
        return found
    group, holder = annotations.entry(GROUP), next((one for one in (by_object, label) if one.text()), None)
    if GROUP in written:
        found += group.check_text(names.dns_subdomain)
        if holder is not None:
            found.append(group.forbidden(ONE_GROUP + holder.path))
    of_object = [annotations.entry(name) for name in OF_GROUP_ITSELF if name in written]
    if GROUP not in written:
        said = DECLARED_BY_OBJECT if holder is not None else NEEDS_GROUP
        found += [one.forbidden(said) for one in of_object]
        if holder is None and GROUP_AFFINITY in written:
            found.append(annotations.entry(GROUP_AFFINITY).forbidden(NEEDS_GROUP))
    found += _validate_values(annotations, written)
    if GROUP_AFFINITY in written:
        found += validate_group_affinity(annotations.entry(GROUP_AFFINITY), pod_labels)
    return found


def _validate_values(annotations: Field, written: AbstractSet[str]) -> list[Cause]:
    found: list[Cause] = []
    least = annotations.entry(GROUP_MIN)
    if GROUP_MIN in written and members(least.text()) is None:
        found.append(least.invalid(f"expected a whole number from 1 to {MAX_MEMBERS}"))
    if GROUP_TOPOLOGY in written:
        found += annotations.entry(GROUP_TOPOLOGY).check_text(names.label_key)
    preferred = annotations.entry(GROUP_TOPOLOGY_PREFERRED)
    if GROUP_TOPOLOGY_PREFERRED in written:
        keys = preferred_keys(preferred.text())
        for key in keys[:MAX_PREFERRED_KEYS]:
            found += Field(preferred.path, key).check_text(names.label_key)
        if len(keys) > MAX_PREFERRED_KEYS:
            found.append(preferred.malformed(f"more than {MAX_PREFERRED_KEYS} keys"))
    return found


def members(text: str) -> int | None:
    """The number of members that the text of `bayplan.io/group-min` requires; None if it is none."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(MAX_MEMBERS)):
        return None
    return int(text) if 1 <= int(text) <= MAX_MEMBERS else None


def preferred_keys(text: str) -> list[str]:
    """The keys of a comma-separated list, the most preferred first."""
    return [key.strip() for key in text.split(",")]


def validate_group_affinity(written: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    """The causes for rejecting the annotation with the rules between groups."""
    if len(written.text()) > MAX_ANNOTATION_LENGTH:
        return [written.malformed(f"longer than {MAX_ANNOTATION_LENGTH} characters")]
    from bayplan.validating import yaml_text  # imports PyYAML, which most inputs do not need

    try:
        rules = Field(written.path, yaml_text.parse(written.text()))
    except ValueError as error:
        return [written.malformed(str(error))]
    if not rules.present:
        return [type_checks.wrong_type(rules, f"a mapping with {SIDES[0]} or {SIDES[1]}")]
    found = type_checks.validate_types(rules, wire_pods.AnnotatedGroupAffinity, closed=True)
    if any(cause.reason == fields.TYPE_INVALID for cause in found):
        return found
    terms = list(affinity.pod_terms(rules, SIDES))
    found += affinity.validate_pod_affinity(rules, PodAffinityScope(pod_labels), SIDES)
    for side in SIDES:
        during_execution = rules[side][REQUIRED_DURING_EXECUTION]
        found += [during_execution.forbidden(NOT_EXTENDED)] if during_execution.present else []
    for term in terms:
        for name in wire_pods.OWN_TERM_FIELDS:
            # Those of affinity and of preferred terms are forbidden there anyway.
            if term.field[name].present and term.anti and term.weighted is None:
                found.append(term.field[name].forbidden(NOT_EXTENDED))
    return found or affinity.unreadable(written, read_group_affinity)


def read_group_affinity(text: str) -> wire_pods.AnnotatedGroupAffinity:
    """The content of the annotation; raises ValueError if it does not have the annotation's types."""
    from bayplan.validating import yaml_text

    try:
        return msgspec.convert(affinity.without_nulls(yaml_text.parse(text)), wire_pods.AnnotatedGroupAffinity)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def validate_pod_group(pod_group: Field) -> list[Cause]:
    """The causes for rejecting a PodGroup, of Kubernetes or of scheduler-plugins, as far as its fields are read."""
    found, spec = names.validate_metadata(pod_group["metadata"], names.dns_subdomain), pod_group["spec"]
    if pod_group["apiVersion"].text().startswith(COSCHEDULING_LABEL.partition("/")[0]):
        return found + _validate_least(spec["minMember"])
    policy, topology = spec["schedulingPolicy"], spec["schedulingConstraints"]["topology"]
    if not policy["basic"].present and not policy["gang"].present:
        found.append(policy.required(ONE_POLICY))
    if policy["basic"].present and policy["gang"].present:
        found.append(policy.forbidden(ONE_POLICY))
    if policy["gang"].present:
        found += _validate_least(policy["gang"]["minCount"])
    found += [topology.too_many(1)] if len(topology.items()) > 1 else []
    for one in topology.items():
        found += one["key"].check_text(names.label_key)
    return found


def _validate_least(field: Field) -> list[Cause]:
    return [] if field.number() > 0 else [field.invalid_number("must be greater than zero")]
