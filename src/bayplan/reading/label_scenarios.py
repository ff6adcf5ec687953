"""
Labels by node, or that by the name of a scenario: the format of the retired upstream test, read as nodes.

Knows nothing of any other format.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bayplan.auditing.audit_input import FileLine, ObservedNode
from bayplan.errors import Fault
from bayplan.reading.documents import Document
from bayplan.wire.meta import ObjectMeta

EXPECTED = "expected an object with apiVersion and kind, or labels by node"


class Scenarios:
    """The scenarios of all files, by name; a file without any is one whose name is empty."""

    def __init__(self) -> None:
        self._nodes: dict[str, list[ObservedNode]] = {}
        self.place: FileLine = ("", 0)

    def add(self, document: Document) -> Iterable[Fault]:
        """Take in a document that is no API object; what is wrong with it."""
        root = document.locate().root
        if not all(isinstance(value, dict) for value in root.values()) or not root:
            return [document.fault(EXPECTED, "kind")]
        flat = not any(isinstance(value, dict) for labels in root.values() for value in labels.values())
        for name, nodes in {"": root}.items() if flat else root.items():
            for node, labels in nodes.items():
                if not _are_labels(labels):
                    return [document.fault("expected labels by node", f"{name}.{node}")]
            self._nodes[str(name)] = [
                ObservedNode(
                    metadata=ObjectMeta(name=str(node), labels={str(k): _text(v) for k, v in (labels or {}).items()})
                )
                for node, labels in nodes.items()
            ]
        self.place = (document.file, document.line)
        return []

    def chosen(self, name: str) -> tuple[list[ObservedNode], list[Fault]]:
        """The nodes of the scenario that is meant: the one that is named, or the only one; none without scenarios."""
        names = list(self._nodes)
        if name and name not in names:
            return [], [Fault(f"no scenario {name}; there are {', '.join(names) or 'none'}")]
        if len(names) > 1 and not name:
            return [], [Fault(f"{len(names)} scenarios: choose one of {', '.join(names)} with --scenario")]
        return (self._nodes[name or names[0]] if names else []), []


def _are_labels(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and not any(isinstance(v, dict | list) for v in value.values()))


def _text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
