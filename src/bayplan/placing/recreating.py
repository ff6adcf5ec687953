"""
Place running pods again, as their controllers recreate them.

A controller writes the new pod from its template, so nothing of what happened to the old one counts: not its node and
what binding copied from it, nor its start, nomination or deletion. It is spread as any new pod, by the Services and the
controller that select it at that moment. Its name stays, by which answers name it, and so does its age, by which the
scheduling queue is ordered. Knows nothing of why a pod is placed again, nor whether a controller would recreate it.
"""

from __future__ import annotations

import msgspec

from bayplan.engine.engine import Engine
from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods
from bayplan.mapping.pods import SpreadContext
from bayplan.model.terms import REGION, ZONE
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing import place_pods
from bayplan.placing.place_pods import PodPlacement


def as_recreated(placed: PlacedWorkload, index: PlacementIndex, context: SpreadContext) -> Workload:
    """The pod that replaces a placed one. A zone or region label that equals its node's was copied by binding."""
    workload = placed.workload
    node_labels = index.slots.at(placed.slots[0]).labels if placed.slots else {}
    labels = workload.labels
    copied = {key for key in (ZONE, REGION) if key in labels and labels[key] == node_labels.get(key)}
    if copied:
        labels = {key: value for key, value in labels.items() if key not in copied}
    recreated = msgspec.structs.replace(
        workload,
        uid="",
        labels=labels,
        started="",
        terminating=False,
        preempted=False,
        requested_target="",
        nominated_target="",
    )
    return pods.with_spread_context(recreated, context)


def place_again(key: WorkloadKey, engine: Engine, context: SpreadContext) -> PodPlacement:
    """Remove a placed pod from the index and place it as recreated; if it fits nowhere, it stays removed."""
    recreated = as_recreated(engine.index.records[key], engine.index, context)
    engine.index.remove(key)
    return place_pods.place(recreated, engine)
