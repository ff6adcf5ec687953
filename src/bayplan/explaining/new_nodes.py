"""
Adding a node, as a remedy that concerns no single rule: one like a node of the cluster, larger, or in another domain.

A new node gets the daemons that run on its model, and so it must be large enough for the pod and for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping

import msgspec

from bayplan.explaining import shortages
from bayplan.explaining.patches import OF_THE_SERVER
from bayplan.indexing.capacity import PODS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import quantities
from bayplan.model.targets import Target, TargetName
from bayplan.model.terms import HOSTNAME
from bayplan.model.workloads import DAEMON_SET, Workload
from bayplan.rules import volume_claims
from bayplan.rules.remedies import NEW_NODE, Edit, Manifest, Remedy, Revise, Revision, child
from bayplan.rules.taint_toleration import CONDITION_TAINTS

MAX_DOMAINS_TRIED = 6  # of one topology key
_FAMILY = "new node"


def node_like(slot: int, workload: Workload, requests: Mapping[str, int], index: PlacementIndex) -> Iterator[Remedy]:
    """
    Adding a node like this one, and the same in other domains of the topology keys that matter for the workload.

    A node that could not hold the `requests` beside its daemons is larger than its model.
    """
    model = index.slots.at(slot)
    new = as_new(model, index.slots.by_name)
    enlarged = _enlarged(model, requests, index)
    larger = dict(new.allocatable) | enlarged
    new = msgspec.structs.replace(new, allocatable=tuple(larger.items()))
    size = f" with {shortages.amounts_text(tuple(enlarged.items()))}" if enlarged else ""
    for labels, where in ({}, ""), *_domains(model, workload, index):
        text = f"add a node like {model.name}{size}{where}"
        placed = msgspec.structs.replace(new, labels={**new.labels, **labels})
        revision = Revision(_revise(placed, enlarged), node=placed.name, like=model.name)
        n_changes = bool(enlarged) + bool(labels)
        yield Remedy(text, _add_target(placed, model.name), NEW_NODE, (revision,), _FAMILY, n_changes)


def _enlarged(model: Target, requests: Mapping[str, int], index: PlacementIndex) -> dict[str, int]:
    """What a node like the model needs to offer, beyond what the model offers, to hold the requests and its daemons."""
    needed = Counter(requests)
    for daemon in _daemons(model.name, index):
        needed.update({PODS: 1, **dict(daemon.needs.requests.on_node(index.semantics.kubernetes_version).amounts)})
    offered = dict(model.allocatable)
    return {one: needed[one] for one in requests if requests[one] and needed[one] > offered.get(one, 0)}


def _domains(model: Target, workload: Workload, index: PlacementIndex) -> Iterator[tuple[dict[str, str], str]]:
    """The labels of a node in another domain, each with its text: where volumes are, then those that rules look at."""
    of_volumes = _labels_of_volumes(workload, index)
    if of_volumes and any(model.labels.get(key) != value for key, value in of_volumes.items()):
        yield of_volumes, _in(of_volumes)
    affinity = workload.needs.affinity
    terms = (*affinity.anti_required, *affinity.required, *affinity.group_required)
    keys = [term.topology_key for term in terms] + [c.topology_key for c in workload.needs.spread.constraints]
    for key in sorted({key for key in keys if key and key != HOSTNAME}):
        values = sorted(map(str, index.column(key).by_value))[:MAX_DOMAINS_TRIED]
        for value in values:
            if model.labels.get(key) != value:
                yield {key: value}, _in({key: value})
        if key in model.labels:
            yield {key: f"new-{model.labels[key]}"}, f" with a new {key}"


def _in(labels: Mapping[str, str]) -> str:
    return f" in {' and '.join(f'{key}={value}' for key, value in sorted(labels.items()))}"


def _labels_of_volumes(workload: Workload, index: PlacementIndex) -> dict[str, str]:
    """Labels that reach every volume of the workload; empty if it has none, or one that a single node holds."""
    found: dict[str, str] = {}
    for claim in volume_claims.claim_part(workload).known(index):
        volume = index.storage.volumes.get(claim.volume)
        if volume is None or not volume.required:
            continue
        for one in volume.required[0].expressions:
            if one.operator != "In" or not one.values or one.key == HOSTNAME:
                return {}
            found.setdefault(one.key, one.values[0])
    return found


def _revise(new: Target, enlarged: Mapping[str, int]) -> Revise:
    """Make the manifest of the model that of the new node."""

    def revise(node: Manifest, _: Manifest) -> None:
        metadata, spec, status = child(node, "metadata"), child(node, "spec"), child(node, "status")
        for name in (*OF_THE_SERVER, "ownerReferences"):
            metadata.pop(name, None)
        metadata["name"], metadata["labels"] = str(new.name), dict(new.labels)
        for name in ("unschedulable", "podCIDR", "podCIDRs", "providerID"):
            spec.pop(name, None)
        if spec.get("taints"):
            spec["taints"] = [one for one in spec["taints"] if one.get("key") not in CONDITION_TAINTS]
        kept = {name: status[name] for name in ("capacity", "allocatable") if name in status}
        for amounts in kept.values():
            amounts.update({one: quantities.exact(one, amount) for one, amount in enlarged.items()})
        node["status"] = kept

    return revise


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


def add_daemons(model: str, name: str, index: PlacementIndex) -> None:
    """Add a copy of each daemon of the model node to a new node: its DaemonSet creates one there too."""
    for daemon in _daemons(model, index):
        index.add(msgspec.structs.replace(daemon, name=f"{daemon.name}-on-{name}", uid=""), name)


def _daemons(model: str, index: PlacementIndex) -> list[Workload]:
    here = (index.records[key].workload for key in index.workloads_on(index.slots.by_name[TargetName(model)]))
    return [
        one for one in here if one.controller is not None and one.controller.kind == DAEMON_SET and not one.terminating
    ]


def _add_target(target: Target, model: str) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        index.add_target(target)
        add_daemons(model, target.name, index)
        return workload

    return edit
