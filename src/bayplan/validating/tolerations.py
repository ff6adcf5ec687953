"""Tolerations. Mirrors `ValidateTolerations` in pkg/apis/core/validation/validation.go, feature gates at default."""

from __future__ import annotations

from bayplan.validating import causes, go_text, names, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

EQUAL, EXISTS = "Equal", "Exists"
COMPARING = ("Lt", "Gt")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

EMPTY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
SECONDS = "effect must be 'NoExecute' when `tolerationSeconds` is set"
EXISTS_VALUE = "value must be empty when `operator` is 'Exists'"


def causes_of(tolerations: Field) -> list[Cause]:
    """What is wrong with a list of tolerations."""
    found: list[Cause] = []
    for toleration in tolerations.items():
        found += _key(toleration)
        found += _seconds(toleration)
        found += _operator(toleration)
        found += _effect(toleration["effect"])
    return found


def _key(toleration: Field) -> list[Cause]:
    operator = toleration["operator"]
    if toleration["key"].text():
        return selectors.label_key(toleration["key"])
    if operator.text() != EXISTS:
        return [causes.invalid(operator.path, go_text.as_json(operator.text()), EMPTY_KEY)]
    return []


def _seconds(toleration: Field) -> list[Cause]:
    effect = toleration["effect"]
    if toleration["tolerationSeconds"].present and effect.text() != "NoExecute":
        return [causes.invalid(effect.path, go_text.as_json(effect.text()), SECONDS)]
    return []


def _operator(toleration: Field) -> list[Cause]:
    """Whether operator and value go together; what is wrong with the value is reported at the operator."""
    path, operator, value = toleration["operator"].path, toleration["operator"].text(), toleration["value"].text()
    if operator in ("", EQUAL):
        details = names.label_value(value)
        return [causes.invalid(path, go_text.quoted(value), ";".join(details))] if details else []
    if operator == EXISTS:
        return [causes.invalid(path, go_text.quoted(value), EXISTS_VALUE)] if value else []
    # Comparing numbers is behind a gate that is off in 1.36; it is named nevertheless when somebody asks for it.
    supported = (EQUAL, EXISTS, *COMPARING) if operator in COMPARING else (EQUAL, EXISTS)
    return [causes.unsupported(path, go_text.as_json(operator), supported)]


def _effect(effect: Field) -> list[Cause]:
    if not effect.text() or effect.text() in EFFECTS:
        return []
    return [causes.unsupported(effect.path, go_text.as_json(effect.text()), EFFECTS)]
