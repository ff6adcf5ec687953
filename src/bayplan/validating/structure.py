"""
Whether a value has the structure of its type: the types of its fields, their names and the ranges of integers.

`walk` compares plain values, as JSON and YAML have them, with a `Shape` and yields every difference as a `Finding`. The
shape of a type comes from its Struct (`shape_of`) or from a table of fields (`reading.checking`). A finding has two
wordings: `structure_faults` for the person who wrote the value, and `type_checks` as an API server would. The meaning
of values is not known here, nor are files.
"""

from __future__ import annotations

import difflib
import enum
import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar

import msgspec
from msgspec import inspect

from bayplan.model import quantities


class Shape(msgspec.Struct, frozen=True, eq=False):
    """
    What a value has to be: an instance of `accepted`. This one fits every value, null too.

    `is_simple` if nothing is inside of it.
    """

    accepted: ClassVar[type] = object
    is_simple: ClassVar[bool] = True

    def fits(self, value: object) -> bool:
        """Whether the value is of this type; what is inside of it is not looked at."""
        return isinstance(value, self.accepted)

    @property
    def alternatives(self) -> tuple[Shape, ...]:
        """The shapes of which a value needs one."""
        return (self,)


class Null(Shape, frozen=True, eq=False):
    """Null."""

    accepted: ClassVar[type] = type(None)


class Text(Shape, frozen=True, eq=False):
    """A string."""

    accepted: ClassVar[type] = str


class Choice(Shape, frozen=True, eq=False):
    """One of these strings."""

    texts: tuple[str, ...]

    def fits(self, value: object) -> bool:
        return isinstance(value, str) and value in self.texts


class Truth(Shape, frozen=True, eq=False):
    """True or false."""

    accepted: ClassVar[type] = bool


class Number(Shape, frozen=True, eq=False):
    """A number with or without a fraction."""

    def fits(self, value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)


class Whole(Shape, frozen=True, eq=False):
    """An integer in a range; `from_float` accepts 7.0 as well, because JSON has one type of number."""

    least: int | None = None
    most: int | None = None
    from_float: bool = False

    def fits(self, value: Any) -> bool:
        if isinstance(value, float):
            is_integer = self.from_float and value.is_integer()
        else:
            is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not is_integer:
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


class Quantity(Shape, frozen=True, eq=False):
    """A number, or the text of a quantity."""

    def fits(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return False
        try:
            quantities.parse(value)
        except ValueError:
            return False
        return True


class Scalar(Shape, frozen=True, eq=False):
    """A string, a number, true or false."""

    def fits(self, value: object) -> bool:
        return isinstance(value, str | int | float)


class ListOf(Shape, frozen=True, eq=False):
    """A list whose items all have one shape."""

    accepted: ClassVar[type] = list
    is_simple: ClassVar[bool] = False
    item: Shape


class Row(Shape, frozen=True, eq=False):
    """A list of fixed length, with a shape for each item."""

    is_simple: ClassVar[bool] = False
    shapes: tuple[Shape, ...]

    def fits(self, value: object) -> bool:
        return isinstance(value, list) and len(value) == len(self.shapes)


class MapOf(Shape, frozen=True, eq=False):
    """A mapping whose keys the author chooses, and whose values all have one shape."""

    accepted: ClassVar[type] = Mapping
    is_simple: ClassVar[bool] = False
    value: Shape


class Record(Shape, frozen=True, eq=False):
    """
    A mapping with known names; if it is `closed`, other names are findings.

    `noun` says what a name stands for. The path of a member is `path.name`, or `path[name]` if names are `bracketed`.
    """

    accepted: ClassVar[type] = Mapping
    is_simple: ClassVar[bool] = False
    fields: dict[str, Shape]
    required: frozenset[str] = frozenset()
    closed: bool = False
    noun: str = "field"
    bracketed: bool = False

    def path_of(self, name: object, path: str) -> str:
        """The path of a member, given that of the record."""
        if self.bracketed:
            return f"{path}[{name}]"
        return f"{path}.{name}" if path else str(name)


class Either(Shape, frozen=True, eq=False):
    """One of several shapes: the first that fits."""

    is_simple: ClassVar[bool] = False
    shapes: tuple[Shape, ...]

    def fits(self, value: object) -> bool:
        return any(one.fits(value) for one in self.shapes)

    @property
    def alternatives(self) -> tuple[Shape, ...]:
        return self.shapes


ANYTHING = Shape()


class Problem(enum.Enum):
    """How a value differs from its shape."""

    WRONG_TYPE = enum.auto()
    OUT_OF_RANGE = enum.auto()
    UNKNOWN_FIELD = enum.auto()
    MISSING_FIELD = enum.auto()


class Nulls(enum.Enum):
    """
    Where null fits although the shape does not say so.

    Go accepts it everywhere. `FIELDS` accepts it for fields, which are then absent, but not among the items of a list.
    msgspec accepts it nowhere, and rejects missing fields as well.
    """

    EVERYWHERE = enum.auto()
    FIELDS = enum.auto()
    NOWHERE = enum.auto()


class Finding(msgspec.Struct, frozen=True, eq=False):
    """
    One difference: where it is, the shapes of which one was expected, and the value.

    For an unknown field, `expected` is the record and `got` the name. For a missing field, `got` is None.
    """

    path: str
    problem: Problem
    expected: tuple[Shape, ...]
    got: object


def walk(
    value: Any, shape: Shape, path: str = "", *, closed: bool = False, nulls: Nulls = Nulls.EVERYWHERE
) -> Iterator[Finding]:
    """Every difference between the value and the shape, in written order; `closed` applies to every record."""
    if value is None and nulls is not Nulls.NOWHERE:
        return
    if isinstance(shape, Either):
        chosen = next((one for one in shape.shapes if one.fits(value)), None)
    else:
        chosen = shape if shape.fits(value) else None
    if chosen is None:
        yield _mismatch(path, shape.alternatives, value)
    elif isinstance(chosen, Record):
        yield from _walk_record(value, chosen, path, closed=closed, nulls=nulls)
    elif isinstance(chosen, MapOf):
        for key, item in value.items():
            yield from walk(item, chosen.value, f"{path}[{key}]", closed=closed, nulls=nulls)
    elif isinstance(chosen, ListOf | Row):
        shapes = chosen.shapes if isinstance(chosen, Row) else itertools.repeat(chosen.item)
        for position, (item, one) in enumerate(zip(value, shapes, strict=False)):
            here = Nulls.NOWHERE if item is None and nulls is Nulls.FIELDS else nulls
            yield from walk(item, one, f"{path}[{position}]", closed=closed, nulls=here)


def _walk_record(
    value: Mapping[Any, object], record: Record, path: str, *, closed: bool, nulls: Nulls
) -> Iterator[Finding]:
    for name, item in value.items():
        shape = record.fields.get(name)
        if shape is None:
            if closed or record.closed:
                yield Finding(record.path_of(name, path), Problem.UNKNOWN_FIELD, (record,), str(name))
        elif not (shape.is_simple and shape.fits(item)):  # most values are simple and fit: their paths are not needed
            yield from walk(item, shape, record.path_of(name, path), closed=closed, nulls=nulls)
    if nulls is Nulls.NOWHERE:
        for name in record.fields:
            if name in record.required and name not in value:
                expected = record.fields[name].alternatives
                yield Finding(record.path_of(name, path), Problem.MISSING_FIELD, expected, None)


def _mismatch(path: str, shapes: tuple[Shape, ...], value: object) -> Finding:
    """An integer where an integer was expected is out of its range; anything else is of a wrong type."""
    for one in shapes:
        if isinstance(one, Whole) and Whole(from_float=one.from_float).fits(value):
            return Finding(path, Problem.OUT_OF_RANGE, (one,), value)
    return Finding(path, Problem.WRONG_TYPE, shapes, value)


@cache
def shape_of(wire: Any) -> Shape:
    """The shape of the plain values that msgspec converts into a type; of its constraints, only `ge` and `le` count."""
    return _shape(inspect.type_info(wire), {})


def _shape(info: inspect.Type, known: dict[type, Record]) -> Shape:
    match info:
        case inspect.StrType():
            return Text()
        case inspect.BoolType():
            return Truth()
        case inspect.IntType():
            return Whole(info.ge, info.le)
        case inspect.FloatType():
            return Number()
        case inspect.NoneType():
            return Null()
        case inspect.LiteralType():
            return Choice(tuple(str(value) for value in info.values))
        case inspect.EnumType():
            return Choice(tuple(str(one.value) for one in info.cls))
        case inspect.ListType() | inspect.VarTupleType() | inspect.FrozenSetType():
            return ListOf(_shape(info.item_type, known))
        case inspect.TupleType():
            return Row(tuple(_shape(item, known) for item in info.item_types))
        case inspect.DictType():
            return MapOf(_shape(info.value_type, known))
        case inspect.UnionType():
            return Either(tuple(_shape(one, known) for one in info.types))
        case inspect.StructType() if info.cls in known:
            return known[info.cls]
        case inspect.StructType():
            required = frozenset(field.encode_name for field in info.fields if field.required)
            # Known before its fields are, because a type may contain itself.
            known[info.cls] = record = Record({}, required, info.forbid_unknown_fields)
            record.fields.update((field.encode_name, _shape(field.type, known)) for field in info.fields)
            return record
    return ANYTHING


def nearest(name: str, known: Iterable[str], *, cutoff: float, fold_case: bool) -> str:
    """The known name that was probably meant; empty if none is near."""
    by_name = {one.casefold() if fold_case else one: one for one in known}
    near = difflib.get_close_matches(name.casefold() if fold_case else name, by_name, n=1, cutoff=cutoff)
    return by_name[near[0]] if near else ""


_WORDS: Mapping[type[Shape], str] = {
    Shape: "a value",
    Truth: "true or false",
    Number: "a number",
    Whole: "a whole number",
    Quantity: "a quantity such as 500m or 1.5Gi",
    Scalar: "a string, a number, true or false",
    ListOf: "a list",
    MapOf: "a mapping",
    Record: "a mapping",
}


def expected_text(finding: Finding, *, text: str) -> str:
    """What would have fitted, null aside; `text` is the word for a string."""
    if finding.problem is Problem.OUT_OF_RANGE:
        return " or ".join(_range_text(one) for one in finding.expected if isinstance(one, Whole))
    return " or ".join(dict.fromkeys(_word(one, text) for one in finding.expected if not isinstance(one, Null)))


def _range_text(shape: Whole) -> str:
    if shape.least is None:
        return f"a whole number of at most {shape.most}"
    if shape.most is None:
        return f"a whole number of at least {shape.least}"
    return f"a whole number from {shape.least} to {shape.most}"


def _word(shape: Shape, text: str) -> str:
    match shape:
        case Text():
            return text
        case Choice():
            return " or ".join(shape.texts)
        case Row():
            return f"a list of {len(shape.shapes)}"
    return _WORDS[type(shape)]


def type_text(value: object, *, text: str) -> str:
    """The type of a value, which is not shown itself; `text` is the word for a string."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case str():
            return text
        case int():
            return "a whole number"
        case float():
            return "a fraction"
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
    return type(value).__name__
