"""
Parts of an object as Go prints them into a message: fields in the order of their Struct, empty ones omitted.

Mirrors `encoding/json` on Karmada's API types. No rule is defined here.
"""

from __future__ import annotations

from functools import cache

import msgspec

from bayplan.validating import go_text
from bayplan.validating.fields import Field

# Fields that Go prints even when they are empty, because their tag lacks `omitempty`.
_ALWAYS_PRINTED = {"affinityName", "groupByLabelKey", "key", "operator", "targetCluster", "weight", "rules"}
# Types whose tags all have `omitempty`.
_ALL_OPTIONAL = {"Toleration"}


def struct_json(field: Field, wire: type) -> str:
    """The field's value as JSON; `null` if there is none."""
    return _written(field, _type_of(wire))


def list_json(field: Field, wire: type) -> str:
    """The field's list as JSON, with items of this type."""
    return "[" + ",".join(struct_json(item, wire) for item in field.items()) + "]"


@cache
def _type_of(wire: type) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(wire)


def _written(field: Field, expected: msgspec.inspect.Type) -> str:
    expected = _one(expected)
    if isinstance(expected, msgspec.inspect.StructType) and field.present:
        return "{" + ",".join(_members(field, expected)) + "}"
    if isinstance(expected, msgspec.inspect.ListType):
        return "[" + ",".join(_written(item, expected.item_type) for item in field.items()) + "]"
    return go_text.as_json(field.value)


def _members(field: Field, expected: msgspec.inspect.StructType) -> list[str]:
    written: list[str] = []
    for known in expected.fields:
        name, value = known.encode_name, field[known.encode_name]
        always = name in _ALWAYS_PRINTED and expected.cls.__name__ not in _ALL_OPTIONAL
        if always and not value.present:
            written.append(f"{go_text.as_json(name)}:{_ZERO.get(type(known.type), '{}')}")
        elif always or not _is_omitted(value, known.type):
            written.append(f"{go_text.as_json(name)}:{_written(value, known.type)}")
    return written


_ZERO: dict[type, str] = {msgspec.inspect.StrType: '""', msgspec.inspect.IntType: "0"}


def _is_omitted(value: Field, expected: msgspec.inspect.Type) -> bool:
    """Whether `omitempty` omits the value: a pointer only if it is null, an empty list or map always."""
    pointer = isinstance(expected, msgspec.inspect.UnionType)
    if isinstance(_one(expected), msgspec.inspect.ListType | msgspec.inspect.DictType) or not pointer:
        return not value.value
    return not value.present


def _one(expected: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """The type without its null."""
    if not isinstance(expected, msgspec.inspect.UnionType):
        return expected
    return next(one for one in expected.types if not isinstance(one, msgspec.inspect.NoneType))
