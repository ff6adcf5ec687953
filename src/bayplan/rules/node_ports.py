"""NodePorts: two pods of a node cannot have the same host port of the same address."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from bayplan.indexing.journal import Change
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import HostPort, Workload
from bayplan.rules.evictions import Amounts, CapacityConstraint, EvictionEffect, Preemptor
from bayplan.rules.remedies import Alternatives, Manifest, Remedy, change_needs, child, move_pods, on_workload
from bayplan.rules.rule import Failure, LiftedBy, PartRule, Touched

TAKEN = Reason("node-ports", "node(s) didn't have free ports for the requested pod ports", StatusCode.UNSCHEDULABLE)
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (compared, never bound)

Ports = tuple[HostPort, ...]


class NodePorts(PartRule[Ports]):
    name = "NodePorts"
    id = "node-ports"
    extends = ("preFilter", "filter")
    filter_needs_pre_filter = True
    lifted_by = LiftedBy.RESOURCES
    reasons_by_code = (TAKEN,)
    reads_template_only = True
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

    def remedies(self, state: Ports, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
        held = {key: index.records[key].workload.needs.host_ports for key in index.workloads_on(slot)}
        conflicts = [(port, key) for port in state for key, ports in held.items() if _is_taken(port, ports)]
        taken, holders = {port: None for port, _ in conflicts}, {key for _, key in conflicts}
        kept = tuple(port for port in workload.needs.host_ports if port not in taken)

        def revise(pod: Manifest, _: Manifest) -> None:
            _without_host_ports(child(pod, "spec"), taken)

        noun = "port" if len(taken) == 1 else "ports"
        text = f"drop host {noun} {', '.join(str(port.port) for port in taken)}"
        drop = Remedy(text, change_needs(host_ports=kept), revisions=on_workload(revise))
        return [[drop, *move_pods(sorted(holders), workload, index)]]

    def eviction_effect(self, state: Ports, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        assert codes is not None, "this rule always has codes"
        return EvictionEffect(capacity_constraints=(PortConstraint(state, codes, preemptor),))


class PortConstraint(CapacityConstraint):
    """
    No other workload of the target may use the host ports of the workload.

    kube-scheduler keeps the ports of a node as a set: one that two pods hold is free as soon as one of them is removed.
    So pods that cannot be evicted do not count if pods that can be evicted hold the same ports.
    """

    forgets = True

    def __init__(self, requested: Ports, codes: Codes, preemptor: Preemptor) -> None:
        index, pod_table = preemptor.index, preemptor.index.pod_table
        super().__init__(1, np.zeros(index.slots.capacity, np.int64))
        self.requested = requested
        rejected = codes != 0
        self.taken = np.zeros(len(pod_table), np.int64)
        if rejected.any():
            rows = np.flatnonzero(pod_table.has_ports & pod_table.on(rejected)).tolist()
            freed: dict[int, set[HostPort]] = {}  # by slot
            for row in rows:
                if pod_table.priority[row] < preemptor.workload.priority:
                    freed.setdefault(int(pod_table.slot[row]), set()).update(self._held(pod_table.at(row).workload))
            for row in rows:
                held = self._held(pod_table.at(row).workload)
                can_go = pod_table.priority[row] < preemptor.workload.priority
                if held and (can_go or not held <= freed.get(int(pod_table.slot[row]), set())):
                    self.taken[row] = 1
            np.subtract.at(self.remaining, pod_table.slot, self.taken)

    def _held(self, workload: Workload) -> set[HostPort]:
        """The ports of a workload that are in conflict with the requested ones."""
        held = workload.needs.host_ports
        return {port for port in held if any(ports_conflict(requested, port) for requested in self.requested)}

    def amounts(self) -> Amounts:
        return self.taken

    def amount_of(self, nominated: Workload, slot: int) -> int:
        del slot
        return int(bool(self._held(nominated)))


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two workloads cannot both have these ports on one target."""
    if (one.protocol, one.port) != (other.protocol, other.port):
        return False
    return one.ip == other.ip or ANY_ADDRESS in (one.ip, other.ip)


def _is_taken(port: HostPort, held: Ports) -> bool:
    return any(ports_conflict(port, other) for other in held)


def _without_host_ports(spec: Manifest, dropped: Container[HostPort]) -> None:
    """Drop host ports from a pod; on the network of the host every port is one."""
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        kept = []
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
            if HostPort(port.get("protocol") or "TCP", number or 0, port.get("hostIP") or ANY_ADDRESS) not in dropped:
                kept.append(port)
            elif not spec.get("hostNetwork"):
                kept.append({name: value for name, value in port.items() if name not in ("hostPort", "hostIP")})
        if kept != (container.get("ports") or []):
            container["ports"] = kept
