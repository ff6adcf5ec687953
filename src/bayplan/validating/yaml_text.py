"""
YAML or JSON text inside an object, such as an annotation. Reads no files; the content is not interpreted here.

Any user who may create a pod can write such a text, so everything that expands a small text is rejected: aliases and
deep nesting. Dates remain text, as in JSON.
"""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 32
MAX_INTEGER_BITS = 1024  # as large as a floating-point number; Python shows none of more than 4,300 digits
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


class CheckedLoader(_Parser):  # type: ignore[misc]
    """
    A safe loader that reports a value that does not fit its tag with its place, as everything else that is wrong.

    PyYAML's constructors raise whatever Python's own functions raise.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            found = super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError, IndexError):
            tag = str(node.tag).removeprefix("tag:yaml.org,2002:")
            raise yaml.constructor.ConstructorError(
                None, None, f"expected a value of type {tag}, got something else", node.start_mark
            ) from None
        if isinstance(found, int) and found.bit_length() > MAX_INTEGER_BITS:
            raise yaml.constructor.ConstructorError(None, None, "a number out of range", node.start_mark)
        return found


class _Loader(CheckedLoader):
    """YAML's basic types without dates; a duplicate key is an error."""

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
    """The decoded text; raises ValueError, with line and column, if it is neither YAML nor JSON."""
    try:
        _reject_expanding(text)
        return yaml.load(text, _Loader)  # noqa: S506  # derived from a safe loader
    except RecursionError:
        raise ValueError("neither YAML nor JSON: nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"neither YAML nor JSON: {place}{error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"neither YAML nor JSON: {' '.join(str(error).split())}") from error


def _reject_expanding(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, _Parser):
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not allowed")  # noqa: TRY004  # the text is wrong, not a type
