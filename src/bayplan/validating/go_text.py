"""
Values as Go prints them into messages: strings, JSON, structs and quantities. Fields and rules are not known here.

Mirrors `strconv.Quote`, used for plain strings, and `encoding/json`, used for every other type: an operator or a policy
is a named type in Go and is therefore escaped differently. A struct has its fields in the order of their declaration,
without the empty ones; this mirrors `encoding/json` on Karmada's API types. Quantities (1000m as 1, 1024Mi as 1Gi, 0.5
as 500m) mirror `ParseQuantity` and `CanonicalizeBytes` in apimachinery's api/resource/quantity.go, and
`SetDefaults_ResourceList` in pkg/apis/core/v1/defaults.go, which rounds amounts up to thousandths before validation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

import msgspec
from msgspec import inspect

from bayplan.model import quantities
from bayplan.wire.pods import WireToleration

_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_REPLACEMENT = "\ufffd"


def quoted(text: str) -> str:
    """The text in double quotes, as `%q` prints it."""
    return '"' + "".join(_quote(character) for character in without_surrogates(text)) + '"'


def as_json(value: object) -> str:
    """The value as `json.Marshal` writes it: keys sorted, and the characters of HTML markup escaped."""
    text = msgspec.json.encode(_replaced(value), order="deterministic").decode()
    return "".join(_HTML.get(character, character) for character in text)


def without_surrogates(text: str) -> str:
    """The text with each unpaired surrogate replaced, as Go does when it decodes JSON."""
    return "".join(_REPLACEMENT if "\ud800" <= character <= "\udfff" else character for character in text)


def n_bytes(text: str) -> int:
    """The length that Go's `len` gives."""
    # An unpaired surrogate has three bytes, and so does the character that Go replaces it with.
    return len(text.encode(errors="surrogatepass"))


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
    """The value without unpaired surrogates, which cannot be encoded."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, Mapping):
        return {without_surrogates(str(key)): _replaced(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item) for item in value]
    return value


# Fields that Go prints even when they are empty, because their tag lacks `omitempty`.
_ALWAYS_PRINTED = {"affinityName", "groupByLabelKey", "key", "operator", "targetCluster", "weight", "rules"}
# Types whose tags all have `omitempty`.
_ALL_OPTIONAL = {WireToleration}
_ZERO_VALUES: dict[type, str] = {inspect.StrType: '""', inspect.IntType: "0"}
_type_info = cache(inspect.type_info)


def struct_json(value: object, wire: type | inspect.Type) -> str:
    """The value of a field of this wire type as JSON; `null` if there is none."""
    expected = _without_null(wire if isinstance(wire, inspect.Type) else _type_info(wire))
    if isinstance(expected, inspect.ListType):
        return list_json(value, expected.item_type)
    if not isinstance(expected, inspect.StructType) or value is None:
        return as_json(value)
    written = value if isinstance(value, Mapping) else {}
    members: list[str] = []
    for known in expected.fields:
        member, name = written.get(known.encode_name), as_json(known.encode_name)
        always = known.encode_name in _ALWAYS_PRINTED and expected.cls not in _ALL_OPTIONAL
        if always and member is None:
            members.append(f"{name}:{_ZERO_VALUES.get(type(known.type), '{}')}")
        elif always or not _is_omitted(member, known.type):
            members.append(f"{name}:{struct_json(member, known.type)}")
    return "{" + ",".join(members) + "}"


def list_json(value: object, wire: type | inspect.Type) -> str:
    """A list with items of this wire type as JSON."""
    items = value if isinstance(value, list) else []
    return "[" + ",".join(struct_json(item, wire) for item in items) + "]"


def _is_omitted(value: object, expected: inspect.Type) -> bool:
    """Whether `omitempty` omits the value: a pointer only if it is null, an empty list or map always."""
    pointer = isinstance(expected, inspect.UnionType)
    if isinstance(_without_null(expected), inspect.ListType | inspect.DictType) or not pointer:
        return not value
    return value is None


def _without_null(expected: inspect.Type) -> inspect.Type:
    """The type without its null."""
    if not isinstance(expected, inspect.UnionType):
        return expected
    return next(one for one in expected.types if not isinstance(one, inspect.NoneType))


_PARTS = re.compile(r"[+-]?0*(\d*)\.?(\d*)(?:[eE]([+-]?\d+)|([numkMGTPE]i?|Ki)?)")
_DECIMAL = {-3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_POWERS = {suffix: power for power, suffix in _DECIMAL.items()} | {"n": -9, "u": -6}
_MAX_BINARY = 2**63 - 1


def quantity_text(written: object) -> str:
    """What `Quantity.String()` returns for a valid quantity; null is 0, as in Go."""
    source = "0" if written is None else str(written)
    parts = _PARTS.fullmatch(source)
    assert parts is not None, "the caller has parsed it"
    if source == "0" or _is_kept(*parts.groups(default="")):
        return source
    return _canonical(source, exponent=parts[3] is not None, binary=(parts[4] or "").endswith("i"))


def rounded_quantity(written: object) -> Fraction:
    """The quantity rounded to thousandths, away from zero; null is 0, as in Go."""
    exact = quantities.parse(written if isinstance(written, str | int | float) else 0)
    thousandths = -(-abs(exact) * 1000 // 1)
    return Fraction(thousandths if exact >= 0 else -thousandths, 1000)


def _is_kept(integer: str, fraction: str, exponent: str, suffix: str) -> bool:
    """Whether Go's fast path takes the text as canonical: 2.500 is, 2.5 is not."""
    digits = (integer or "0") + fraction
    if suffix.endswith("i"):
        room = 14 - len(integer or "0") - 3 * _BINARY.index(suffix)
        return not fraction and room >= 0 and bool(int(digits) & 7)
    scale = (int(exponent) if exponent else _POWERS[suffix]) - len(fraction)
    fast = len(digits) <= 18 and scale >= -3
    return fast and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def amount_text(exact: Fraction, *, binary: bool) -> str:
    """What `Quantity.String()` returns for a sum of quantities that is printed with binary suffixes or without."""
    return _amount_text(-1 if exact < 0 else 1, abs(exact) * 1000 // 1, exponent=False, binary=binary)


def _canonical(source: str, *, exponent: bool, binary: bool) -> str:
    sign = -1 if source.startswith("-") else 1
    return _amount_text(sign, abs(rounded_quantity(source)) * 1000 // 1, exponent=exponent, binary=binary)


def _amount_text(sign: int, thousandths: int, *, exponent: bool, binary: bool) -> str:
    if binary:
        thousandths = min(thousandths, _MAX_BINARY * 1000)
        if thousandths >= 1024 * 1000 and thousandths % 1000 == 0:
            amount, power = _without_factors(thousandths // 1000, 1024)
            return f"{sign * amount}{_BINARY[power]}"
    if not thousandths:
        return "0"
    amount, power = _without_factors(thousandths, 1000)
    scale = 3 * power - 3
    if not exponent:
        return f"{sign * amount}{_DECIMAL.get(scale, '')}"  # beyond the largest suffix, Go prints none
    return f"{sign * amount}e{scale}" if scale else str(sign * amount)


def _without_factors(number: int, factor: int) -> tuple[int, int]:
    """The number divided by the factor as often as possible, and how often that was."""
    times = 0
    while number % factor == 0:
        number, times = number // factor, times + 1
    return number, times
