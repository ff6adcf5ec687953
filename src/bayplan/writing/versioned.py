"""JSON and YAML documents with an apiVersion and a kind. It does not know their content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

API_VERSION = "bayplan.io/v1alpha1"
# Control characters and marks that change the text direction, which JSON does not require to be escaped.
_UNSAFE = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
# Text that YAML 1.2 reads as a number, but that PyYAML, which implements 1.1, does not quote.
_NUMBERLIKE = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|0o[0-7]+|0x[0-9a-fA-F]+")


def document(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its apiVersion and kind."""
    return {"apiVersion": API_VERSION, "kind": kind, **content}


def as_json(content: Mapping[str, Any]) -> str:
    """Indented JSON that ends with a line break."""
    return safe_json(msgspec.json.format(msgspec.json.encode(content), indent=2)) + "\n"


def safe_json(encoded: bytes) -> str:
    """JSON with the characters escaped that a terminal would obey."""
    return _escaped(encoded.decode())


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_line(content: Any) -> bytes:
    """The content as one line of JSON."""
    encoded = msgspec.json.encode(content)
    return (encoded if encoded.isascii() and b"\x7f" not in encoded else safe_json(encoded).encode()) + b"\n"


def as_yaml(content: Mapping[str, Any]) -> str:
    """Block-style YAML with the keys in the given order."""
    import yaml

    from bayplan.reading import yaml_scalars

    class Dumper(yaml.SafeDumper):
        """Quotes text that another parser reads as something else, as kubectl does `y`, and text that is escaped."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        is_text = yaml_scalars.is_text(value) and not _NUMBERLIKE.fullmatch(value) and not _UNSAFE.search(value)
        style = None if is_text else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    Dumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign]
    plain = msgspec.to_builtins(content)
    return _escaped(str(yaml.dump(plain, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)))


def written(content: Mapping[str, Any], output: str) -> str:
    """The content as `json` or `yaml`."""
    return as_yaml(content) if output == "yaml" else as_json(content)
