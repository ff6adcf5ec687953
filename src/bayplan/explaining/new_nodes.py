"""Adding a node, as a remedy that concerns no single rule."""

from __future__ import annotations

from collections.abc import Container, Iterator

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target, TargetName
from bayplan.model.terms import HOSTNAME
from bayplan.model.workloads import Workload
from bayplan.rules.remedies import NEW_NODE, Edit, Remedy
from bayplan.rules.taint_toleration import CONDITION_TAINTS

DAEMON_SET = "DaemonSet"


def node_like(slot: int, workload: Workload, index: PlacementIndex) -> Iterator[Remedy]:
    """Adding a node like this one; then the same in a new domain of each topology key that the workload uses."""
    model = index.slots.at(slot)
    new = as_new(model, index.slots.by_name)
    yield Remedy(f"add a node like {model.name}", _add_target(new, model.name), NEW_NODE)
    terms = (*workload.needs.affinity.anti_required, *workload.needs.affinity.required)
    keys = [term.topology_key for term in terms] + [c.topology_key for c in workload.needs.spread.constraints]
    for key in sorted({key for key in keys if key}):
        if key in model.labels and key != HOSTNAME:
            elsewhere = msgspec.structs.replace(new, labels={**new.labels, key: f"new-{model.labels[key]}"})
            yield Remedy(f"add a node like {model.name} with a new {key}", _add_target(elsewhere, model.name), NEW_NODE)


def as_new(model: Target, taken: Container[str]) -> Target:
    """A node like this one under a name that is not taken: schedulable, with no image pulled yet."""
    name = f"{model.name}-more"
    while name in taken:
        name += "-more"
    labels = {**model.labels, HOSTNAME: name} if HOSTNAME in model.labels else model.labels
    taints = tuple(taint for taint in model.taints if taint.key not in CONDITION_TAINTS)
    return msgspec.structs.replace(
        model, name=TargetName(name), labels=labels, taints=taints, unschedulable=False, images=()
    )


def belongs_to_node(workload: Workload) -> bool:
    """Whether the pod is a daemon or a mirror pod: it runs on its node and on no other."""
    return workload.controller is not None and workload.controller.kind in (DAEMON_SET, "Node")


def add_daemons(model: str, name: str, index: PlacementIndex) -> None:
    """Add a copy of each daemon of the model node to a new node: its DaemonSet creates one there too."""
    for key in index.workloads_on(index.slots.by_name[TargetName(model)]):
        daemon = index.records[key].workload
        if daemon.controller is not None and daemon.controller.kind == DAEMON_SET and not daemon.terminating:
            index.add(msgspec.structs.replace(daemon, name=f"{daemon.name}-on-{name}", uid=""), name)


def _add_target(target: Target, model: str) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        index.add_target(target)
        add_daemons(model, target.name, index)
        return workload

    return edit
