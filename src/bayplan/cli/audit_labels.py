"""`bayplan audit labels`: labels of nodes from an inventory, as commands or as manifests."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, one_audit, options
from bayplan.cli.audit_options import TopologyOptions
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.wire.observed import ObservedNode


class LabelOptions(msgspec.Struct, frozen=True):
    """What `audit labels` prints, and how."""

    hash_key_file: str | None
    overwrite: bool
    output: str

    def hash_key(self) -> str:
        """The key of the file; empty if values are not hashed."""
        from bayplan.errors import Fault, InputError

        if not self.hash_key_file:
            return ""
        try:
            key = pathlib.Path(self.hash_key_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=self.hash_key_file)) from None
        except UnicodeDecodeError:
            raise InputError(Fault("expected a key in UTF-8, got other bytes", file=self.hash_key_file)) from None
        if not key:
            raise InputError(Fault("the key is empty", file=self.hash_key_file))
        return key


def write_labels(
    sources: options.InputOptions, topology: TopologyOptions, label_options: LabelOptions, console: Console
) -> int:
    """Write the labels; those that nodes have with another value are warnings."""
    from bayplan.reading import audit_files, inventory
    from bayplan.reading.files import ReadOptions
    from bayplan.writing import audit_labels, versioned

    if not topology.inventory:
        raise click.UsageError("`audit labels` needs an inventory: give one with --inventory")
    key = label_options.hash_key()
    content, notes = inventory.load_inventory(topology.inventory)
    fetching = one_audit.fetching_of(sources)
    nodes: Sequence[ObservedNode] = ()
    if sources.filename or sources.has_state:
        live = fetching.sources() if fetching else ()
        read = ReadOptions(sources.filename, recursive=sources.recursive, state=sources.state, live=live)
        nodes = audit_files.load(read).nodes
    found = audit_labels.changes(
        inventory.by_node(content, nodes),
        present={node.metadata.name: node.metadata.labels or {} for node in nodes},
        hash_key=key,
        keys=topology.keys(),
    )
    overwrite = label_options.overwrite
    for text in [*notes, *(line for one in found if not overwrite for line in audit_labels.differing_text(one))]:
        console.warning(text)
    if label_options.output == "table":
        console.answer(audit_labels.commands(found, overwrite=overwrite))
    else:
        items = audit_labels.manifests(found, overwrite=overwrite)
        content_of_list = {"apiVersion": "v1", "kind": "List", "items": items}
        console.answer(versioned.written(content_of_list, label_options.output))
    return commands.EXIT_YES
