"""The files that a browser loads, in memory: paths that are not among them do not exist."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
from collections.abc import Mapping

import msgspec

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Asset(msgspec.Struct, frozen=True):
    """`tag` changes with the content."""

    content: bytes
    content_type: str
    tag: str


@functools.cache
def by_path() -> Mapping[str, Asset]:
    """The page under `/`, everything else under `/assets/`."""
    found = {}
    for one in importlib.resources.files("bayplan.web").joinpath("assets").iterdir():
        content_type = _TYPES.get(one.name.rpartition(".")[2])
        if content_type is not None:
            content = one.read_bytes()
            path = "/" if one.name == "index.html" else f"/assets/{one.name}"
            found[path] = Asset(content, content_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found
