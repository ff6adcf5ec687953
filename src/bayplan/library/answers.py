"""
What every answer has: the versioned document, texts in every output format, a frame, a short representation.

Knows no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import arguments

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from bayplan.writing.chosen_output import Arrangement

DOCUMENT_FORMATS = ("json", "yaml")
Held = TypeVar("Held")
Value = TypeVar("Value")
Made = Callable[[Held], Value]


class Values(Mapping[str, Value], Generic[Held, Value]):
    """A mapping whose values are made when they are asked for: most answers are only counted and printed."""

    __slots__ = ("_held", "_make")

    def __init__(self, held: Mapping[str, Held], make: Made[Held, Value]) -> None:
        self._held, self._make = held, make

    def __getitem__(self, name: str) -> Value:
        return self._make(self._held[name])

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return repr(dict(self))


def frozen(found: Mapping[str, Value]) -> Mapping[str, Value]:
    """A copy that cannot be changed."""
    return Values(dict(found), _itself)


def _itself(value: Value) -> Value:
    return value


class Unchanging:
    """A value that needs no copy, because nothing about it changes."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Give no type to private fields: `help` looks all types up, and these are imported for type checkers only."""
        types = cls.__annotations__
        cls.__annotations__ = {name: Any if name.startswith("_") else kind for name, kind in types.items()}
        super().__init_subclass__(**options)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self


class Answer(Unchanging):
    """
    An answer as a value: nothing about it changes, and it may be read from any thread.

    `str()` is the text that the command line prints, `repr()` one line.
    """

    __slots__ = ()
    _formats: tuple[str, ...] = ("table", *DOCUMENT_FORMATS)

    def __bool__(self) -> bool:
        """Neither: an answer without items may be a yes, and one with items a no, which `assert` would turn round."""
        asked = "`ok`, or `len()`" if hasattr(type(self), "ok") and hasattr(type(self), "__len__") else "its attributes"
        raise TypeError(f"an answer is neither true nor false: ask for {asked}")

    def _document(self) -> dict[str, Any]:
        """The versioned document; parts of it may be values that JSON has no word for."""
        raise NotImplementedError

    def _text(self, output: str, width: int | None, arrangement: Arrangement, /) -> str:
        """The answer in an output format that is no document."""
        raise NotImplementedError

    def _summary(self) -> str:
        """What the representation says."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The versioned document, the same as with `-o json` on the command line: plain values, made for this call."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self._document()))
        return found

    def to_text(self, output: str = "", *, width: int | None = None, headers: bool = True, sort_by: str = "") -> str:
        """
        The answer in one of the output formats of the command line; the first one is the default.

        Tables are drawn for a terminal of this `width`, and plain without it. `headers` and `sort_by` are those of the
        command line.
        """
        from bayplan.writing import chosen_output, field_paths

        arguments.check_is("output", output, str)
        arguments.check_is("sort_by", sort_by, str)
        if width is not None:
            arguments.check_count("width", width)
        output = output or self._formats[0]
        if not any(output == one or (one.endswith("=") and output.startswith(one)) for one in self._formats):
            raise ArgumentError(f"expected one of {', '.join(self._formats)}, got {output!r}", argument="output")
        arrangement = chosen_output.Arrangement(headers=headers, sort_by=sort_by)
        if not chosen_output.is_document(output):
            return self._text(output, width, arrangement)
        try:
            return chosen_output.document(self._document(), output, arrangement)
        except field_paths.TemplateError as error:
            raise ArgumentError(str(error), argument="output") from None

    def to_frame(self) -> pd.DataFrame:
        """The items of the document as a pandas DataFrame, one row for each; needs pandas, which is not installed."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        return pd.DataFrame.from_records(list(self._rows()))

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of the frame."""
        items: list[Mapping[str, Any]] = self.to_dict()["items"]
        return items

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()}>"
