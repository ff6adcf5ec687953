"""
Label selectors, maps of labels, and the label keys that a pod's creation merges into its selectors.

Knows nothing of who uses the selector. Mirrors apimachinery's meta/v1/validation and, for the merge,
pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.model import labels as model_labels
from bayplan.validating import causes, fields, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

IN_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
EXISTS_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
UNKNOWN_OPERATOR = "not a valid selector operator"

Labels = Mapping[str, str]


def labels(field: Field) -> list[Cause]:
    """What is wrong with a map of labels; all of it is reported at the map's own path."""
    found: list[Cause] = []
    for key, value in field.labels().items():
        found += names.invalid(field.path, key, names.label_key(key))
        found += names.invalid(field.path, value, names.label_value(value))
    return found


def selector(field: Field) -> list[Cause]:
    """What is wrong with a label selector; nothing if there is none."""
    found = labels(field["matchLabels"])
    for requirement in field["matchExpressions"].items():
        found += operator(requirement)
        found += key(requirement)
        found += values(requirement)
    return found


def operator(requirement: Field) -> list[Cause]:
    """Whether the operator is one of a label selector's and goes with the number of values."""
    match requirement["operator"].text():
        case model_labels.IN | model_labels.NOT_IN:
            if not requirement["values"].items():
                return [causes.required(requirement["values"].path, IN_VALUES)]
        case model_labels.EXISTS | model_labels.DOES_NOT_EXIST:
            if requirement["values"].items():
                return [causes.forbidden(requirement["values"].path, EXISTS_VALUES)]
        case _:
            return [unknown_operator(requirement)]
    return []


def unknown_operator(requirement: Field) -> Cause:
    """The cause for an operator that the requirement cannot have."""
    field = requirement["operator"]
    return causes.invalid(field.path, go_text.as_json(field.text()), UNKNOWN_OPERATOR)


def key(requirement: Field) -> list[Cause]:
    """What is wrong with the label key of a requirement."""
    return label_key(requirement["key"])


def values(requirement: Field) -> list[Cause]:
    """What is wrong with the label values of a requirement."""
    found: list[Cause] = []
    for value in requirement["values"].items():
        found += names.invalid(value.path, value.text(), names.label_value(value.text()))
    return found


def label_key(field: Field) -> list[Cause]:
    """What is wrong with a field that holds one label key."""
    return names.invalid(field.path, field.text(), names.label_key(field.text()))


def merged(term: Field, pod_labels: Labels | None) -> Field:
    """
    The term's label selector after the pod's creation: `matchLabelKeys` and `mismatchLabelKeys` become expressions.

    Only a pod has labels to merge (`pod_labels` is None for a template), and only a selector that is there is
    extended. The selector in the object stays as it was written.
    """
    field = term["labelSelector"]
    if pod_labels is None or not isinstance(field.value, Mapping):
        return field
    added = [
        {"key": name, "operator": how, "values": [pod_labels[name]]}
        for listed, how in (("matchLabelKeys", model_labels.IN), ("mismatchLabelKeys", model_labels.NOT_IN))
        for name in term[listed].texts()
        if name in pod_labels
    ]
    written = [requirement.value for requirement in field["matchExpressions"].items()]
    return Field(field.path, {**field.value, "matchExpressions": written + added})


def label_keys(term: Field, merged_selector: Field) -> list[Cause]:
    """What is wrong with the term's `matchLabelKeys` and `mismatchLabelKeys`, given its selector after the merge."""
    return [
        *_listed_keys(term["matchLabelKeys"], merged_selector),
        *_listed_keys(term["mismatchLabelKeys"], merged_selector),
        *_in_selector(term, merged_selector),
        *_in_both(term),
    ]


def _listed_keys(listed: Field, merged_selector: Field) -> list[Cause]:
    if listed.items() and not merged_selector.present:
        return [causes.forbidden(listed.path, "must not be specified when labelSelector is not set")]
    return [cause for item in listed.items() for cause in label_key(item)]


def _in_selector(term: Field, merged_selector: Field) -> list[Cause]:
    """
    The keys that both `matchLabelKeys` and the user's selector name.

    Upstream looks for keys that occur twice after the merge, so a key listed twice is found too, and a key that the
    pod's labels lack is not. The path lacks the name of the list; that is upstream's as well.
    """
    position = {name: at for at, name in enumerate(term["matchLabelKeys"].texts())}
    seen = set(merged_selector["matchLabels"].names())
    found: list[Cause] = []
    for requirement in merged_selector["matchExpressions"].items():
        name = requirement["key"].text()
        if name in position and name in seen:
            path = fields.entry(term.path, position[name])
            found.append(_overlap(path, name, "exists in both matchLabelKeys and labelSelector"))
        seen.add(name)
    return found


def _in_both(term: Field) -> list[Cause]:
    mismatched = set(term["mismatchLabelKeys"].texts())
    return [
        _overlap(item.path, item.text(), "exists in both matchLabelKeys and mismatchLabelKeys")
        for item in term["matchLabelKeys"].items()
        if item.text() in mismatched
    ]


def _overlap(path: str, name: str, detail: str) -> Cause:
    return causes.invalid(path, go_text.quoted(name), detail)
