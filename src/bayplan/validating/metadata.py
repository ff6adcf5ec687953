"""
Names, labels and annotations of an object. Knows nothing of what the annotations say.

Mirrors `ValidateObjectMeta` in apimachinery's api/validation/objectmeta.go. A missing namespace is no fault: the
request says which one is meant.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.validating import causes, go_text, names, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

NameRule = Callable[[str], list[str]]
MAX_ANNOTATIONS = 256 * 1024


def causes_of(metadata: Field, name_rule: NameRule) -> list[Cause]:
    """What is wrong with the metadata of an object whose name must meet `name_rule`."""
    return [
        *_name(metadata, name_rule),
        *_namespace(metadata["namespace"]),
        *selectors.labels(metadata["labels"]),
        *annotated(metadata["annotations"]),
    ]


def annotated(field: Field) -> list[Cause]:
    """What is wrong with the keys of a map of annotations, and with its size; the values are anybody's."""
    found: list[Cause] = []
    for key in field.names():
        found += names.invalid(field.path, key, names.label_key(key.lower()))
    size = sum(go_text.n_bytes(key) + go_text.n_bytes(value) for key, value in field.labels().items())
    if size > MAX_ANNOTATIONS:
        found.append(causes.too_long(field.path, f"may not be more than {MAX_ANNOTATIONS} bytes"))
    return found


def _name(metadata: Field, name_rule: NameRule) -> list[Cause]:
    name, stem = metadata["name"], metadata["generateName"]
    found = names.invalid(stem.path, stem.text(), name_rule(finished(stem.text()))) if stem.text() else []
    if name.text():
        found += names.invalid(name.path, name.text(), name_rule(name.text()))
    elif not stem.text():
        found.append(causes.required(name.path, "name or generateName is required"))
    return found


def finished(stem: str) -> str:
    """The stem of a generated name with its last dash, which random letters will follow, masked as upstream does."""
    return f"{stem[:-2]}a" if len(stem) > 1 and stem.endswith("-") else stem


def _namespace(field: Field) -> list[Cause]:
    return names.invalid(field.path, field.text(), names.dns_label(field.text())) if field.text() else []
