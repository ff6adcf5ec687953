"""
YAML or JSON text inside an object. Knows nothing of what the text is about, and reads no files.

The text comes from anybody who may create a pod, so what could make a small text big is refused: aliases and deep
nesting. Dates stay text, as in JSON.
"""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 32
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


class _Loader(_Parser):  # type: ignore[misc]
    """YAML's plain types, dates excepted; a key written twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is written twice", key.start_mark)
            seen.add(str(key.value))
        mapping: dict[object, object] = super().construct_mapping(node, deep)
        return mapping


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Parser.yaml_implicit_resolvers.items()
}


def parse(text: str) -> object:
    """What the text says; raises ValueError, with the place, if it is neither YAML nor JSON."""
    try:
        _refuse_large(text)
        return yaml.load(text, _Loader)  # noqa: S506  # a safe loader, made safer
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"neither YAML nor JSON: {place}{broken.problem}") from broken
    except yaml.YAMLError as broken:
        raise ValueError(f"neither YAML nor JSON: {' '.join(str(broken).split())}") from broken


def _refuse_large(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, _Parser):
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not allowed")  # noqa: TRY004  # the text is wrong, not a type
