"""Reads the cluster or the fleet for commands that decide on one, telling the person at the terminal how far it is."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bayplan.cli.console import Console
from bayplan.cli.options import Deciding, Scope, Sources
from bayplan.cli.progress import ProgressLine

if TYPE_CHECKING:
    from bayplan.model.semantics import Semantics
    from bayplan.reading import files
    from bayplan.reading.cluster import LoadedCluster, PodSink
    from bayplan.reading.collecting import Inputs, Sink
    from bayplan.reading.fleet import Fleet
    from bayplan.watching.fetching import ClusterFetcher, ObjectToFetch


def load(
    sources: Sources, scope: Scope, deciding: Deciding, console: Console, *, pods: PodSink | None = None
) -> LoadedCluster | Fleet:
    """
    The cluster in the files, or the fleet if they hold clusters; what was left out or made up is said.

    `pods` takes the pods, for those who want to know more of them than a cluster keeps.
    """
    semantics = deciding.parsed_semantics()
    from bayplan.reading import cluster, fleet

    sinks = None if pods is None else {"Pod": pods}
    inputs, sink = read(sources, scope.for_unnamed, semantics, console, sinks=sinks)
    note_namespace(scope.namespace, inputs, console)
    sink = pods or sink
    found: LoadedCluster | Fleet
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
        with console.progress() as line:
            found = cluster.cluster_of(
                inputs,
                semantics=semantics,
                seed=deciding.seed,
                sink=sink,
                progress=lambda text: line.show(lambda: text),
            )
    for note in found.notes:
        console.note(note)
    return found


def read(
    sources: Sources,
    namespace: str,
    semantics: Semantics,
    console: Console,
    *,
    sinks: Mapping[str, Sink] | None = None,
    objects: Sequence[ObjectToFetch] = (),
) -> tuple[Inputs, PodSink]:
    """
    Everything in the files and in the cluster, if one was named; what could not be listed is said.

    A sink receives the objects of its kind. `objects` are single objects to fetch from the cluster in addition.
    """
    sources.check()
    from bayplan.reading import cluster
    from bayplan.reading.files import ReadOptions

    fetching = _fetching(sources, objects)
    with console.progress() as line:
        found = cluster.read(
            ReadOptions(
                sources.filename,
                recursive=sources.recursive,
                namespace=namespace,
                semantics=semantics,
                stdin=sys.stdin.buffer,
                progress=lambda step: _show(line, step),
                sinks=sinks or {},
                live=() if fetching is None else fetching.sources(),
            )
        )
    for note in () if fetching is None else fetching.notes:
        console.note(note)
    return found


def note_namespace(namespace: str | None, inputs: Inputs, console: Console) -> None:
    """Say that -n means nothing in the input: an answer about nobody would look like good news."""
    if namespace is None:
        return
    known = inputs.namespace_names()
    if namespace in known:
        return
    near = difflib.get_close_matches(namespace, sorted(known), n=1)
    advice = f", did you mean {near[0]}?" if near else ""
    console.note(f"nothing in the input is in namespace {namespace}{advice}")


def _fetching(sources: Sources, objects: Sequence[ObjectToFetch]) -> ClusterFetcher | None:
    if not sources.cluster.is_given:
        return None
    from bayplan.watching.fetching import ClusterFetcher

    return ClusterFetcher(sources.cluster.open(), objects)


def _show(line: ProgressLine, step: files.ReadProgress) -> None:
    share = 100 * step.bytes_read // max(step.bytes_total, 1)
    line.show(lambda: f"reading {step.file}: {step.objects_read} objects, {share} %")
