"""
A place in a decoded object: its path and what was written there.

Reads as Go does: absent, null and the zero value are one thing unless a rule asks `present`. What has the wrong type
reads as absent, because `shapes` refuses such an object before any rule looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Field(msgspec.Struct, frozen=True):
    """A value and the path that leads to it; the path exists even where nothing was written."""

    path: str
    value: object = None

    def __getitem__(self, name: str) -> Field:
        return self.at(name, child(self.path, name))

    def under(self, *names: str) -> Field:
        """The field reached by these names one after another."""
        field = self
        for name in names:
            field = field[name]
        return field

    def at(self, name: str, path: str) -> Field:
        """The named field, for those few whose path in messages is not where they stand."""
        return Field(path, self.value.get(name) if isinstance(self.value, Mapping) else None)

    def entry(self, key: str) -> Field:
        """What a map holds under this key."""
        return self.at(key, entry(self.path, key))

    @property
    def present(self) -> bool:
        """Whether something other than null was written."""
        return self.value is not None

    def items(self) -> list[Field]:
        """The items of a list, none if it is empty or absent."""
        values = self.value if isinstance(self.value, list) else []
        return [Field(entry(self.path, position), value) for position, value in enumerate(values)]

    def names(self) -> list[str]:
        """The names of the fields, or the keys, that were written here."""
        return [str(name) for name in self.value] if isinstance(self.value, Mapping) else []

    def text(self) -> str:
        """The text, empty if there is none."""
        return self.value if isinstance(self.value, str) else ""

    def number(self, default: int = 0) -> int:
        """The whole number, `default` if there is none."""
        return self.value if isinstance(self.value, int) and not isinstance(self.value, bool) else default

    def flag(self) -> bool:
        """Whether the field says true."""
        return self.value is True

    def texts(self) -> list[str]:
        """The texts of a list, none if it is empty or absent."""
        return [item.text() for item in self.items()]

    def labels(self) -> dict[str, str]:
        """A map of texts; a null value is the empty text, as in Go."""
        return {key: self.entry(key).text() for key in self.names()}


def root(value: object) -> Field:
    """The whole object, whose path is empty."""
    return Field("", value)


# RF merged from validating.paths: How API servers write the path of a field. Mirrors apimachinery's
# util/validation/field/path.go.


def child(path: str, name: str) -> str:
    """The path of a named field below `path`; an empty path is the object itself."""
    return f"{path}.{name}" if path else name


def entry(path: str, subscript: int | str) -> str:
    """The path of one item of a list, or of one key of a map."""
    return f"{path}[{subscript}]"
