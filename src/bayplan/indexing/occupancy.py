"""What else is taken or present on targets, sparsely: host ports, images, claims in use."""

from __future__ import annotations

from collections import Counter, defaultdict

from bayplan.model.targets import Target
from bayplan.model.workloads import HostPort, Workload, WorkloadKey


class Ports:
    """Host ports by (protocol, port): the addresses taken on each slot."""

    def __init__(self) -> None:
        self._taken: defaultdict[tuple[str, int], dict[int, Counter[str]]] = defaultdict(dict)

    def add(self, slot: int, ports: tuple[HostPort, ...], sign: int) -> None:
        for port in ports:
            where = self._taken[port.protocol, port.port]
            addresses = where.setdefault(slot, Counter())
            addresses[port.ip] += sign
            if not addresses[port.ip]:
                del addresses[port.ip]
            if not addresses:
                del where[slot]
            if not where:
                del self._taken[port.protocol, port.port]

    def taken(self, protocol: str, port: int) -> dict[int, Counter[str]]:
        """Slot → addresses that hold this port there."""
        return self._taken.get((protocol, port), {})


class ImageSizes:
    """Image name → slot → size in bytes there."""

    def __init__(self) -> None:
        self._sizes: defaultdict[str, dict[int, int]] = defaultdict(dict)

    def put(self, slot: int, target: Target) -> None:
        for name, size in target.images:
            self._sizes[name].setdefault(slot, size)

    def take(self, slot: int, target: Target) -> None:
        for name, _ in target.images:
            self._sizes[name].pop(slot, None)
            if not self._sizes[name]:
                del self._sizes[name]

    def sizes(self, name: str) -> dict[int, int]:
        return self._sizes.get(name, {})


class ClaimUsers:
    """Claim (namespace/name) → the placed workloads that use it."""

    def __init__(self) -> None:
        self._users: defaultdict[str, set[WorkloadKey]] = defaultdict(set)

    def add(self, workload: Workload) -> None:
        for name in workload.needs.claims.names:
            self._users[f"{workload.namespace}/{name}"].add(workload.key)

    def remove(self, workload: Workload) -> None:
        for name in dict.fromkeys(workload.needs.claims.names):
            users = self._users[f"{workload.namespace}/{name}"]
            users.discard(workload.key)
            if not users:
                del self._users[f"{workload.namespace}/{name}"]

    def users(self, claim: str) -> set[WorkloadKey]:
        return self._users.get(claim, set())
