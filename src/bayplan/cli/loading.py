"""Reads the cluster or the fleet for commands that decide on one, telling the person at the terminal how far it is."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bayplan.cli.console import Console
from bayplan.cli.options import Deciding, Scope, Sources
from bayplan.cli.progress import Progress

if TYPE_CHECKING:
    from bayplan.reading import files
    from bayplan.reading.cluster import Cluster
    from bayplan.reading.fleet import Fleet


def load(sources: Sources, scope: Scope, deciding: Deciding, console: Console) -> Cluster | Fleet:
    """The cluster in the files, or the fleet if they hold clusters; what was left out or made up is said."""
    sources.check()
    semantics = deciding.parsed_semantics()
    from bayplan.reading import cluster, fleet

    with console.progress() as line:
        inputs, sink = cluster.read(
            sources.filename,
            semantics=semantics,
            recursive=sources.recursive,
            namespace=scope.for_unnamed,
            stdin=sys.stdin.buffer,
            progress=lambda step: _show(line, step),
        )
    found: Cluster | Fleet
    if inputs.clusters:
        keys = deciding.label_keys()
        found = fleet.fleet_of(
            inputs,
            semantics=semantics,
            seed=deciding.seed,
            keys=keys,
            pods=sink.waiting,
            now=datetime.now(UTC),
        )
    else:
        found = cluster.cluster_of(inputs, semantics=semantics, seed=deciding.seed, sink=sink)
    for note in found.notes:
        console.note(note)
    return found


def _show(line: Progress, step: files.Progress) -> None:
    share = 100 * step.bytes_read // max(step.bytes_total, 1)
    line.show(lambda: f"reading {step.file}: {step.objects_read} objects, {share} %")
