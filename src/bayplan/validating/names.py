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
_RELAXED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_RELAXED_SUBDOMAIN = rf"{_RELAXED_LABEL}(\.{_RELAXED_LABEL})*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"

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
_RELAXED_TEXT = _DNS_SUBDOMAIN_TEXT.replace("characters, '-'", "characters, '_', '-'")
_CONFIG_KEY_TEXT = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
_HEADER_TEXT = "a valid HTTP header must consist of alphanumeric characters or '-'"
_ENV_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
MAX_LABEL, MAX_SUBDOMAIN, MAX_PORT_NAME = 63, 253, 15


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


def relaxed_subdomain(text: str) -> list[str]:
    """What is wrong with a DNS subdomain that may have underscores: the form of a search path."""
    details = _length(text, MAX_SUBDOMAIN, "characters")
    if not re.fullmatch(_RELAXED_SUBDOMAIN, text):
        details.append(_form(_RELAXED_TEXT, _RELAXED_SUBDOMAIN, "example.com"))
    return details


def port_name(text: str) -> list[str]:
    """What is wrong with the name of a port."""
    details = _length(text, MAX_PORT_NAME, "characters")
    if not re.fullmatch("[-a-z0-9]+", text):
        details.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        details.append("must contain at least one letter (a-z)")
    if "--" in text:
        details.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        details.append("must not begin or end with a hyphen")
    return details


def env_name(text: str) -> list[str]:
    """What is wrong with the name of an environment variable, which is not empty."""
    return [] if re.fullmatch("[ -<>-~]+", text) else [_ENV_TEXT]


def config_key(text: str) -> list[str]:
    """What is wrong with a key of a ConfigMap or a Secret."""
    details = _length(text, MAX_SUBDOMAIN, "characters")
    if not re.fullmatch(_CONFIG_KEY, text):
        details.append(_form(_CONFIG_KEY_TEXT, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text in (".", ".."):
        details.append(f"must not be '{text}'")
    elif text.startswith(".."):
        details.append("must not start with '..'")
    return details


def header_name(text: str) -> list[str]:
    """What is wrong with the name of an HTTP header."""
    return [] if re.fullmatch(_HEADER, text) else [_form(_HEADER_TEXT, _HEADER, "X-Header-Name")]


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
