"""
From a document to a typed wire object. Knows nothing of files or of what is strict.

Go reads null as "not given"; so does this, but only when it has to: API servers write no nulls that matter, and the
straight way is many times faster.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.reading import checking, json_documents
from bayplan.reading.documents import Document, Mapping

# Maps from names to strings, where null stands for the empty string and the key stays.
_STRING_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
_PLACE = re.compile(r"(?P<message>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)


@functools.cache
def _decoder(wire_type: Any) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(wire_type).decode


def decode(document: Document, wire_type: Any) -> Any:
    """The object in its type, or a list of everything that keeps it from being one."""
    if isinstance(document.typed, wire_type):
        return document.typed
    try:
        if document.root is None:
            return _decoder(wire_type)(document.text)
        return msgspec.convert(document.root, wire_type)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return _decode_without_nulls(document, wire_type)


def converted(root: Mapping, wire_type: Any) -> Any:
    """A decoded object in its type; raises msgspec's ValidationError for one that cannot be."""
    try:
        return msgspec.convert(root, wire_type)
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(root, in_string_map=False), wire_type)


def _decode_without_nulls(document: Document, wire_type: Any) -> Any:
    root = document.root if document.root is not None else json_documents.root_of(document)
    try:
        return msgspec.convert(_without_nulls(root, in_string_map=False), wire_type)
    except msgspec.ValidationError as error:
        # msgspec stops at the first; the checker knows them all and says them better.
        return checking.wrong_types(document) or [_fault(document, error)]


def _without_nulls(value: Any, *, in_string_map: bool) -> Any:
    if isinstance(value, list):
        return [_without_nulls(item, in_string_map=False) for item in value]
    if not isinstance(value, dict):
        return value
    kept: Mapping = {}
    for key, item in value.items():
        if item is not None:
            kept[key] = _without_nulls(item, in_string_map=key in _STRING_MAPS)
        elif in_string_map:
            kept[key] = ""
    return kept


def _fault(document: Document, error: Exception) -> Fault:
    found = _PLACE.fullmatch(str(error))
    assert found is not None
    return document.fault(found["message"].replace("`", ""), found["path"] or "")
