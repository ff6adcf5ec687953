"""
Node affinity and `nodeSelector`. Knows nothing of nodes.

Mirrors `validateNodeAffinity` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from bayplan.model import labels as model_labels
from bayplan.model import node_selectors
from bayplan.validating import causes, go_text, names, pod_affinity, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

NO_TERM = "must have at least one node selector term"
ONE_VALUE = "must be specified single value when `operator` is 'Lt' or 'Gt'"
ONE_FIELD_VALUE = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
UNKNOWN_FIELD = "not a valid field selector key"


def causes_of(affinity: Field) -> list[Cause]:
    """What is wrong with a `nodeAffinity`; nothing if there is none."""
    found = required(affinity[pod_affinity.REQUIRED])
    for item in affinity[pod_affinity.PREFERRED].items():
        found += pod_affinity.weight(item)
        found += term(item["preference"], values_too=False)
    return found


def required(selector: Field) -> list[Cause]:
    """What is wrong with a node selector; nothing if there is none."""
    listed = selector["nodeSelectorTerms"]
    if selector.present and not listed.items():
        return [causes.required(listed.path, NO_TERM)]
    return [cause for item in listed.items() for cause in term(item, values_too=True)]


def term(field: Field, *, values_too: bool) -> list[Cause]:
    """What is wrong with one term; the values of preferred terms are not looked at."""
    found: list[Cause] = []
    for requirement in field["matchExpressions"].items():
        found += _operator(requirement)
        found += selectors.key(requirement)
        found += selectors.values(requirement) if values_too else []
    for requirement in field["matchFields"].items():
        found += _field_operator(requirement)
        found += _field_key(requirement)
    return found


def _operator(requirement: Field) -> list[Cause]:
    if requirement["operator"].text() not in (node_selectors.GT, node_selectors.LT):
        return selectors.operator(requirement)
    if len(requirement["values"].items()) != 1:
        return [causes.required(requirement["values"].path, ONE_VALUE)]
    return []


def _field_operator(requirement: Field) -> list[Cause]:
    if requirement["operator"].text() not in (model_labels.IN, model_labels.NOT_IN):
        return [selectors.unknown_operator(requirement)]
    if len(requirement["values"].items()) != 1:
        return [causes.required(requirement["values"].path, ONE_FIELD_VALUE)]
    return []


def _field_key(requirement: Field) -> list[Cause]:
    key = requirement["key"]
    if key.text() != node_selectors.NAME_FIELD:
        return [causes.invalid(key.path, go_text.quoted(key.text()), UNKNOWN_FIELD)]
    found: list[Cause] = []
    for value in requirement["values"].items():
        found += names.invalid(value.path, value.text(), names.dns_subdomain(value.text()))
    return found
