"""One object as it stands in a file, and on which line each of its fields does. Knows nothing of kinds or types."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.wire.meta import ApiObject

Mapping = dict[str, Any]
# Of each container, by its id: the line of each key or item. The containers live as long as the root does.
Lines = dict[int, dict[str, int] | list[int]]

_WITHOUT_STATUS = frozenset({"StorageClass", "PriorityClass", "PropagationPolicy", "ClusterPropagationPolicy"})
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


class Located(msgspec.Struct, frozen=True):
    """An object as plain values with the lines of everything in it."""

    root: Mapping
    lines: Lines


class Document(msgspec.Struct, kw_only=True, eq=False):
    """
    One object of a file: `text` if it is JSON, `root` if it is YAML.

    `begins` is its first line, or counts up to it: in a dump nobody asks for most of them. `typed` is the object in its
    wire type, where that is known already. `locate` gives its values with their lines; for JSON that is a second, slow
    reading, which only people's mistakes are worth. `server_made` objects come from a dump: nobody typed them, and they
    may carry fields newer than ours.
    """

    file: str
    begins: int | Callable[[], int]
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    server_made: bool = False
    root: Mapping | None = None
    text: bytes = b""
    typed: ApiObject | None = None
    locate: Callable[[], Located]

    @property
    def line(self) -> int:
        """The line where it begins. To be asked while its file is read."""
        if not isinstance(self.begins, int):
            self.begins = self.begins()
        return self.begins

    @property
    def subject(self) -> str:
        """How messages call it: `Pod shop/web-1`."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}".strip()

    def fault(self, message: str, path: str = "") -> Fault:
        """What is wrong with it, with the place in the file."""
        return Fault(message, file=self.file, line=line_of(self, path), subject=self.subject, path=path)


def line_of(document: Document, path: str) -> int:
    """
    The line of the field, or of the nearest thing around it that the document has.

    The path is written as the API server writes it: `spec.containers[0].resources.limits[nvidia.com/gpu]`.
    """
    if not path:
        return document.line
    located = document.locate()
    line, value = document.line, located.root
    for step in _STEP.finditer(path):
        key: str | int = step[1] if step[1] is not None else step[2]
        if isinstance(value, list):
            key = int(key) if isinstance(key, str) and key.isdigit() else -1
            if not 0 <= key < len(value):
                break
        elif not isinstance(value, dict) or key not in value:
            break
        line = located.lines[id(value)][key]  # type: ignore[call-overload]
        value = value[key]
    return line


def from_root(file: str, line: int, located: Located) -> Document:
    """The document of an object that is at hand as plain values."""
    root = located.root
    metadata = root.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return Document(
        file=file,
        begins=line,
        api_version=_text(root.get("apiVersion")),
        kind=_text(root.get("kind")),
        namespace=_text(metadata.get("namespace")),
        name=_text(metadata.get("name")) or _text(metadata.get("generateName")),
        server_made=is_server_made(_text(root.get("kind")), metadata, has_status="status" in root),
        root=root,
        locate=lambda: located,
    )


def is_server_made(kind: str, metadata: Mapping, *, has_status: bool) -> bool:
    """Whether an API server wrote the object. Edited by hand, a dump mostly loses its status first."""
    stamped = bool(metadata.get("uid") or metadata.get("resourceVersion"))
    return stamped and (has_status or kind in _WITHOUT_STATUS)


def is_list(kind: str, root: Mapping) -> bool:
    """Whether the object is but a wrapping for others."""
    return kind.endswith("List") and isinstance(root.get("items", False), list | None)


def kind_of_items(kind: str) -> str:
    """What the items of a typed list are: `PodList` holds Pods; the items of a `List` speak for themselves."""
    return kind.removesuffix("List")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
