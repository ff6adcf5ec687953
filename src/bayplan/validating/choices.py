"""Fields that must be there, or hold one of a few words, or a number within bounds. Knows nothing of their meaning."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.validating import causes, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

NEGATIVE = "must be greater than or equal to 0"


def needed(*fields: Field) -> list[Cause]:
    """The texts that are missing; an empty one is."""
    return [causes.required(field.path) for field in fields if not field.text()]


def one_of(field: Field, supported: Iterable[str]) -> list[Cause]:
    """Whether a word that was written is one of those there are; the empty one must be among them too."""
    listed = tuple(supported)
    if not field.present or field.text() in listed:
        return []
    return [causes.unsupported(field.path, go_text.as_json(field.text()), listed)]


def defaulted(field: Field, supported: Iterable[str]) -> list[Cause]:
    """Whether a word is one of those there are; the empty one stands for the default."""
    return one_of(field, supported) if field.text() else []


def not_negative(field: Field) -> list[Cause]:
    """Whether a number is at least 0."""
    return [] if field.number() >= 0 else [causes.invalid(field.path, str(field.number()), NEGATIVE)]


def within(field: Field, least: int, most: int) -> list[Cause]:
    """Whether a number lies between two others, both allowed; a missing one is 0."""
    if least <= field.number() <= most:
        return []
    return [causes.invalid(field.path, str(field.number()), f"must be between {least} and {most}, inclusive")]
