"""
Whether a decoded object has the types that its wire Structs declare. Knows nothing of what the values mean.

An API server cannot decode an object of the wrong shape and says so before it looks at anything else; so do we.
Null is fine everywhere: Go reads it as the zero value.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from typing import TypeGuard

import msgspec

from bayplan.validating import causes, fields, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

_NAMES: dict[type, str] = {
    msgspec.inspect.StrType: "text",
    msgspec.inspect.IntType: "a whole number",
    msgspec.inspect.FloatType: "a number",
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.ListType: "a list",
    msgspec.inspect.DictType: "a mapping",
    msgspec.inspect.StructType: "a mapping",
}


def causes_of(field: Field, wire: type, *, closed: bool = False) -> list[Cause]:
    """Where the field departs from the wire type; `closed` also refuses fields that the type does not have."""
    return _check(field, _type_of(wire), closed=closed)


@cache
def _type_of(wire: type) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(wire)


def _check(field: Field, expected: msgspec.inspect.Type, *, closed: bool) -> list[Cause]:
    if not field.present:
        return []
    fitting = [one for one in _alternatives(expected) if _fits(field.value, one)]
    if not fitting:
        return [_mismatch(field, expected)]
    chosen = fitting[0]
    if isinstance(chosen, msgspec.inspect.StructType):
        return _struct(field, chosen, closed=closed)
    if isinstance(chosen, msgspec.inspect.ListType):
        return [cause for item in field.items() for cause in _check(item, chosen.item_type, closed=closed)]
    if isinstance(chosen, msgspec.inspect.DictType):
        return [cause for key in field.names() for cause in _check(field.entry(key), chosen.value_type, closed=closed)]
    return []


def _struct(field: Field, expected: msgspec.inspect.StructType, *, closed: bool) -> list[Cause]:
    types = {known.encode_name: known.type for known in expected.fields}
    found: list[Cause] = []
    for name in field.names():
        if name in types:
            found += _check(field[name], types[name], closed=closed)
        elif closed:
            found.append(unknown(field.path, name, types))
    return found


def unknown(path: str, name: object, known: Mapping[str, object]) -> Cause:
    """A field nobody knows, with the nearest name that somebody does."""
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean {go_text.quoted(near[0])}?" if near else f"known are {', '.join(known)}"
    return causes.invalid(fields.child(path, str(name)), go_text.quoted(str(name)), f"unknown field; {hint}")


def _alternatives(expected: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, ...]:
    return expected.types if isinstance(expected, msgspec.inspect.UnionType) else (expected,)


def _fits(value: object, expected: msgspec.inspect.Type) -> bool:
    match expected:
        case msgspec.inspect.StrType():
            return isinstance(value, str)
        case msgspec.inspect.BoolType():
            return isinstance(value, bool)
        case msgspec.inspect.IntType():
            return _is_whole(value) and _is_within(value, expected)
        case msgspec.inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case msgspec.inspect.ListType():
            return isinstance(value, list)
        case msgspec.inspect.DictType() | msgspec.inspect.StructType():
            return isinstance(value, Mapping)
        case msgspec.inspect.NoneType():
            return False
    return True


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_within(value: int, expected: msgspec.inspect.IntType) -> bool:
    return (expected.ge is None or value >= expected.ge) and (expected.le is None or value <= expected.le)


def _mismatch(field: Field, expected: msgspec.inspect.Type) -> Cause:
    alternatives = _alternatives(expected)
    for one in alternatives:
        if isinstance(one, msgspec.inspect.IntType) and _is_whole(field.value):
            return causes.wrong_type(field.path, str(field.value), f"expected a whole number from {one.ge} to {one.le}")
    named = dict.fromkeys(_NAMES[type(one)] for one in alternatives if type(one) in _NAMES)
    return wrong_type(field, " or ".join(named))


def wrong_type(field: Field, expected: str) -> Cause:
    """A value of another type than the field has."""
    return causes.wrong_type(field.path, _shown(field.value), f"expected {expected}, got {_got(field.value)}")


def _got(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "text"
        case int():
            return "a whole number"
        case float():
            return "a fraction"
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
    return "nothing" if value is None else type(value).__name__


def _shown(value: object) -> str:
    """The value itself if it is short, else its type, as the API server does for lists and mappings."""
    if isinstance(value, str):
        return go_text.quoted(value)
    return go_text.as_json(value) if isinstance(value, bool | int | float) else go_text.quoted(_got(value))
