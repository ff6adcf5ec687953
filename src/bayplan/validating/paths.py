"""How API servers write the path of a field. Mirrors apimachinery's util/validation/field/path.go."""

from __future__ import annotations


def child(path: str, name: str) -> str:
    """The path of a named field below `path`; an empty path is the object itself."""
    return f"{path}.{name}" if path else name


def entry(path: str, subscript: int | str) -> str:
    """The path of one item of a list, or of one key of a map."""
    return f"{path}[{subscript}]"
