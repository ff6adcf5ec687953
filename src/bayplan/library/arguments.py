"""Arguments of calls, checked and copied before anything is read: a wrong one must not be taken for another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.errors import ArgumentError


class Given(msgspec.Struct, frozen=True):
    """Files and directories, of which some are read recursively, and Lists of objects in JSON."""

    paths: tuple[str, ...] = ()
    lists: tuple[bytes, ...] = ()
    recursive: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.paths or self.lists)

    def __add__(self, other: Given) -> Given:
        return Given(self.paths + other.paths, self.lists + other.lists, self.recursive | other.recursive)


def given(what: Any, *, recursive: bool = False) -> Given:
    """Paths, objects, and collections of both, as they are handed to the library: what is in memory is copied."""
    paths: list[str] = []
    objects: list[bytes] = []
    is_one = not isinstance(what, Iterable) or isinstance(what, str | bytes | bytearray | os.PathLike | Mapping)
    for one in [what] if is_one or hasattr(what, "read") else what:
        several = isinstance(one, Iterable) and not isinstance(one, str | bytes | bytearray | os.PathLike | Mapping)
        for each in one if several and not hasattr(one, "read") else [one]:
            if isinstance(each, Mapping):
                objects.append(encoded(each))
            elif each is not None:  # an empty document, as yaml.safe_load_all returns them
                paths.append(_path(each))
    lists = (b'{"apiVersion":"v1","kind":"List","items":[%b]}' % b",".join(objects),) if objects else ()
    return Given(tuple(paths), lists, frozenset(paths if recursive else ()))


def _path(given: Any) -> str:
    expected = "expected a path, an object as a dictionary, or several of them"
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str):
        advice = ": give its path, or the objects in it" if hasattr(given, "read") else ""
        raise ArgumentError(f"{expected}, got {type(given).__name__}{advice}")
    if not path.strip() or "\n" in path:
        got = "text of several lines: parse it, and give the objects" if path.strip() else "an empty path"
        raise ArgumentError(f"{expected}, got {got}")
    return path


def path(argument: str, given: Any) -> str:
    """A path that may be missing, which is empty then."""
    found = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(found, str):
        raise ArgumentError(f"expected a path, got {given!r}", argument=argument)
    return found


def several(argument: str, given: Iterable[str] | str) -> tuple[str, ...]:
    """Names as they are handed to the library; a single one is not a sequence of letters."""
    if not isinstance(given, Iterable):
        raise ArgumentError(f"expected names, got {given!r}", argument=argument)
    found = (given,) if isinstance(given, str) else tuple(given)
    for one in found:
        check_is(argument, one, str)
    return found


_WORDS: dict[Any, str] = {Mapping: "a dictionary", str: "text"}


def check_is(argument: str, given: Any, expected: type) -> None:
    """Raise ArgumentError for anything but a value of this class."""
    if not isinstance(given, expected):
        what = _WORDS.get(expected, expected.__name__)
        raise ArgumentError(f"expected {what}, got {given!r}", argument=argument)


def check_namespace(given: Any) -> None:
    """Raise ArgumentError for anything but None and a name: nothing is in a namespace without one."""
    if given is not None and not (isinstance(given, str) and given.strip()):
        raise ArgumentError(f"expected the name of a namespace, got {given!r}", argument="namespace")


def check_choice(argument: str, given: Any, choices: Sequence[str]) -> None:
    """Raise ArgumentError for anything that is not one of the choices."""
    if given not in choices:
        expected = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
        raise ArgumentError(f"expected {expected}, got {given!r}", argument=argument)


def check_count(argument: str, given: Any, least: int = 1) -> None:
    """Raise ArgumentError for anything but a whole number of at least so many."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise ArgumentError(f"expected a whole number of at least {least}, got {given!r}", argument=argument)


def check_seconds(argument: str, given: Any) -> None:
    """Raise ArgumentError for anything but a time in seconds."""
    if not isinstance(given, int | float) or isinstance(given, bool) or not 0 <= given < float("inf"):
        raise ArgumentError(f"expected a time in seconds, got {given!r}", argument=argument)


def encoded(written: Mapping[str, Any]) -> bytes:
    """An object as JSON: a copy that nothing changes any more."""
    try:
        return msgspec.json.encode(dict(written), enc_hook=_plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        metadata = written.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        what = f"{written.get('kind', 'object')} {name}".strip()
        raise ArgumentError(f"{what} cannot be written as JSON: {error or 'it contains itself'}") from None


def plain(argument: str, given: Any) -> Any:
    """A value with lists and dictionaries only."""
    return msgspec.json.decode(encoded({argument: given}))[argument]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it has a value of the type {type(value).__name__}")
