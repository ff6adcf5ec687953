"""Adding a node, as a remedy that concerns no single rule."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target, TargetName
from bayplan.model.terms import HOSTNAME
from bayplan.model.workloads import Workload
from bayplan.rules.remedies import NEW_NODE, Edit, Remedy


def node_like(slot: int, workload: Workload, index: PlacementIndex) -> Iterator[Remedy]:
    """Adding a node like this one; then the same in a new domain of each topology key that the workload uses."""
    model = index.slots.at(slot)
    name = f"{model.name}-more"
    while name in index.slots.by_name:
        name += "-more"
    labels = {**model.labels, HOSTNAME: name} if HOSTNAME in model.labels else model.labels
    # Empty and schedulable, with no image pulled yet.
    new = msgspec.structs.replace(model, name=TargetName(name), labels=labels, unschedulable=False, images=())
    yield Remedy(f"add a node like {model.name}", _add_target(new), NEW_NODE)
    terms = (*workload.needs.affinity.anti_required, *workload.needs.affinity.required)
    keys = [term.topology_key for term in terms] + [c.topology_key for c in workload.needs.spread.constraints]
    for key in sorted({key for key in keys if key}):
        if key in model.labels and key != HOSTNAME:
            elsewhere = msgspec.structs.replace(new, labels={**new.labels, key: f"new-{model.labels[key]}"})
            yield Remedy(f"add a node like {model.name} with a new {key}", _add_target(elsewhere), NEW_NODE)


def _add_target(target: Target) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        index.add_target(target)
        return workload

    return edit
