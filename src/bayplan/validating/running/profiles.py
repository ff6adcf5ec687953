"""
Profiles of seccomp and AppArmor: which kind, and which file of the node.

Mirrors `validateSeccompProfileField` and `ValidateAppArmorProfileField` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from bayplan.validating import causes, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.running import local_paths

LOCALHOST = "Localhost"
TYPES = (LOCALHOST, "RuntimeDefault", "Unconfined")
PADDED = "must not be padded with whitespace"
MAX_PROFILE = 4095


def seccomp(profile: Field) -> list[Cause]:
    """What is wrong with a profile of seccomp."""
    if not profile.present:
        return []
    kind, local = profile["type"], profile["localhostProfile"]
    found = _type(kind, "type is required when seccompProfile is set")
    if kind.text() != LOCALHOST:
        if local.present:
            parts = (go_text.as_json(kind.text()), go_text.as_json(local.text()))
            shown = '{{"Type":{},"LocalhostProfile":{}}}'.format(*parts)
            found.append(causes.invalid(local.path, shown, "can only be set when seccomp type is Localhost"))
        return found
    if not local.present:
        return [*found, causes.required(local.path, "must be set when seccomp type is Localhost")]
    return found + local_paths.descending(local)


def app_armor(profile: Field) -> list[Cause]:
    """What is wrong with a profile of AppArmor."""
    if not profile.present:
        return []
    kind, local = profile["type"], profile["localhostProfile"]
    if kind.text() == LOCALHOST:
        return _named(local)
    found = _type(kind, "type is required when appArmorProfile is set")
    if local.present and not found:
        shown = go_text.as_json(local.text())
        found.append(causes.invalid(local.path, shown, "can only be set when AppArmor type is Localhost"))
    return found


def _named(local: Field) -> list[Cause]:
    text = local.text()
    if not text:
        return [causes.required(local.path, "must be set when AppArmor type is Localhost")]
    found = [causes.invalid(local.path, go_text.quoted(text), PADDED)] if text != text.strip() else []
    if go_text.n_bytes(text) > MAX_PROFILE:
        found.append(causes.too_long(local.path, f"may not be more than {MAX_PROFILE} bytes"))
    return found


def _type(kind: Field, missing: str) -> list[Cause]:
    if not kind.text():
        return [causes.required(kind.path, missing)]
    return [] if kind.text() in TYPES else [causes.unsupported(kind.path, go_text.as_json(kind.text()), TYPES)]
