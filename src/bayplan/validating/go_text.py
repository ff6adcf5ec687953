"""
Values as Go prints them into messages. Knows nothing of fields or rules.

Mirrors `strconv.Quote`, used for plain strings, and `encoding/json`, used for every other type: an operator or a
policy is a named type in Go, so the same characters come out differently there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

import msgspec

from bayplan.model import quantities

_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_REPLACEMENT = "\ufffd"


def quoted(text: str) -> str:
    """The text in double quotes, as `%q` prints it."""
    return '"' + "".join(_quote(character) for character in whole(text)) + '"'


def as_json(value: object) -> str:
    """The value as `json.Marshal` writes it: keys sorted, and what HTML would mistake for markup escaped."""
    text = msgspec.json.encode(_replaced(value), order="deterministic").decode()
    return "".join(_HTML.get(character, character) for character in text)


def whole(text: str) -> str:
    """The text with halves of surrogate pairs replaced, which Go does when it decodes JSON."""
    return "".join(_REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in text)


def n_bytes(text: str) -> int:
    """The length that Go's `len` gives."""
    return len(whole(text).encode())


def _quote(character: str) -> str:
    code = ord(character)
    if code in _NAMED:
        return _NAMED[code]
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _replaced(value: object) -> object:
    """The value with every text made whole, since half a pair cannot be encoded."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, Mapping):
        return {whole(str(key)): _replaced(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item) for item in value]
    return value


# RF merged from validating.go_quantities: An amount of a resource as Go prints it into messages: 1000m as 1, 1024Mi
# as 1Gi, 0.5 as 500m. Mirrors `ParseQuantity` and `CanonicalizeBytes` in apimachinery's api/resource/quantity.go, and
# `SetDefaults_ResourceList` in pkg/apis/core/v1/defaults.go, which rounds amounts up to thousandths before anybody
# looks.

_PARTS = re.compile(r"[+-]?0*(\d*)\.?(\d*)(?:[eE]([+-]?\d+)|([numkMGTPE]i?|Ki)?)")
_DECIMAL = {-3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_POWERS = {suffix: power for power, suffix in _DECIMAL.items()} | {"n": -9, "u": -6}
_LARGEST_BINARY = 2**63 - 1


def quantity_text(written: object) -> str:
    """What `Quantity.String()` gives for an amount that can be read."""
    source = str(written)
    parts = _PARTS.fullmatch(source)
    assert parts is not None, "whoever asks has parsed it"
    if source == "0" or _is_kept(*parts.groups(default="")):
        return source
    return _canonical(source, exponent=parts[3] is not None, binary=(parts[4] or "").endswith("i"))


def rounded_quantity(written: str | float) -> Fraction:
    """The amount in whole thousandths, away from zero: whoever wants something should get something."""
    exact = quantities.parse(written)
    thousandths = -(-abs(exact) * 1000 // 1)
    return Fraction(thousandths if exact >= 0 else -thousandths, 1000)


def _is_kept(whole: str, fraction: str, exponent: str, suffix: str) -> bool:
    """Whether Go takes the text as canonical, which it finds out in a hurry: 2.500 is, 2.5 is not."""
    digits = (whole or "0") + fraction
    if suffix.endswith("i"):
        room = 14 - len(whole or "0") - 3 * _BINARY.index(suffix)
        return not fraction and room >= 0 and bool(int(digits) & 7)
    scale = (int(exponent) if exponent else _POWERS[suffix]) - len(fraction)
    fast = len(digits) <= 18 and scale >= -3
    return fast and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _canonical(source: str, *, exponent: bool, binary: bool) -> str:
    sign = -1 if source.startswith("-") else 1
    thousandths = abs(rounded_quantity(source)) * 1000 // 1
    if binary:
        thousandths = min(thousandths, _LARGEST_BINARY * 1000)
        if thousandths >= 1024 * 1000 and thousandths % 1000 == 0:
            amount, power = _without_factors(thousandths // 1000, 1024)
            return f"{sign * amount}{_BINARY[power]}"
    if not thousandths:
        return "0"
    amount, power = _without_factors(thousandths, 1000)
    scale = 3 * power - 3
    if not exponent:
        return f"{sign * amount}{_DECIMAL.get(scale, '')}"  # what is too large for letters is printed without one
    return f"{sign * amount}e{scale}" if scale else str(sign * amount)


def _without_factors(number: int, factor: int) -> tuple[int, int]:
    """The number divided by the factor as often as that is possible, and how often it was."""
    times = 0
    while number % factor == 0:
        number, times = number // factor, times + 1
    return number, times
