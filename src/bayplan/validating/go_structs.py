"""
A piece of an object as Go prints it into a message: fields in the order of their Struct, empty ones left out.

Mirrors `encoding/json` on Karmada's API types. Knows nothing of rules.
"""

from __future__ import annotations

from functools import cache

import msgspec

from bayplan.validating import go_text
from bayplan.validating.fields import Field

# Fields that Go prints even when they are empty, because their tag does not say `omitempty`.
_ALWAYS = {"affinityName", "groupByLabelKey", "key", "operator", "targetCluster", "weight", "rules"}
# Of these types, on the other hand, everything may be left out.
_ALL_OPTIONAL = {"Toleration"}


def shown(field: Field, wire: type) -> str:
    """The field's value as JSON; `null` if there is none."""
    return _written(field, _type_of(wire))


def listed(field: Field, wire: type) -> str:
    """The field's list as JSON, its items of this type."""
    return "[" + ",".join(shown(item, wire) for item in field.items()) + "]"


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
        always = name in _ALWAYS and expected.cls.__name__ not in _ALL_OPTIONAL
        if always and not value.present:
            written.append(f"{go_text.as_json(name)}:{_ZERO.get(type(known.type), '{}')}")
        elif always or not _left_out(value, known.type):
            written.append(f"{go_text.as_json(name)}:{_written(value, known.type)}")
    return written


_ZERO: dict[type, str] = {msgspec.inspect.StrType: '""', msgspec.inspect.IntType: "0"}


def _left_out(value: Field, expected: msgspec.inspect.Type) -> bool:
    """Whether `omitempty` drops the value: a pointer only if it is null, an empty list or map always."""
    pointer = isinstance(expected, msgspec.inspect.UnionType)
    if isinstance(_one(expected), msgspec.inspect.ListType | msgspec.inspect.DictType) or not pointer:
        return not value.value
    return not value.present


def _one(expected: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """The type without its null."""
    if not isinstance(expected, msgspec.inspect.UnionType):
        return expected
    return next(one for one in expected.types if not isinstance(one, msgspec.inspect.NoneType))
