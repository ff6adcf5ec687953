"""
A field of a decoded object, and the causes for rejecting it, worded as in an API server's Status.

Mirrors apimachinery's util/validation/field (path.go and errors.go). A field reads as in Go: absent, null and the zero
value are the same unless a rule asks `present`. A value of the wrong type reads as absent, because `type_checks`
rejects such an object before any other rule runs. No rule is defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from bayplan.model.kubernetes_versions import DEFAULT_VERSION, KubernetesVersion
from bayplan.validating import go_text

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
FORBIDDEN = "FieldValueForbidden"
DUPLICATE = "FieldValueDuplicate"
NOT_SUPPORTED = "FieldValueNotSupported"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
NOT_FOUND = "FieldValueNotFound"
TYPE_INVALID = "FieldValueTypeInvalid"

NEGATIVE = "must be greater than or equal to 0"

TextRule = Callable[[str], list[str]]


class Cause(msgspec.Struct, frozen=True, order=True):
    """One reason for rejecting an object: reason, field and message, as in a Status."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class Field(msgspec.Struct, frozen=True):
    """
    A value and the path that leads to it; the path exists even where nothing was written.

    It is that of an object for an API server of this `version`, for the few rules that differ.
    """

    path: str
    value: object = None
    version: KubernetesVersion = DEFAULT_VERSION

    def __getitem__(self, name: str) -> Field:
        value = self.value.get(name) if isinstance(self.value, Mapping) else None
        return Field(f"{self.path}.{name}" if self.path else name, value, self.version)

    def entry(self, key: str) -> Field:
        """The value of this key of a map."""
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        return Field(f"{self.path}[{key}]", value, self.version)

    def at(self, name: str, path: str) -> Field:
        """The named field, for the few fields that messages report at another path."""
        return Field(path, self[name].value, self.version)

    @property
    def present(self) -> bool:
        """Whether a value other than null was written."""
        return self.value is not None

    def items(self) -> list[Field]:
        """The items of a list, none if it is empty or absent."""
        values = self.value if isinstance(self.value, list) else []
        return [Field(f"{self.path}[{position}]", value, self.version) for position, value in enumerate(values)]

    def names(self) -> list[str]:
        """The names of the fields, or the keys, that were written here."""
        return [str(name) for name in self.value] if isinstance(self.value, Mapping) else []

    def text(self) -> str:
        """The text, empty if there is none."""
        return self.value if isinstance(self.value, str) else ""

    def number(self, default: int = 0) -> int:
        """The integer, `default` if there is none."""
        return self.value if isinstance(self.value, int) and not isinstance(self.value, bool) else default

    def is_true(self) -> bool:
        """Whether the value is true; absent is false."""
        return self.value is True

    def texts(self) -> list[str]:
        """The texts of a list, none if it is empty or absent."""
        return [item.text() for item in self.items()]

    def labels(self) -> dict[str, str]:
        """A map of texts; a null value is the empty text, as in Go."""
        written = self.value if isinstance(self.value, Mapping) else {}
        return {str(key): value if isinstance(value, str) else "" for key, value in written.items()}

    # Causes. The wording of a value depends on its type in Go: `shown` is the value already rendered by `go_text`.

    def invalid(self, detail: str, shown: str | None = None) -> Cause:
        """The value breaks a rule; by default the value is a plain string."""
        rendered = go_text.quoted(self.text()) if shown is None else shown
        return Cause(INVALID, self.path, f"Invalid value: {rendered}: {detail}")

    def invalid_number(self, detail: str) -> Cause:
        """The integer breaks a rule."""
        return self.invalid(detail, str(self.number()))

    def malformed(self, detail: str) -> Cause:
        """The value is invalid and too long or too broken to repeat."""
        return Cause(INVALID, self.path, f"Invalid value: {detail}")

    def required(self, detail: str = "") -> Cause:
        """The value is missing."""
        return Cause(REQUIRED, self.path, f"Required value: {detail}" if detail else "Required value")

    def forbidden(self, detail: str) -> Cause:
        """The field must not be set."""
        return Cause(FORBIDDEN, self.path, f"Forbidden: {detail}")

    def duplicate(self, shown: str | None = None) -> Cause:
        """The value occurs more than once; by default it is a plain string."""
        return Cause(
            DUPLICATE, self.path, f"Duplicate value: {go_text.quoted(self.text()) if shown is None else shown}"
        )

    def unsupported(self, supported: Iterable[str], shown: str | None = None) -> Cause:
        """The value is none of the supported ones; by default it is a named string type."""
        rendered = go_text.as_json(self.text()) if shown is None else shown
        listed = ", ".join(go_text.quoted(value) for value in supported)
        return Cause(NOT_SUPPORTED, self.path, f"Unsupported value: {rendered}: supported values: {listed}")

    def too_long(self, max_bytes: int) -> Cause:
        """The value is too long; it is not repeated."""
        return Cause(TOO_LONG, self.path, f"Too long: may not be more than {max_bytes} bytes")

    def too_many(self, max_items: int) -> Cause:
        """The list has too many items."""
        return Cause(TOO_MANY, self.path, f"Too many: {len(self.items())}: must have at most {max_items} items")

    def not_found(self, detail: str = "", shown: str | None = None) -> Cause:
        """The text names something that does not exist."""
        rendered = go_text.quoted(self.text()) if shown is None else shown
        return Cause(NOT_FOUND, self.path, f"Not found: {rendered}: {detail}" if detail else f"Not found: {rendered}")

    def wrong_type(self, detail: str, shown: str) -> Cause:
        """The value is of another type than the field."""
        return Cause(TYPE_INVALID, self.path, f"Invalid value: {shown}: {detail}")

    # Checks that recur; each returns the causes, none if the value is valid.

    def check_text(self, rule: TextRule, *, optional: bool = False) -> list[Cause]:
        """One cause per detail that the rule finds in the text; an empty text is valid if it is optional."""
        text = self.text()
        return [] if optional and not text else [self.invalid(detail) for detail in rule(text)]

    def check_enum(self, supported: tuple[str, ...], *, empty_is_default: bool = True) -> list[Cause]:
        """Whether the text is one of the supported ones; an absent text is valid, and so is an empty default."""
        text = self.text()
        if text in supported or not self.present or (empty_is_default and not text):
            return []
        return [self.unsupported(supported)]

    def check_not_negative(self) -> list[Cause]:
        """Whether the integer is at least 0."""
        return [] if self.number() >= 0 else [self.invalid_number(NEGATIVE)]

    def check_range(self, least: int, most: int) -> list[Cause]:
        """Whether the integer lies between two others, both allowed; a missing one is 0."""
        if least <= self.number() <= most:
            return []
        return [self.invalid_number(f"must be between {least} and {most}, inclusive")]

    def check_integer(self, least: int, most: int | None, detail: str) -> list[Cause]:
        """Whether a value that is present is an integer from `least` to `most`; the value may be of any type."""
        if not self.present:
            return []
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            return [self.invalid("expected a whole number", go_text.as_json(self.value))]
        if self.value < least or (most is not None and self.value > most):
            return [self.invalid_number(detail)]
        return []


def missing_texts(*fields: Field) -> list[Cause]:
    """A cause for each field whose text is absent or empty."""
    return [field.required() for field in fields if not field.text()]
