"""
The fields of a timeline, read one by one: each fault is noted with its path, and reading goes on.

Knows durations, names and numbers, but no verb.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bayplan.errors import Fault
from bayplan.reading.documents import Document
from bayplan.simulating.timeline import Named, NodeSelection
from bayplan.wire import kinds

_DURATION = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII
)
_UNITS = (86400.0, 3600.0, 60.0, 1.0)
MAX_SECONDS = 366 * 86400.0
EXPECTED_DURATION = "expected a time such as 90s, 12m, 1h30m or 2d"


class Fields:
    """Reads values of one document; `faults` has what is wrong so far."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.faults: list[Fault] = []

    def fault(self, path: str, message: str) -> None:
        self.faults.append(self.document.fault(message, path))

    def mapping(self, value: Any, path: str, known: Iterable[str] | None = None) -> Mapping[str, Any]:
        """A mapping with known keys only, else nothing."""
        if not isinstance(value, dict):
            self.fault(path, f"expected a mapping, got {shown(value)}")
            return {}
        if known is None:
            return value
        allowed = list(known)
        for key in value:
            if key not in allowed:
                self.fault(_joined(path, key), f"unknown field{nearest(key, allowed)}")
        return {key: item for key, item in value.items() if key in allowed}

    def items(self, value: Any, path: str) -> Iterator[tuple[Any, str]]:
        """The items of a list with their paths; a single value is a list of one."""
        if isinstance(value, list):
            yield from ((item, f"{path}[{place}]") for place, item in enumerate(value))
        elif value is not None:
            yield value, path

    def seconds(self, value: Any, path: str, default: float = 0.0) -> float:
        """A duration; a number is seconds."""
        found = parse_duration(value)
        if found is None:
            self.fault(path, f"{EXPECTED_DURATION}, got {shown(value)}")
            return default
        if found > MAX_SECONDS:
            self.fault(path, f"expected at most 366d, got {shown(value)}")
            return default
        return found

    def whole(self, value: Any, path: str, least: int = 0) -> int:
        """A whole number."""
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 2**31 - 1:
            self.fault(path, f"expected a whole number, {least} or more, got {shown(value)}")
            return least
        return value

    def number(self, value: Any, path: str) -> float:
        """A number that is not negative."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
            self.fault(path, f"expected a number, 0 or more, got {shown(value)}")
            return 0.0
        return float(value)

    def text(self, value: Any, path: str) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int):
            self.fault(path, f"expected text, got {shown(value)}")
            return ""
        return str(value)

    def flag(self, value: Any, path: str) -> bool:
        if not isinstance(value, bool):
            self.fault(path, f"expected true or false, got {shown(value)}")
            return False
        return value

    def nodes(self, value: Any, path: str) -> tuple[tuple[NodeSelection, str], ...]:
        """Nodes as node/NAME or KEY=VALUE."""
        found = []
        for item, at in self.items(value, path):
            choice = self.node(item, at)
            if choice is not None:
                found.append((choice, at))
        if value is None or value == []:
            self.fault(path, "expected node/NAME or KEY=VALUE of a node label, got nothing")
        return tuple(found)

    def node(self, value: Any, path: str) -> NodeSelection | None:
        text = value if isinstance(value, str) else ""
        head, slash, name = text.partition("/")
        if slash and "=" not in text and name and head.lower() in ("node", "nodes", "no"):
            return NodeSelection(name=name)
        key, equals, label = text.partition("=")
        if equals and key.strip():
            return NodeSelection(key=key, value=label)
        self.fault(path, f"expected node/NAME or KEY=VALUE of a node label, got {shown(value)}")
        return None

    def named(self, value: Any, path: str, namespace: str) -> Named | None:
        """An object as NAME, KIND/NAME, NAMESPACE/NAME or KIND/NAMESPACE/NAME."""
        text = value if isinstance(value, str) else ""
        parts = text.split("/")
        if not all(parts) or len(parts) > 3:
            self.fault(path, f"expected NAME, KIND/NAME or KIND/NAMESPACE/NAME, got {shown(value)}")
            return None
        if len(parts) == 1:
            return Named(text, path, namespace=namespace, name=parts[0])
        kind = kind_of(parts[0])
        if len(parts) == 2:
            if kind:
                return Named(text, path, kind=kind, namespace=namespace, name=parts[1])
            return Named(text, path, namespace=parts[0], name=parts[1])
        if not kind:
            known = [row.kind for row in kinds.decoded()]
            self.fault(path, f"unknown kind {parts[0]}{nearest(parts[0], known)}")
            return None
        return Named(text, path, kind=kind, namespace=parts[1], name=parts[2])


def kind_of(text: str) -> str:
    """The kind that a word names, as kubectl understands it; empty if it names none."""
    wanted = text.lower()
    for row in kinds.decoded():
        if wanted in (row.kind.lower(), row.plural, row.short_name or row.plural):
            return row.kind
    return ""


def parse_duration(value: Any) -> float | None:
    """Seconds; None if it is no duration."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if 0 <= value <= 1e12 else None
    found = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if found is None:
        return 0.0 if value == "0" else None
    return sum(float(part) * unit for part, unit in zip(found.groups(), _UNITS, strict=True) if part)


def written_duration(seconds: float) -> str:
    """`1h30m`, `12m`, `90s` as people write it: the inverse of `parse_duration`."""
    left, text = round(seconds, 3), ""
    for unit, letter in zip(_UNITS[:-1], "dhm", strict=True):
        n, left = divmod(left, unit)
        text += f"{n:.0f}{letter}" if n else ""
    return text + (f"{round(left, 3):g}s" if left or not text else "")


def shown(value: Any) -> str:
    """A value as messages quote it."""
    if value is None:
        return "nothing"
    text = repr(value) if not isinstance(value, dict | list) else ("a mapping" if isinstance(value, dict) else "a list")
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Advice for a misspelt word."""
    listed = sorted(set(known))
    near = difflib.get_close_matches(word, listed, n=1)
    if not near:  # a difference in case alone is not close to difflib
        near = [one for one in listed if one.lower() == word.lower()][:1]
    if near:
        return f", did you mean {near[0]}?"
    return f", expected one of {', '.join(listed)}" if len(listed) <= 20 and listed else ""


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else str(key)
