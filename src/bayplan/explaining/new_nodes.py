"""One more node as a remedy: like one that is there, in the same place or in a domain of its own."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.explaining.remedies import NEW_NODE, Edit, Remedy
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target, TargetName
from bayplan.model.terms import HOSTNAME
from bayplan.model.workloads import Workload


def like(slot: int, workload: Workload, index: PlacementIndex) -> Iterator[Remedy]:
    """Adding a node like this one; then the same in a new domain of each topology that the workload speaks of."""
    model = index.slots.at(slot)
    plain = _new(model, index)
    yield Remedy(f"add a node like {model.name}", _adding(plain), NEW_NODE)
    for key in _topologies(workload):
        if key in model.labels and key != HOSTNAME:
            elsewhere = msgspec.structs.replace(plain, labels={**plain.labels, key: f"new-{model.labels[key]}"})
            yield Remedy(f"add a node like {model.name} with a new {key}", _adding(elsewhere), NEW_NODE)


def _new(model: Target, index: PlacementIndex) -> Target:
    """The model with a name and a hostname of its own, empty, ready for work, its images not yet pulled."""
    name = f"{model.name}-more"
    while name in index.slots.by_name:
        name += "-more"
    labels = {**model.labels, HOSTNAME: name} if HOSTNAME in model.labels else model.labels
    return msgspec.structs.replace(model, name=TargetName(name), labels=labels, unschedulable=False, images=())


def _adding(target: Target) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        index.add_target(target)
        return workload

    return edit


def _topologies(workload: Workload) -> list[str]:
    terms = (*workload.needs.affinity.anti_required, *workload.needs.affinity.required)
    keys = [term.topology_key for term in terms] + [c.topology_key for c in workload.needs.spread.constraints]
    return sorted({key for key in keys if key})
