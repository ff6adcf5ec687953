"""
What a YAML scalar means to kubectl.

These are the rules of go-yaml v2 on its way to JSON, which YAML 1.2 parsers do not follow: `yes` is true, `017` is 15
and `12:30` is text. Does not know where a scalar stands.
"""

from __future__ import annotations

import base64
import binascii
import math
import re

Scalar = str | int | float | bool | None

_TRUE = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")
_FALSE = ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")
_NULL = ("", "~", "null", "Null", "NULL")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(_NULL, None),
}
_NOT_NUMBERS = {f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")} | {
    ".nan",
    ".NaN",
    ".NAN",
}
_NUMBER_STARTS = frozenset("0123456789+-.")

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[+-]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?")
_POINTED_FLOAT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][+-]?[0-9]+)?")

_MAX_INTEGER_DIGITS = 20  # of 64 bits
_TAG = "tag:yaml.org,2002:"


def plain(text: str) -> Scalar:
    """The value of an unquoted scalar; raises ValueError for infinity and NaN, which JSON cannot represent."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if text in _NOT_NUMBERS:
        raise ValueError(f"{text} is no number that JSON can hold; put it in quotes if it is meant as text")
    if text[0] == ".":
        return _float(text) if _POINTED_FLOAT.fullmatch(text) else text
    bare = text.replace("_", "")
    if not _INTEGER.fullmatch(bare):
        return _float(bare, otherwise=text) if _FLOAT.fullmatch(bare) else text
    digits = bare.lstrip("+-")
    if len(digits) > _MAX_INTEGER_DIGITS and digits.isdigit():
        return _float(bare, otherwise=text)
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    value = int(digits, 8) if is_octal else int(digits, 0)
    value = -value if bare[0] == "-" else value
    # Beyond 64 bits Go has only floats, and beyond those only text.
    return value if -(2**63) <= value < 2**64 else _float(str(value), otherwise=text)


def is_text(scalar: str) -> bool:
    """Whether the scalar means itself without quotes."""
    try:
        return isinstance(plain(scalar), str)
    except ValueError:
        return False


def tagged(tag: str, text: str) -> Scalar:
    """The value of a scalar with an explicit tag; raises ValueError if the text does not fit the tag."""
    name = tag.removeprefix(_TAG)
    if name == tag or name in ("str", "timestamp"):  # application-specific tags do not change the text
        return text
    if name == "binary":
        try:
            return base64.b64decode(text, validate=False).decode()
        except (binascii.Error, ValueError) as error:
            raise ValueError("!!binary does not hold base64 of text") from error
    value = plain(text)
    expected = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(name)
    if expected is None:
        return text
    if not isinstance(value, expected) or (isinstance(value, bool) and name != "bool"):  # type: ignore[arg-type]
        raise ValueError(f"{text!r} is no {name}")
    return value


def _float(bare: str, otherwise: str = "") -> Scalar:
    value = float(bare)
    if math.isinf(value):
        return otherwise or bare
    # JSON has one type of number, so 1e3 becomes 1000 and fits an integer field.
    return int(value) if value.is_integer() and abs(value) < 1e21 else value
