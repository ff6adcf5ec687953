"""
What is wrong with a label key, a label value or a DNS name: a list of details, empty when nothing is.

Mirrors apimachinery's api/validate/content and util/validation: the two word a length differently (bytes, characters),
and which one a field uses can be seen in its messages only.
"""

from __future__ import annotations

import re

from bayplan.validating import causes, go_text
from bayplan.validating.causes import Cause

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"
_NAME_TEXT = f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"
_VALUE_TEXT = f"a valid label must be an empty string or {_NAME_TEXT.removeprefix('must ')}"
_DNS_LABEL_TEXT = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC_ENDS}"
)
_DNS_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    f"{_ALPHANUMERIC_ENDS}"
)
MAX_LABEL, MAX_SUBDOMAIN = 63, 253


def label_key(text: str) -> list[str]:
    """What is wrong with a label key: a name with an optional DNS subdomain and a slash before it."""
    parts = text.split("/")
    if len(parts) > 2:
        form = _form(_NAME_TEXT, _NAME, "MyName", "my.name", "123-abc")
        return [f"a valid label key {form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    details = _prefix(parts[0]) if len(parts) == 2 else []
    return details + [f"name part {detail}" for detail in _name(parts[-1])]


def label_value(text: str) -> list[str]:
    """What is wrong with a label value, which may be empty."""
    details = _length(text, MAX_LABEL, "bytes")
    if not re.fullmatch(_VALUE, text):
        details.append(_form(_VALUE_TEXT, _VALUE, "MyValue", "my_value", "12345"))
    return details


def dns_label(text: str) -> list[str]:
    """What is wrong with a DNS label: the form of a namespace's or a container's name."""
    details = _length(text, MAX_LABEL, "characters")
    if not re.fullmatch(_DNS_LABEL, text):
        dotted = re.fullmatch(_DNS_SUBDOMAIN, text)
        details.append("must not contain dots" if dotted else _form(_DNS_LABEL_TEXT, _DNS_LABEL, "my-name", "123-abc"))
    return details


def dns_subdomain(text: str, unit: str = "characters") -> list[str]:
    """What is wrong with a DNS subdomain: the form of a pod's or a node's name."""
    details = _length(text, MAX_SUBDOMAIN, unit)
    if not re.fullmatch(_DNS_SUBDOMAIN, text):
        details.append(_form(_DNS_SUBDOMAIN_TEXT, _DNS_SUBDOMAIN, "example.com"))
    return details


def path_segment(text: str) -> list[str]:
    """What is wrong with a name that must do as a part of a URL, and nothing more."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in text]


def invalid(path: str, text: str, details: list[str]) -> list[Cause]:
    """One cause per detail, all about the same text."""
    return [causes.invalid(path, go_text.quoted(text), detail) for detail in details]


def _prefix(text: str) -> list[str]:
    details = dns_subdomain(text, "bytes") if text else ["must be non-empty"]
    return [f"prefix part {detail}" for detail in details]


def _name(text: str) -> list[str]:
    details = _length(text, MAX_LABEL, "bytes") if text else ["must be non-empty"]
    if not re.fullmatch(_NAME, text):
        details.append(_form(_NAME_TEXT, _NAME, "MyName", "my.name", "123-abc"))
    return details


def _length(text: str, limit: int, unit: str) -> list[str]:
    return [f"must be no more than {limit} {unit}"] if go_text.n_bytes(text) > limit else []


def _form(text: str, pattern: str, *examples: str) -> str:
    # The double space after each comma is upstream's.
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"
