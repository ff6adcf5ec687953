"""
Label selectors, and the label keys that the creation of a pod merges into them.

Mirrors apimachinery's meta/v1/validation and, for the merge, pkg/registry/core/pod/strategy.go. The meaning of the
selected labels is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.model import labels as model_labels
from bayplan.validating import go_text, names
from bayplan.validating.fields import Cause, Field

IN_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
EXISTS_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
UNKNOWN_OPERATOR = "not a valid selector operator"
NO_SELECTOR = "must not be specified when labelSelector is not set"
IN_SELECTOR = "exists in both matchLabelKeys and labelSelector"
IN_BOTH_LISTS = "exists in both matchLabelKeys and mismatchLabelKeys"


def validate_selector(selector: Field) -> list[Cause]:
    """The causes for rejecting a label selector; an absent one is valid."""
    found = names.validate_labels(selector["matchLabels"])
    for requirement in selector["matchExpressions"].items():
        found += validate_operator(requirement)
        found += requirement["key"].check_text(names.label_key)
        found += validate_values(requirement)
    return found


def validate_operator(requirement: Field) -> list[Cause]:
    """Whether the operator is one of a label selector's and fits the number of values."""
    values = requirement["values"]
    match requirement["operator"].text():
        case model_labels.IN | model_labels.NOT_IN:
            return [] if values.items() else [values.required(IN_VALUES)]
        case model_labels.EXISTS | model_labels.DOES_NOT_EXIST:
            return [values.forbidden(EXISTS_VALUES)] if values.items() else []
    return [unknown_operator(requirement)]


def unknown_operator(requirement: Field) -> Cause:
    """The cause for an operator that the requirement cannot have."""
    operator = requirement["operator"]
    return operator.invalid(UNKNOWN_OPERATOR, go_text.as_json(operator.text()))


def validate_values(requirement: Field) -> list[Cause]:
    """The causes for rejecting the label values of a requirement."""
    return [cause for value in requirement["values"].items() for cause in value.check_text(names.label_value)]


def merged_selector(term: Field, pod_labels: Mapping[str, str] | None) -> Field:
    """
    The term's label selector after the pod's creation: `matchLabelKeys` and `mismatchLabelKeys` become expressions.

    Only a pod has labels to merge (`pod_labels` is None for a template), and only a selector that is present is
    extended. The selector in the object is not changed.
    """
    selector = term["labelSelector"]
    if pod_labels is None or not isinstance(selector.value, Mapping):
        return selector
    added = [
        {"key": key, "operator": operator, "values": [pod_labels[key]]}
        for listed, operator in (("matchLabelKeys", model_labels.IN), ("mismatchLabelKeys", model_labels.NOT_IN))
        for key in term[listed].texts()
        if key in pod_labels
    ]
    written = [requirement.value for requirement in selector["matchExpressions"].items()]
    return Field(selector.path, {**selector.value, "matchExpressions": written + added})


def validate_label_keys(term: Field, merged: Field) -> list[Cause]:
    """
    The causes for rejecting the term's `matchLabelKeys` and `mismatchLabelKeys`, given its selector after the merge.

    Upstream looks for keys that occur twice after the merge. So a key listed twice is found too, and a key that the
    pod's labels lack is not. That path lacks the name of the list, as upstream's does.
    """
    matched, mismatched = term["matchLabelKeys"], term["mismatchLabelKeys"]
    found: list[Cause] = []
    for listed in (matched, mismatched):
        if listed.items() and not merged.present:
            found.append(listed.forbidden(NO_SELECTOR))
        else:
            found += [cause for item in listed.items() for cause in item.check_text(names.label_key)]
    positions = {key: position for position, key in enumerate(matched.texts())}
    seen = set(merged["matchLabels"].names())
    for requirement in merged["matchExpressions"].items():
        key = requirement["key"].text()
        if key in positions and key in seen:
            found.append(Field(f"{term.path}[{positions[key]}]", key).invalid(IN_SELECTOR))
        seen.add(key)
    excluded = mismatched.texts()
    return found + [item.invalid(IN_BOTH_LISTS) for item in matched.items() if item.text() in excluded]
