"""Read the cluster or the fleet for the commands that decide on one, with progress and notes on the console."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO

from bayplan.cli import configuration, options, value_types
from bayplan.cli.console import Console
from bayplan.cli.options import DecisionOptions, InputOptions, ScopeOptions
from bayplan.cli.what_if_options import NOTHING_SUPPOSED, WhatIfOptions

if TYPE_CHECKING:
    from bayplan.controllers.autoscalers import AssumedLoad
    from bayplan.model.semantics import Semantics
    from bayplan.model.workloads import Workload
    from bayplan.reading.cluster import LoadedCluster, PodSink
    from bayplan.reading.collecting import Inputs, Sink
    from bayplan.reading.fleet import Fleet
    from bayplan.watching.fetching import ObjectToFetch
    from bayplan.wire.kinds import GroupKind


MAX_RULES_WARNED_OF = 10


def load(
    sources: InputOptions,
    scope: ScopeOptions,
    decisions: DecisionOptions,
    console: Console,
    *,
    assumed_load: AssumedLoad = "current",
    what_if: WhatIfOptions = NOTHING_SUPPOSED,
    stdin: BinaryIO | None = None,
) -> LoadedCluster | Fleet:
    """
    The cluster of the input, or the fleet if the input has Cluster objects; prints notes on what was left out or added.

    `assumed_load` says how many replicas autoscalers ask for, and `what_if` what is supposed to happen before.
    """
    semantics = value_types.semantics_with(decisions.semantics, decisions.switch, decisions.kubernetes_version)
    from bayplan.reading import cluster

    inputs, sink = read(sources, scope.namespace or "default", semantics, console, stdin=stdin)
    if scope.namespace is not None:
        note_empty_namespace(scope.namespace, inputs, console)
    found: LoadedCluster | Fleet
    if inputs.clusters:
        from bayplan.reading import fleet

        with console.progress() as show:
            found = fleet.fleet_of(
                inputs,
                semantics=semantics,
                seed=decisions.seed,
                keys=decisions.label_keys(),
                pods=sink.pending,
                now=datetime.now(UTC),
                events=what_if.cluster_events(),
                progress=lambda text: show(lambda: text),
            )
    else:
        if what_if != NOTHING_SUPPOSED:
            what_if.check_for_nodes()
        with console.progress() as show:
            found = cluster.cluster_of(
                inputs,
                semantics=semantics,
                seed=decisions.seed,
                sink=sink,
                load=assumed_load,
                schedulers=options.known_schedulers(),
                progress=lambda text: show(lambda: text),
            )
        if what_if != NOTHING_SUPPOSED:
            from bayplan.cli import node_events

            found.parallel_sets = cluster.parallel_sets(inputs.controllers.get("StatefulSet", ()))
            node_events.apply(what_if, found)
    for note in found.notes:
        console.note(note)
    if not found.index.slots.by_name and not sources.is_live:
        option = "--state" if sources.state else "-f"
        console.note(
            f"the input has no nodes; add them: kubectl get nodes -o json > nodes.json, then {option} nodes.json"
        )
    return found


def read(
    sources: InputOptions,
    namespace: str,
    semantics: Semantics,
    console: Console,
    *,
    sinks: Mapping[GroupKind, Sink] | None = None,
    objects: Sequence[ObjectToFetch] = (),
    stdin: BinaryIO | None = None,
) -> tuple[Inputs, PodSink]:
    """
    All objects of the files and of the live cluster, if the options name one; prints notes on what cannot be listed.

    A sink receives the objects of its kind. `objects` are single objects to fetch from the cluster in addition.
    """
    sources.check()
    from bayplan.reading import cluster
    from bayplan.reading.files import ReadOptions

    fetcher = None
    if sources.is_live:
        from bayplan.watching.fetching import ClusterFetcher

        fetcher = ClusterFetcher(sources.open(), objects)
    with console.progress() as show:
        found = cluster.read(
            ReadOptions(
                sources.filename,
                recursive=sources.recursive,
                namespace=namespace,
                semantics=semantics,
                stdin=stdin or sys.stdin.buffer,
                progress=lambda step: show(
                    lambda: (
                        f"reading {step.file}: {step.objects_read} objects, "
                        f"{100 * step.bytes_read // max(step.bytes_total, 1)} %"
                    )
                ),
                sinks=sinks or {},
                state=sources.state,
                live=() if fetcher is None else fetcher.sources(),
                custom_kinds=configuration.custom_kinds(),
            )
        )
    if fetcher is not None:
        inputs, _ = found
        inputs.context_complete = True
        inputs.unlisted |= fetcher.kinds_not_listed
        for note in fetcher.notes:
            console.note(note)
    return found


def warn_of_ineffective_rules(workloads: Iterable[Workload], cluster: LoadedCluster, console: Console) -> None:
    """Print a warning for each rule of these workloads that has no effect in the cluster."""
    if not cluster.index.slots.by_name:
        return
    from bayplan.placing import ineffective

    found = ineffective.findings(workloads, cluster, cluster.made_for)
    for fault in found[:MAX_RULES_WARNED_OF]:
        console.warning(str(fault), fault)
    if len(found) > MAX_RULES_WARNED_OF:
        console.warning(f"{len(found) - MAX_RULES_WARNED_OF} more rules have no effect")


def note_empty_namespace(namespace: str, inputs: Inputs, console: Console) -> None:
    """Print a note if nothing in the input is in the namespace: an empty answer would look like a good one."""
    known = inputs.namespace_names()
    if namespace not in known:
        near = difflib.get_close_matches(namespace, sorted(known), n=1)
        advice = f", did you mean {near[0]}?" if near else ""
        console.note(f"nothing in the input is in namespace {namespace}{advice}")
