"""Decodes a document into its wire type. Does not know files, or which documents are checked strictly."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.reading import checking, json_documents
from bayplan.reading.documents import Document
from bayplan.wire import conversion

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


def _decode_without_nulls(document: Document, wire_type: Any) -> Any:
    root = document.root if document.root is not None else json_documents.root_of(document)
    try:
        return msgspec.convert(conversion.without_nulls(root), wire_type)
    except msgspec.ValidationError as error:
        # msgspec stops at the first; the checker knows them all and says them better.
        return checking.wrong_types(document) or [_fault(document, error)]


def _fault(document: Document, error: Exception) -> Fault:
    found = _PLACE.fullmatch(str(error))
    assert found is not None
    return document.fault(found["message"].replace("`", ""), found["path"] or "")
