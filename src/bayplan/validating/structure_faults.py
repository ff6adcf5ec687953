"""
Findings of `structure` in the words for the person who wrote the value, and decoding that reports all of them.

    spec.priority: expected a whole number, got the string "7"
    spec.nodename: unknown field, did you mean nodeName?

Files and lines are added by whoever read the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.validating import structure
from bayplan.validating.structure import Finding, Null, Nulls, Problem, Record, Row, Text

# Everything that msgspec raises for a text that it cannot decode.
UNDECODABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
BYTE_OFFSET = re.compile(r" \(byte (\d+)\)")
_MAX_SHOWN_LENGTH = 40
UNKNOWN_FIELD_PREFIX = "unknown field"  # how messages about misspelt names begin


def message(finding: Finding) -> str:
    """What is wrong with the value; its path is not repeated."""
    match finding.problem, *finding.expected:
        case Problem.UNKNOWN_FIELD, Record(fields=known, noun=noun):
            near = structure.nearest(str(finding.got), known, cutoff=0.75, fold_case=True)
            return f"unknown {noun}{f', did you mean {near}?' if near else ''}"
    return f"expected {structure.expected_text(finding, text='a string')}, got {_shown(finding)}{_advice(finding)}"


def _shown(finding: Finding) -> str:
    """The value as shown in messages."""
    value = finding.got
    match value:
        case None:
            return "nothing" if finding.problem is Problem.MISSING_FIELD else "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            short = value if len(value) <= _MAX_SHOWN_LENGTH else f"{value[:_MAX_SHOWN_LENGTH]}…"
            return f"the string {json.dumps(short, ensure_ascii=False)}"
        case list():
            return f"a list of {len(value)}" if any(isinstance(one, Row) for one in finding.expected) else "a list"
    return "a mapping"


def _advice(finding: Finding) -> str:
    """A hint for the usual mistake: YAML reads unquoted numbers, yes and on as other types than text."""
    only_text = all(isinstance(one, Text | Null) for one in finding.expected)
    unquoted = isinstance(finding.got, bool | int | float)
    return " (put it in quotes)" if only_text and unquoted else ""


def convert(value: object, wire: Any, path: str = "") -> Any:
    """The plain value in its type; raises InputError with every difference."""
    try:
        return msgspec.convert(value, wire)
    except msgspec.ValidationError as error:
        raise InputError(faults(value, wire, path) or Fault(str(error), path=path)) from None


def decode(
    text: bytes | msgspec.Raw, wire: Any, path: str = "", *, dec_hook: Callable[[type, Any], Any] | None = None
) -> Any:
    """
    JSON in its type; raises InputError with every difference, or with the reason why it is not JSON.

    `dec_hook` makes the values of types that JSON does not have.
    """
    try:
        return msgspec.json.decode(text, type=wire, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise InputError(_json_faults(text, wire, path) or Fault(str(error), path=path)) from None
    except UNDECODABLE as error:
        raise InputError(Fault(decoding_message(error), path=path)) from None


def _json_faults(text: bytes | msgspec.Raw, wire: Any, path: str) -> list[Fault]:
    try:
        return faults(msgspec.json.decode(text), wire, path)
    except UNDECODABLE as error:  # decoding a value finds errors that skipping it does not
        return [Fault(decoding_message(error), path=path)]


def decoding_message(error: Exception) -> str:
    """Why a text cannot be decoded as JSON."""
    if isinstance(error, RecursionError):
        return "invalid JSON: nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "invalid JSON: not UTF-8"
    text = BYTE_OFFSET.sub("", str(error)).removeprefix("JSON is malformed: ").partition(" - at ")[0]
    return "invalid JSON: it ends too early" if "truncated" in text else f"invalid JSON: {text}"


def faults(value: object, wire: Any, path: str = "", *, nulls: Nulls = Nulls.NOWHERE) -> list[Fault]:
    """Every difference between a plain value and a type, as a fault."""
    return [fault(one) for one in structure.walk(value, structure.shape_of(wire), path, nulls=nulls)]


def fault(finding: Finding, subject: str = "") -> Fault:
    """The finding as a fault of an object."""
    return Fault(message(finding), subject=subject, path=finding.path)
