"""Reads the cluster for commands that decide on one, telling the person at the terminal how far it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bayplan.cli.console import Console
from bayplan.cli.options import Deciding, Scope, Sources
from bayplan.cli.progress import Progress

if TYPE_CHECKING:
    from bayplan.reading import files
    from bayplan.reading.cluster import Cluster


def load(sources: Sources, scope: Scope, deciding: Deciding, console: Console) -> Cluster:
    """The cluster in the files; what was left out or made up is said to standard error."""
    sources.check()
    semantics = deciding.parsed_semantics()
    from bayplan.reading import cluster

    with console.progress() as line:
        found = cluster.load(
            sources.filename,
            semantics=semantics,
            seed=deciding.seed,
            recursive=sources.recursive,
            namespace=scope.for_unnamed,
            stdin=sys.stdin.buffer,
            progress=lambda step: _show(line, step),
        )
    for note in found.notes:
        console.note(note)
    return found


def _show(line: Progress, step: files.Progress) -> None:
    share = 100 * step.bytes_read // max(step.bytes_total, 1)
    line.show(lambda: f"reading {step.file}: {step.objects_read} objects, {share} %")
