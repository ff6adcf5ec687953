"""Questions of `decide admission`: would an API server, and the rules that were asked for, admit this object?"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.enforcing import pod_guard
from bayplan.errors import InputError
from bayplan.mapping import pods
from bayplan.reading import questions
from bayplan.validating import admission
from bayplan.validating.fields import Cause
from bayplan.validating.guard import GuardSettings

GUARD = "guard"
_EXPECTED = f'options.rules: expected "{GUARD}", or {{"{GUARD}": SETTINGS}}'


class AdmissionQuestion(msgspec.Struct):
    object: dict[str, Any]
    name: str = ""
    options: questions.Options = msgspec.field(default_factory=questions.Options)


def causes(question: AdmissionQuestion) -> list[Cause]:
    """What an API server's Status would carry, then what the rules in the options add; none by default."""
    found = admission.validate_all(question.object)
    semantics = questions.semantics_of(question.options)
    for rule in question.options.rules or ():
        settings = _settings(rule)
        pod = pod_guard.read_pod_like(question.object, pods.DEFAULT_NAMESPACE)
        if pod is not None:
            found = found + pod_guard.guard_verdict(pod, semantics, settings).causes
    return found


def _settings(rule: Any) -> GuardSettings:
    if rule == GUARD:
        return GuardSettings()
    if not isinstance(rule, dict) or set(rule) != {GUARD}:
        raise InputError(f"{_EXPECTED}, got {msgspec.json.encode(rule).decode()}")
    try:
        return msgspec.convert(rule[GUARD], GuardSettings)
    except msgspec.ValidationError as error:
        raise InputError(f"options.rules: {error}") from None
