"""
What a plain YAML scalar means, by kubectl's rules (go-yaml v2 on its way to JSON). Knows nothing of documents.

A YAML 1.2 parser would see another cluster in the same file: here `yes` is true, `017` is 15 and `12:30` is text.
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

_TAG = "tag:yaml.org,2002:"


def plain(text: str) -> Scalar:
    """The value of an unquoted scalar; raises ValueError on infinities and NaN, which JSON cannot hold."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMBER_STARTS:
        return _number(text)
    return text


def tagged(tag: str, text: str) -> Scalar:
    """The value of a scalar under an explicit tag; raises ValueError where the two do not go together."""
    name = tag.removeprefix(_TAG)
    if name == tag or name in ("str", "timestamp"):  # tags of someone's own leave the text alone
        return text
    if name == "binary":
        return _decoded(text)
    value = plain(text)
    wanted = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(name)
    if wanted is None:
        return text
    if not isinstance(value, wanted) or (isinstance(value, bool) and name != "bool"):  # type: ignore[arg-type]
        raise ValueError(f"{text!r} is no {name}")
    return value


def key(value: Scalar) -> str:
    """A mapping key as JSON has it: always a string; raises ValueError on null."""
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError("null cannot be a key")
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(text: str) -> Scalar:
    if text in _NOT_NUMBERS:
        raise ValueError(f"{text} is no number that JSON can hold; put it in quotes if it is meant as text")
    if text[0] == ".":
        return _float(text) if _POINTED_FLOAT.fullmatch(text) else text
    bare = text.replace("_", "")
    if _INTEGER.fullmatch(bare):
        return _integer(bare)
    return _float(bare, otherwise=text) if _FLOAT.fullmatch(bare) else text


def _integer(bare: str) -> int | float:
    digits = bare.lstrip("+-")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    value = int(digits, 8) if octal else int(digits, 0)
    value = -value if bare[0] == "-" else value
    # Beyond 64 bits Go has only floats left.
    return value if -(2**63) <= value < 2**64 else float(value)


def _float(bare: str, otherwise: str = "") -> Scalar:
    value = float(bare)
    if math.isinf(value):
        return otherwise or bare
    # JSON knows one kind of number, so 1e3 becomes 1000 and fits a field that wants a whole number.
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=False).decode()
    except (binascii.Error, ValueError) as error:
        raise ValueError("!!binary does not hold base64 of text") from error
