"""
Converts decoded JSON into wire types.

Null means absent, as in Go, but nulls are removed only after a plain conversion has failed: API servers write no null
that matters, and the plain conversion is many times faster.
"""

from __future__ import annotations

from typing import Any

import msgspec

# Maps from names to strings, in which Go reads null as the empty string and keeps the key.
_STRING_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})


def converted(root: dict[str, Any], wire_type: Any) -> Any:
    """A decoded object in its wire type; raises msgspec's ValidationError if it does not fit."""
    try:
        return msgspec.convert(root, wire_type)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(root), wire_type)


def without_nulls(value: Any, *, in_string_map: bool = False) -> Any:
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for key, item in value.items():
        if item is not None:
            kept[key] = without_nulls(item, in_string_map=key in _STRING_MAPS)
        elif in_string_map:
            kept[key] = ""
    return kept
