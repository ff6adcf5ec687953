"""
Node affinity and pod affinity, in `spec.affinity` and in the annotation `bayplan.io/affinity`.

Mirrors `validateNodeAffinity` and `validatePodAffinity` in pkg/apis/core/validation/validation.go. The annotation holds
pod affinity terms with the fields that Kubernetes lacks (`requiredDuringSchedulingRequiredDuringExecution`, `limit`,
`tolerateNamespaces`), as YAML or JSON. A malformed annotation is a cause with its path; it is never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from bayplan.model import labels as model_labels
from bayplan.model import node_selectors
from bayplan.validating import fields, names, selectors, type_checks
from bayplan.validating.fields import Cause, Field
from bayplan.wire import meta as wire_meta
from bayplan.wire import pods as wire_pods

AFFINITY_ANNOTATION = "bayplan.io/affinity"
# About a hundred terms. Any user who may create a pod can have this text parsed, which blocks everything else.
MAX_ANNOTATION_LENGTH = 8192
POD_AFFINITY, POD_ANTI_AFFINITY = "podAffinity", "podAntiAffinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REQUIRED_DURING_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

NO_TERM = "must have at least one node selector term"
ONE_VALUE = "must be specified single value when `operator` is 'Lt' or 'Gt'"
ONE_FIELD_VALUE = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
UNKNOWN_FIELD = "not a valid field selector key"
WEIGHT_RANGE = "must be in the range 1-100"
ONLY_ON_ANTI = "may be set on required anti-affinity terms only"


class PodAffinityScope(msgspec.Struct, frozen=True):
    """
    What depends on where the pod affinity is written.

    `pod_labels` is None for a template, whose label keys are not merged yet. `empty_topology_key` admits the empty key
    of the annotation, which stands for any topology.
    """

    pod_labels: dict[str, str] | None = None
    empty_topology_key: bool = False


class PodTermFields(msgspec.Struct, frozen=True):
    """One pod affinity term and the list that it is in; `weighted` is None for required terms."""

    field: Field
    anti: bool
    weighted: Field | None = None


class AnnotatedAffinity(wire_meta.WireObject):
    """The content of the annotation. Node affinity is a field of every API server and therefore not part of it."""

    pod_affinity: wire_pods.PodAffinity | None = None
    pod_anti_affinity: wire_pods.PodAffinity | None = None


def validate_node_affinity(affinity: Field) -> list[Cause]:
    """The causes for rejecting a `nodeAffinity`; an absent one is valid."""
    required = affinity[REQUIRED]
    terms = required["nodeSelectorTerms"]
    found = [terms.required(NO_TERM)] if required.present and not terms.items() else []
    for term in terms.items():
        found += validate_node_selector_term(term)
    for item in affinity[PREFERRED].items():
        found += validate_weight(item)
        found += validate_node_selector_term(item["preference"], check_values=False)
    return found


def validate_node_selector_term(term: Field, *, check_values: bool = True) -> list[Cause]:
    """The causes for rejecting one term; upstream does not check the values of preferred terms."""
    found: list[Cause] = []
    for requirement in term["matchExpressions"].items():
        values = requirement["values"]
        if requirement["operator"].text() not in (node_selectors.GT, node_selectors.LT):
            found += selectors.validate_operator(requirement)
        elif len(values.items()) != 1:
            found.append(values.required(ONE_VALUE))
        found += requirement["key"].check_text(names.label_key)
        found += selectors.validate_values(requirement) if check_values else []
    for requirement in term["matchFields"].items():
        key, values = requirement["key"], requirement["values"]
        if requirement["operator"].text() not in (model_labels.IN, model_labels.NOT_IN):
            found.append(selectors.unknown_operator(requirement))
        elif len(values.items()) != 1:
            found.append(values.required(ONE_FIELD_VALUE))
        if key.text() != node_selectors.NAME_FIELD:
            found.append(key.invalid(UNKNOWN_FIELD))
        else:
            found += [cause for value in values.items() for cause in value.check_text(names.dns_subdomain)]
    return found


def validate_weight(weighted: Field) -> list[Cause]:
    """Whether the weight of a preferred term, of pods or of nodes, is in range."""
    weight = weighted["weight"]
    return [] if 1 <= weight.number() <= 100 else [weight.invalid_number(WEIGHT_RANGE)]


def pod_terms(affinity: Field, sides: tuple[str, str] = (POD_AFFINITY, POD_ANTI_AFFINITY)) -> Iterator[PodTermFields]:
    """All terms below the field, in the order in which an API server validates those of pod affinity."""
    for side in sides:
        for when in (REQUIRED_DURING_EXECUTION, REQUIRED):
            for item in affinity[side][when].items():
                yield PodTermFields(item, side == sides[1])
        for item in affinity[side][PREFERRED].items():
            yield PodTermFields(item["podAffinityTerm"], side == sides[1], item)


def validate_pod_affinity(
    affinity: Field, scope: PodAffinityScope, sides: tuple[str, str] = (POD_AFFINITY, POD_ANTI_AFFINITY)
) -> list[Cause]:
    """The causes for rejecting the `podAffinity` and `podAntiAffinity` below this field, or two other sides."""
    found: list[Cause] = []
    for listed in pod_terms(affinity, sides):
        term, key = listed.field, listed.field["topologyKey"]
        if listed.weighted is not None:
            found += validate_weight(listed.weighted)
        merged = selectors.merged_selector(term, scope.pod_labels)
        found += selectors.validate_selector(merged)
        found += selectors.validate_selector(term["namespaceSelector"])
        for name in term["namespaces"].texts():
            # Upstream reports every entry at "namespace": singular, and without its index.
            found += Field(term["namespace"].path, name).check_text(names.dns_label)
        found += selectors.validate_label_keys(term, merged)
        if key.text() or not scope.empty_topology_key:
            found += [] if key.text() else [key.required("can not be empty")]
            found += key.check_text(names.label_key)
        found += _validate_extensions(listed)
    return found


def _validate_extensions(listed: PodTermFields) -> list[Cause]:
    """The causes for rejecting `limit` and `tolerateNamespaces`, which Kubernetes does not have."""
    limit, tolerated = listed.field["limit"], listed.field["tolerateNamespaces"]
    if listed.weighted is not None or not listed.anti:
        return [field.forbidden(ONLY_ON_ANTI) for field in (limit, tolerated) if field.present]
    found = limit.check_not_negative()
    for namespace in tolerated.items():
        found += namespace.check_text(names.dns_label)
    return found


def validate_annotation(metadata: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    """The causes for rejecting the annotation below this metadata; none if it is absent."""
    annotations = metadata["annotations"]
    if AFFINITY_ANNOTATION not in annotations.names():
        return []
    written = annotations.entry(AFFINITY_ANNOTATION)
    if len(written.text()) > MAX_ANNOTATION_LENGTH:
        return [written.malformed(f"longer than {MAX_ANNOTATION_LENGTH} characters")]
    from bayplan.validating import yaml_text  # imports PyYAML, which most inputs do not need

    try:
        affinity = Field(written.path, yaml_text.parse(written.text()))
    except ValueError as error:
        return [written.malformed(str(error))]
    if not affinity.present:
        return [type_checks.wrong_type(affinity, "a mapping with podAffinity or podAntiAffinity")]
    found = type_checks.validate_types(affinity, AnnotatedAffinity, closed=True)
    if any(cause.reason == fields.TYPE_INVALID for cause in found):
        return found
    found += validate_pod_affinity(affinity, PodAffinityScope(pod_labels, empty_topology_key=True))
    return found or unreadable(written, read_annotation)


def unreadable(written: Field, read: Callable[[str], object]) -> list[Cause]:
    """What is wrong with a text that breaks no rule and has other types still, such as null in place of a term."""
    try:
        read(written.text())
    except ValueError as error:
        return [written.malformed(str(error))]
    return []


def read_annotation(text: str) -> AnnotatedAffinity:
    """The content of the annotation; raises ValueError if it does not have the annotation's types."""
    from bayplan.validating import yaml_text

    try:
        return msgspec.convert(without_nulls(yaml_text.parse(text)), AnnotatedAffinity)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def without_nulls(value: object) -> object:
    """The value without null fields, which mean the same and which the wire Structs do not accept."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
