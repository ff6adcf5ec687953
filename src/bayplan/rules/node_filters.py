"""The plain filters of a node: is it cordoned, is it the one that the pod names, are its ports free?"""

from __future__ import annotations

import numpy as np

from bayplan.indexing.journal import Change
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import TAINTS, At
from bayplan.model.labels import UNSCHEDULABLE_TAINT
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import HostPort, Workload
from bayplan.rules.rule import Failure, PartRule, Touched

CORDONED = Reason("node-unschedulable", "node(s) were unschedulable", StatusCode.UNRESOLVABLE)
OTHER_NODE = Reason("node-name", "node(s) didn't match the requested node name", StatusCode.UNRESOLVABLE)
TAKEN = Reason("node-ports", "node(s) didn't have free ports for the requested pod ports", StatusCode.UNSCHEDULABLE)
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (compared, never bound)

Ports = tuple[HostPort, ...]


class NodeUnschedulable(PartRule[str]):
    """A cordoned node accepts only pods that tolerate the unschedulable taint."""

    name = "NodeUnschedulable"
    id = "node-unschedulable"
    reasons_by_code = (CORDONED,)
    follows_workloads = False
    documented = (
        DocumentedReason(
            CORDONED,
            means="The node is cordoned: spec.unschedulable is true, and the pod does not tolerate it.",
            to_do="When the maintenance of the node is done: kubectl uncordon NODE.",
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return (
            None if any(each.tolerates(UNSCHEDULABLE_TAINT) for each in workload.needs.tolerations) else "not tolerated"
        )

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        del state
        column = index.column(TAINTS)
        cordoned = np.fromiter((value is not None and value[0] for value in column.values), np.int64)  # type: ignore[index]
        return column.gather(cordoned, at)

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del state, workload, slot, index
        return [Failure(self.id, CORDONED.text, detail="the node is cordoned (spec.unschedulable)")]


class NodeName(PartRule[str]):
    """A pod that names its node fits on that node only."""

    name = "NodeName"
    id = "node-name"
    reasons_by_code = (OTHER_NODE,)
    follows_workloads = False
    documented = (
        DocumentedReason(
            OTHER_NODE,
            means="The pod's spec.nodeName is another node.",
            to_do=(
                "Leave spec.nodeName empty and let the scheduler choose. To restrict a pod to one node, use node "
                "affinity."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return workload.requested_target or None

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        codes = np.ones(index.slots.capacity, np.int64)
        slot = index.slots.by_name.get(state)
        if slot is not None:
            codes[slot] = 0
        return codes[at]

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload, slot, index
        return [Failure(self.id, OTHER_NODE.text, detail=f"spec.nodeName is {state}")]


class NodePorts(PartRule[Ports]):
    """Two pods of a node cannot have the same port of the same address."""

    name = "NodePorts"
    id = "node-ports"
    reasons_by_code = (TAKEN,)
    documented = (
        DocumentedReason(
            TAKEN,
            means="A pod on the node uses a host port that this pod requests, with the same protocol and address.",
            to_do="Use a Service instead of hostPort, use another port, or add nodes: only one such pod fits per node.",
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> Ports | None:
        del index
        return workload.needs.host_ports or None

    def reject(self, state: Ports, index: PlacementIndex, at: At) -> Codes:
        codes = np.zeros(index.slots.capacity, np.int64)
        for port in state:
            for slot, addresses in index.ports.taken(port.protocol, port.port).items():
                if port.ip == ANY_ADDRESS or ANY_ADDRESS in addresses or port.ip in addresses:
                    codes[slot] = 1
        return codes[at]

    def touched(self, state: Ports, change: Change, index: PlacementIndex) -> Touched:
        if change.workload is not None and change.workload.needs.host_ports:
            return change.slots
        return super().touched(state, change, index)

    def evidence(self, state: Ports, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        held = {key: index.records[key].workload.needs.host_ports for key in index.workloads_on(slot)}
        failures = []
        for port in state:
            holders = tuple(key for key, ports in held.items() if any(ports_conflict(port, other) for other in ports))
            if holders:
                detail = f"{port.protocol} port {port.port} of {port.ip} is taken"
                failures.append(Failure(self.id, TAKEN.text, detail=detail, peers=holders))
        return failures


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two workloads cannot both have these ports on one target."""
    if (one.protocol, one.port) != (other.protocol, other.port):
        return False
    return one.ip == other.ip or ANY_ADDRESS in (one.ip, other.ip)
