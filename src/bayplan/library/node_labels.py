"""Labels of nodes from an inventory: which are to be set, and which nodes have with another value."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library.answers import DOCUMENT_FORMATS, Answer, frozen

if TYPE_CHECKING:
    from bayplan.library.cluster import Cluster
    from bayplan.wire.observed import ObservedNode
    from bayplan.writing.audit_labels import LabelChange
    from bayplan.writing.chosen_output import Arrangement


class NodeLabelChange(msgspec.Struct, frozen=True):
    """
    The labels to set on one node.

    `differing` are labels that it has with another value, as key, present value and value of the inventory.
    """

    node: str
    labels: Mapping[str, str]
    differing: tuple[tuple[str, str, str], ...]


class NodeLabels(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `node_labels`: what changes on each node. Iterating gives them.

    The text "commands" has a kubectl label command for each; the document is a List of manifests.
    """

    changes: tuple[NodeLabelChange, ...]
    notes: tuple[str, ...]
    _changes: Sequence[LabelChange]
    _overwrite: bool
    _formats = ("commands", *DOCUMENT_FORMATS)

    def __iter__(self) -> Iterator[NodeLabelChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import audit_labels

        items = audit_labels.manifests(self._changes, overwrite=self._overwrite)
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def _text(self, _: str, __: int | None, ___: Arrangement) -> str:
        from bayplan.writing import audit_labels

        return audit_labels.commands(self._changes, overwrite=self._overwrite)

    def _summary(self) -> str:
        return f"{sum(bool(one.labels) for one in self)} nodes get labels"


def node_labels(
    inventory: str | os.PathLike[str],
    cluster: Cluster | None = None,
    *,
    label_keys: Mapping[str, str] | None = None,
    hash_key: str = "",
    overwrite: bool = False,
) -> NodeLabels:
    """
    The labels that nodes get from an inventory, with the domains of every node.

    With a `cluster`, labels that a node has already are left out, and those with another value are not changed unless
    `overwrite`. With a `hash_key`, values are replaced by hashes with it. `label_keys` leads from a level to the key of
    its label.
    """
    from bayplan.library.audit_settings import level_keys
    from bayplan.reading import inventory as inventories
    from bayplan.writing import audit_labels

    if not os.fspath(inventory):
        raise ArgumentError("give a file", argument="inventory")
    keys = level_keys(label_keys or {})
    content, notes = inventories.load_inventory(os.fspath(inventory))
    nodes: Sequence[ObservedNode] = () if cluster is None else cluster._audited_nodes()  # noqa: SLF001
    found = audit_labels.changes(
        inventories.by_node(content, nodes),
        present={node.metadata.name: node.metadata.labels or {} for node in nodes},
        hash_key=hash_key,
        keys=keys,
    )
    differing = () if overwrite else (line for one in found for line in audit_labels.differing_text(one))
    return NodeLabels(
        tuple(NodeLabelChange(one.node, frozen(one.labels), one.differing) for one in found),
        (*notes, *differing),
        found,
        overwrite,
    )
