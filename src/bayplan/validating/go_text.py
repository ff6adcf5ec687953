"""
Values as Go prints them into messages. Knows nothing of fields or rules.

Mirrors `strconv.Quote`, used for plain strings, and `encoding/json`, used for every other type: an operator or a
policy is a named type in Go, so the same characters come out differently there.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

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
