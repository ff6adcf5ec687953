"""The clusters that an object names, each with its path. Knows nothing of which clusters there are."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.validating import paths

FIELD = "clusterNames"
UNKNOWN = "no cluster of this name is in the input; it may join later"


def named(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, name) of every entry of every `clusterNames` within."""
    if isinstance(value, dict):
        for key, item in value.items():
            inside = paths.child(path, key)
            yield from _entries(item, inside) if key == FIELD else named(item, inside)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from named(item, f"{path}[{place}]")


def _entries(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        yield from ((f"{path}[{place}]", name) for place, name in enumerate(value) if isinstance(name, str))
