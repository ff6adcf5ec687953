"""
Object metadata and the text formats in it: DNS names, label keys and values, annotations, and other named things.

A format takes a text and returns the details that an API server reports, none if the text is valid. Mirrors
apimachinery's api/validate/content, util/validation and api/validation/objectmeta.go. The two former word a length
differently (bytes, characters); which one a field uses is only visible in its messages. The content of annotations is
not checked here. A missing namespace is valid: the request carries it.
"""

from __future__ import annotations

import re

import msgspec

from bayplan.validating import go_text
from bayplan.validating.fields import Cause, Field, TextRule

MAX_LABEL_BYTES, MAX_SUBDOMAIN_BYTES, MAX_PORT_NAME_BYTES = 63, 253, 15
MAX_ANNOTATIONS_BYTES = 256 * 1024


class TextFormat(msgspec.Struct, frozen=True):
    """A maximum length, a regular expression, and the detail that describes both to the user."""

    pattern: str
    description: str
    examples: tuple[str, ...]
    max_bytes: int = MAX_SUBDOMAIN_BYTES
    unit: str = "characters"

    def __call__(self, text: str) -> list[str]:
        """The details on a text that is too long or does not match."""
        too_long = go_text.n_bytes(text) > self.max_bytes
        details = [f"must be no more than {self.max_bytes} {self.unit}"] if too_long else []
        return details if re.fullmatch(self.pattern, text) else [*details, self.mismatch]

    @property
    def mismatch(self) -> str:
        """The detail on a text that does not match."""
        # The double space after each comma is upstream's.
        shown = " or ".join(f"'{example}', " for example in self.examples)
        return f"{self.description} (e.g. {shown}regex used for validation is '{self.pattern}')"


_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_RELAXED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_ENDS = "and must start and end with an alphanumeric character"

_label_name = TextFormat(
    _NAME, f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}", ("MyName", "my.name", "123-abc"),
    MAX_LABEL_BYTES, "bytes",
)  # fmt: skip
label_value = TextFormat(
    f"({_NAME})?",
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    ("MyValue", "my_value", "12345"), MAX_LABEL_BYTES, "bytes",
)  # fmt: skip
_dns_label = TextFormat(
    _DNS_LABEL, f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    ("my-name", "123-abc"), MAX_LABEL_BYTES,
)  # fmt: skip
dns_subdomain = TextFormat(  # the name of a pod or a node
    rf"{_DNS_LABEL}(\.{_DNS_LABEL})*",
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    ("example.com",),
)
_label_prefix = msgspec.structs.replace(dns_subdomain, unit="bytes")
relaxed_subdomain = TextFormat(  # a DNS search path, which may contain underscores
    rf"{_RELAXED_LABEL}(\.{_RELAXED_LABEL})*",
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', {_ENDS}",
    ("example.com",),
)
_config_key = TextFormat(
    "[-._a-zA-Z0-9]+", "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    ("key.name", "KEY_NAME", "key-name"),
)  # fmt: skip
_header_name = TextFormat(
    "[-A-Za-z0-9]+", "a valid HTTP header must consist of alphanumeric characters or '-'", ("X-Header-Name",)
)


def label_key(text: str) -> list[str]:
    """The details on a label key: a name, with an optional DNS subdomain and a slash before it."""
    parts = text.split("/")
    if len(parts) > 2:
        suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_label_name.mismatch} {suffix}"]
    details: list[str] = []
    if len(parts) == 2:
        wrong = _label_prefix(parts[0]) if parts[0] else ["must be non-empty"]
        details += [f"prefix part {detail}" for detail in wrong]
    missing = [] if parts[-1] else ["must be non-empty"]
    return details + [f"name part {detail}" for detail in (*missing, *_label_name(parts[-1]))]


def dns_label(text: str) -> list[str]:
    """The details on a DNS label, such as the name of a namespace or a container."""
    details = _dns_label(text)
    if details and details[-1] == _dns_label.mismatch and re.fullmatch(dns_subdomain.pattern, text):
        details[-1] = "must not contain dots"
    return details


def port_name(text: str) -> list[str]:
    """The details on the name of a port."""
    rules = {
        f"must be no more than {MAX_PORT_NAME_BYTES} characters": go_text.n_bytes(text) <= MAX_PORT_NAME_BYTES,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": re.fullmatch("[-a-z0-9]+", text),
        "must contain at least one letter (a-z)": re.search("[a-z]", text),
        "must not contain consecutive hyphens": "--" not in text,
        "must not begin or end with a hyphen": not text.startswith("-") and not text.endswith("-"),
    }
    return [detail for detail, holds in rules.items() if not holds]


def env_name(text: str) -> list[str]:
    """The details on the name of an environment variable, which is not empty."""
    if re.fullmatch("[ -<>-~]+", text):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def config_key(text: str) -> list[str]:
    """The details on a key of a ConfigMap or a Secret."""
    details = _config_key(text)
    if text in (".", ".."):
        details.append(f"must not be '{text}'")
    elif text.startswith(".."):
        details.append("must not start with '..'")
    return details


def header_name(text: str) -> list[str]:
    """The details on the name of an HTTP header, which may have any length."""
    return [] if re.fullmatch(_header_name.pattern, text) else [_header_name.mismatch]


def path_segment(text: str) -> list[str]:
    """The details on a name that only has to be a valid part of a URL."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in text]


def validate_metadata(metadata: Field, name_format: TextRule) -> list[Cause]:
    """The causes for rejecting the metadata of an object whose name must have this format."""
    name, prefix = metadata["name"], metadata["generateName"]
    found: list[Cause] = []
    if prefix.text():
        found += [prefix.invalid(detail) for detail in name_format(mask_trailing_dash(prefix.text()))]
    if name.text():
        found += name.check_text(name_format)
    elif not prefix.text():
        found.append(name.required("name or generateName is required"))
    return [
        *found,
        *metadata["namespace"].check_text(dns_label, optional=True),
        *validate_labels(metadata["labels"]),
        *validate_annotations(metadata["annotations"]),
    ]


def validate_labels(labels: Field) -> list[Cause]:
    """The causes for rejecting a map of labels, all of them reported at the map's own path."""
    found: list[Cause] = []
    for key, value in labels.labels().items():
        found += Field(labels.path, key).check_text(label_key)
        found += Field(labels.path, value).check_text(label_value)
    return found


def validate_annotations(annotations: Field) -> list[Cause]:
    """The causes for rejecting the keys of a map of annotations, or its size; any value is valid."""
    found: list[Cause] = []
    n_bytes = 0
    for key, value in annotations.labels().items():
        found += [Field(annotations.path, key).invalid(detail) for detail in label_key(key.lower())]
        n_bytes += go_text.n_bytes(key) + go_text.n_bytes(value)
    return found if n_bytes <= MAX_ANNOTATIONS_BYTES else [*found, annotations.too_long(MAX_ANNOTATIONS_BYTES)]


def mask_trailing_dash(prefix: str) -> str:
    """The prefix of a generated name with its last dash, which random letters follow, masked as upstream does."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
