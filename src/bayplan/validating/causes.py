"""
One reason for refusing an object, worded as in an API server's Status.

Mirrors apimachinery's util/validation/field/errors.go. Values arrive already rendered (`go_text`), because the
wording depends on the type a value has in Go.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.validating import go_text
from bayplan.validating.fields import Field

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
FORBIDDEN = "FieldValueForbidden"
DUPLICATE = "FieldValueDuplicate"
NOT_SUPPORTED = "FieldValueNotSupported"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
NOT_FOUND = "FieldValueNotFound"
TYPE_INVALID = "FieldValueTypeInvalid"


class Cause(msgspec.Struct, frozen=True, order=True):
    """The reason, the field and the message of one cause, as they stand in a Status."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def invalid(path: str, shown: str, detail: str) -> Cause:
    """A value that breaks a rule."""
    return Cause(INVALID, path, f"Invalid value: {shown}: {detail}")


def malformed(path: str, detail: str) -> Cause:
    """An invalid value too long or too broken to repeat."""
    return Cause(INVALID, path, f"Invalid value: {detail}")


def required(path: str, detail: str = "") -> Cause:
    """A value that is missing."""
    return Cause(REQUIRED, path, f"Required value: {detail}" if detail else "Required value")


def forbidden(path: str, detail: str) -> Cause:
    """A value that must not stand here."""
    return Cause(FORBIDDEN, path, f"Forbidden: {detail}")


def duplicate(path: str, shown: str) -> Cause:
    """A value that stands elsewhere already."""
    return Cause(DUPLICATE, path, f"Duplicate value: {shown}")


def unsupported(path: str, shown: str, supported: Iterable[str]) -> Cause:
    """A value that is none of those there are."""
    listed = ", ".join(go_text.quoted(value) for value in supported)
    return Cause(NOT_SUPPORTED, path, f"Unsupported value: {shown}: supported values: {listed}")


def too_long(path: str, detail: str) -> Cause:
    """A value that takes too much room; it is not repeated."""
    return Cause(TOO_LONG, path, f"Too long: {detail}")


def too_many(path: str, number: int, most: int) -> Cause:
    """A list with more items than there may be."""
    return Cause(TOO_MANY, path, f"Too many: {number}: must have at most {most} items")


def not_found(path: str, shown: str, detail: str = "") -> Cause:
    """A name that nothing has."""
    return Cause(NOT_FOUND, path, f"Not found: {shown}: {detail}" if detail else f"Not found: {shown}")


def wrong_type(path: str, shown: str, detail: str) -> Cause:
    """A value of a type that the field does not have."""
    return Cause(TYPE_INVALID, path, f"Invalid value: {shown}: {detail}")


# RF merged from validating.choices: Fields that must be there, or hold one of a few words, or a number within bounds.
# Knows nothing of their meaning.


NEGATIVE = "must be greater than or equal to 0"


def needed(*fields: Field) -> list[Cause]:
    """The texts that are missing; an empty one is."""
    return [required(field.path) for field in fields if not field.text()]


def one_of(field: Field, supported: Iterable[str]) -> list[Cause]:
    """Whether a word that was written is one of those there are; the empty one must be among them too."""
    listed = tuple(supported)
    if not field.present or field.text() in listed:
        return []
    return [unsupported(field.path, go_text.as_json(field.text()), listed)]


def defaulted(field: Field, supported: Iterable[str]) -> list[Cause]:
    """Whether a word is one of those there are; the empty one stands for the default."""
    return one_of(field, supported) if field.text() else []


def not_negative(field: Field) -> list[Cause]:
    """Whether a number is at least 0."""
    return [] if field.number() >= 0 else [invalid(field.path, str(field.number()), NEGATIVE)]


def within(field: Field, least: int, most: int) -> list[Cause]:
    """Whether a number lies between two others, both allowed; a missing one is 0."""
    if least <= field.number() <= most:
        return []
    return [invalid(field.path, str(field.number()), f"must be between {least} and {most}, inclusive")]
