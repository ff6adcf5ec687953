"""
Paths of files, as far as they can be judged without a node. Knows nothing of who mounts what.

Mirrors the `validate…Path` functions in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from bayplan.validating import causes, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

BACKSTEP = "must not contain '..'"
ABSOLUTE = "must be a relative path"
NOT_ABSOLUTE = "must be an absolute path"
RESERVED = "must not start with '..'"


def has_backstep(text: str) -> bool:
    """Whether one part of the path leads upwards."""
    return ".." in text.split("/")


def without_backsteps(field: Field, path: str = "") -> list[Cause]:
    """Whether the path leads upwards nowhere; `path` is for those few fields that are reported elsewhere."""
    return [_invalid(path or field.path, field, BACKSTEP)] if has_backstep(field.text()) else []


def descending(field: Field, path: str = "") -> list[Cause]:
    """Whether the path stays below where it begins."""
    where = path or field.path
    found = [_invalid(where, field, ABSOLUTE)] if field.text().startswith("/") else []
    return found + without_backsteps(field, where)


def not_reserved(field: Field, path: str = "") -> list[Cause]:
    """Whether the path stays below where it begins and takes none of the names that the kubelet uses."""
    found, text = descending(field, path), field.text()
    if text.startswith("..") and not text.startswith("../"):
        found.append(_invalid(path or field.path, field, RESERVED))
    return found


def absolute(field: Field) -> list[Cause]:
    """Whether the path begins at the root."""
    return [] if field.text().startswith("/") else [_invalid(field.path, field, NOT_ABSOLUTE)]


def _invalid(path: str, field: Field, detail: str) -> Cause:
    return causes.invalid(path, go_text.quoted(field.text()), detail)
