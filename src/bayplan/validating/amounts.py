"""
Numbers that may be written as a percentage, such as maxSurge or minAvailable. What they limit is not known here.

Mirrors `ValidatePositiveIntOrPercent`, `IsNotMoreThan100Percent` and `getIntOrPercentValue` in
pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

import re

from bayplan.validating import go_text
from bayplan.validating.fields import NEGATIVE, Cause, Field

NO_PERCENTAGE = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
ABOVE_100 = "must not be greater than 100%"
_PERCENTAGE = re.compile(r"([0-9]+)%")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_MAX_DIGITS = 18  # of a number in Go; one with more is the largest that there is


def validate_amount(field: Field) -> list[Cause]:
    """The causes for rejecting an amount that is negative or no percentage."""
    if not isinstance(field.value, str):
        return [field.invalid_number(NEGATIVE)] if field.number() < 0 else []
    return [] if _PERCENTAGE.fullmatch(field.text()) else [field.invalid(NO_PERCENTAGE, shown(field))]


def validate_share(field: Field) -> list[Cause]:
    """The causes for rejecting a percentage above 100."""
    is_percentage = _PERCENTAGE.fullmatch(field.text())
    return [field.invalid(ABOVE_100, shown(field))] if is_percentage and value_of(field) > 100 else []


def value_of(field: Field) -> int:
    """The number, or that before the percent sign; 0 for text that is neither."""
    text = field.text()
    found = _PERCENTAGE.fullmatch(text)
    digits = found[1] if found else text if _NUMBER.fullmatch(text) else ""
    if len(digits) > _MAX_DIGITS:
        digits = digits.lstrip("0")[: _MAX_DIGITS + 1] or "0"
    return int(digits) if digits else field.number()


def shown(field: Field) -> str:
    """The amount as messages show it; one that is not written is 0."""
    return go_text.as_json(0 if field.value is None else field.value)
