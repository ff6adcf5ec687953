"""
Whether a decoded object has the types that its wire Structs declare. The meaning of the values is not known here.

An API server cannot decode an object with a value of the wrong type and reports that before anything else; so does
Bayplan. Null is valid everywhere: Go reads it as the zero value.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache

from msgspec import inspect

from bayplan.validating import go_text
from bayplan.validating.fields import Cause, Field

_TYPE_NAMES: dict[type, str] = {
    inspect.StrType: "text",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.ListType: "a list",
    inspect.DictType: "a mapping",
    inspect.StructType: "a mapping",
}


_type_info = cache(inspect.type_info)


def validate_types(field: Field, wire: type | inspect.Type, *, closed: bool = False) -> list[Cause]:
    """Where the field departs from the wire type; `closed` also rejects fields that the type does not have."""
    if field.value is None:
        return []
    expected = wire if isinstance(wire, inspect.Type) else _type_info(wire)
    alternatives = expected.types if isinstance(expected, inspect.UnionType) else (expected,)
    chosen = next((one for one in alternatives if _fits(field.value, one)), None)
    found: list[Cause] = []
    match chosen:
        case None:
            found.append(_mismatch(field, alternatives))
        case inspect.StructType():
            types = {known.encode_name: known.type for known in chosen.fields}
            for name in field.names():
                if name in types:
                    found += validate_types(field[name], types[name], closed=closed)
                elif closed:
                    found.append(_unknown(field[name].path, name, types))
        case inspect.ListType():
            for item in field.items():
                found += validate_types(item, chosen.item_type, closed=closed)
        case inspect.DictType():
            for key in field.names():
                found += validate_types(field.entry(key), chosen.value_type, closed=closed)
    return found


def _fits(value: object, expected: inspect.Type) -> bool:
    match expected:
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            if not isinstance(value, int) or isinstance(value, bool):
                return False
            return (expected.ge is None or value >= expected.ge) and (expected.le is None or value <= expected.le)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.ListType():
            return isinstance(value, list)
        case inspect.DictType() | inspect.StructType():
            return isinstance(value, Mapping)
    return not isinstance(expected, inspect.NoneType)


def _unknown(path: str, name: str, known: Mapping[str, object]) -> Cause:
    """A field that the type does not have, with the nearest name that it has."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {go_text.quoted(near[0])}?" if near else f"known are {', '.join(known)}"
    return Field(path, name).invalid(f"unknown field; {hint}")


def _mismatch(field: Field, alternatives: tuple[inspect.Type, ...]) -> Cause:
    for one in alternatives:
        if isinstance(one, inspect.IntType) and isinstance(field.value, int) and not isinstance(field.value, bool):
            return field.wrong_type(f"expected a whole number from {one.ge} to {one.le}", str(field.value))
    names = dict.fromkeys(_TYPE_NAMES[type(one)] for one in alternatives if type(one) in _TYPE_NAMES)
    return wrong_type(field, " or ".join(names))


def wrong_type(field: Field, expected: str) -> Cause:
    """The cause for a value of another type; a list or a mapping is shown by its type, as the API server does."""
    value = field.value
    match value:
        case bool():
            got = "true or false"
        case str():
            got = "text"
        case int():
            got = "a whole number"
        case float():
            got = "a fraction"
        case Mapping():
            got = "a mapping"
        case list():
            got = "a list"
        case _:
            got = "nothing" if value is None else type(value).__name__
    shown = go_text.as_json(value) if isinstance(value, bool | int | float) else go_text.quoted(got)
    return field.wrong_type(
        f"expected {expected}, got {got}", go_text.quoted(value) if isinstance(value, str) else shown
    )
