"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.evaluations import Touched
from bayplan.indexing.journal import Change
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import TAINTS, At
from bayplan.model.reasons import Codes, Reason, StatusCode
from bayplan.model.taints import UNSCHEDULABLE, tolerated
from bayplan.model.workloads import HostPort, Workload
from bayplan.rules.rule import Failure, Rule

CORDONED = Reason("node-unschedulable", "node(s) were unschedulable", StatusCode.UNRESOLVABLE)


class NodeUnschedulable(Rule):
    name = "NodeUnschedulable"
    id = "node-unschedulable"
    follows_workloads = False

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return None if tolerated(UNSCHEDULABLE, workload.needs.tolerations) else "not tolerated"

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        del state
        column = index.column(TAINTS)
        cordoned = np.fromiter((value is not None and value[0] for value in column.values), np.int64)  # type: ignore[index]
        return column.gather(cordoned, at)

    def reasons(self, state: str, code: int) -> tuple[Reason, ...]:
        del state, code
        return (CORDONED,)

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del state, workload, slot, index
        return [Failure(self.id, CORDONED.text, detail="the node is cordoned (spec.unschedulable)")]


# RF merged from rules.node_name: NodeName: a pod that names its node goes there or nowhere.

OTHER_NODE = Reason("node-name", "node(s) didn't match the requested node name", StatusCode.UNRESOLVABLE)


class NodeName(Rule):
    name = "NodeName"
    id = "node-name"
    follows_workloads = False

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return workload.requested_target or None

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        codes = np.ones(index.slots.capacity, np.int64)
        slot = index.slots.by_name.get(state)
        if slot is not None:
            codes[slot] = 0
        return codes[at]

    def reasons(self, state: str, code: int) -> tuple[Reason, ...]:
        del state, code
        return (OTHER_NODE,)

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload, slot, index
        return [Failure(self.id, OTHER_NODE.text, detail=f"spec.nodeName asks for {state}")]


# RF merged from rules.node_ports: NodePorts: two pods cannot have the same port of the same address.

TAKEN = Reason("node-ports", "node(s) didn't have free ports for the requested pod ports", StatusCode.UNSCHEDULABLE)
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (compared, never bound)

Ports = tuple[HostPort, ...]


class NodePorts(Rule):
    name = "NodePorts"
    id = "node-ports"

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

    def reasons(self, state: Ports, code: int) -> tuple[Reason, ...]:
        del state, code
        return (TAKEN,)

    def evidence(self, state: Ports, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        failures = []
        for port in state:
            holders = tuple(key for key in index.workloads_on(slot) if _holds(index, key, port))
            if holders:
                detail = f"{port.protocol} port {port.port} of {port.ip} is taken"
                failures.append(Failure(self.id, TAKEN.text, detail=detail, peers=holders))
        return failures


def _holds(index: PlacementIndex, key: str, wanted: HostPort) -> bool:
    return any(ports_conflict(wanted, held) for held in index.records[key].workload.needs.host_ports)  # type: ignore[index]


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two workloads cannot have these ports of one target."""
    if (one.protocol, one.port) != (other.protocol, other.port):
        return False
    return one.ip == other.ip or ANY_ADDRESS in (one.ip, other.ip)
