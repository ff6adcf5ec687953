"""`bayplan audit labels`: labels of nodes from an inventory, as commands or as manifests."""

from __future__ import annotations

import pathlib

import click
import msgspec

from bayplan.cli import commands, loading, options
from bayplan.cli.audit_options import TopologyOptions
from bayplan.cli.console import Console


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
    from bayplan.library import fleet
    from bayplan.library.node_labels import node_labels

    if not topology.inventory:
        raise click.UsageError("`audit labels` needs an inventory: give one with --inventory")
    has_nodes = sources.filename or sources.has_state
    found = node_labels(
        topology.inventory,
        fleet.cluster_of(loading.spec_of(sources, None, options.configured_settings())) if has_nodes else None,
        label_keys=topology.keys(),
        hash_key=label_options.hash_key(),
        overwrite=label_options.overwrite,
    )
    for text in found.notes:
        console.warning(text)
    console.answer(found.to_text("commands" if label_options.output == "table" else label_options.output))
    return commands.EXIT_YES
