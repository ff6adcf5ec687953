"""
Reviews that need the state of the cluster: binds against execution-time rules, and pods against the quota.

Reviews arrive faster than their effects are seen in the cluster. An admitted bind or pod is therefore reserved from its
review on, for seconds. What counts afterwards is what the watch shows: an object that is never stored, because another
admission plugin rejects it, gives its reservation back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeVar

import msgspec

from bayplan.enforcing import bind_review, quota
from bayplan.enforcing.quota import Charge, Charger, Exclusion, QuotaLimits
from bayplan.errors import ClusterError
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey

# An admitted object that another admission plugin rejects is never seen; after this time it no longer counts.
BIND_RESERVED_SECONDS = 5.0
POD_RESERVED_SECONDS = 10.0  # other webhooks may take this long by default, and run at the same time


class ClusterView(Protocol):
    """The state of the watched cluster. Read on the thread that owns the index, which is always the same object."""

    @property
    def synced(self) -> bool:
        """Whether all watches have listed their objects."""

    @property
    def index(self) -> PlacementIndex:
        """Nodes, namespaces and bound pods."""

    @property
    def limits(self) -> QuotaLimits:
        """The quota of each namespace."""

    async def pending(self, namespace: str) -> Iterable[Workload]:
        """The unbound pods of a namespace."""

    async def pod(self, namespace: str, name: str) -> Workload | None:
        """One pod, bound or not; None if there is none of this name."""


def require_synced(view: ClusterView) -> None:
    """Raise ClusterError unless the view is synced: an incomplete state would admit everything."""
    if not view.synced:
        raise ClusterError("the cluster is not known yet")


class _Reservation(msgspec.Struct, frozen=True):
    until: float


Reserved = TypeVar("Reserved", bound=_Reservation)


class _Reservations(dict[WorkloadKey, Reserved]):
    """Reservations by pod, in the order in which they end."""

    def add(self, key: WorkloadKey, reservation: Reserved) -> None:
        self.pop(key, None)
        self[key] = reservation

    def end(self, now: float) -> None:
        """Drop those that have ended."""
        while self and next(iter(self.values())).until <= now:
            del self[next(iter(self))]


class _ReservedBind(_Reservation, frozen=True):
    workload: Workload
    node: str
    by_scheduler: bool


class BindReviewer:
    """Reviews binds. One instance serves all reviews of a process: it remembers the binds just admitted."""

    def __init__(self, view: ClusterView, names: PeerNames, clock: Callable[[], float] = time.monotonic) -> None:
        self._view, self._names, self._clock = view, names, clock
        self._reserved: _Reservations[_ReservedBind] = _Reservations()

    def rejection(self, workload: Workload, node: str, *, dry_run: bool, by_scheduler: bool) -> str:
        """
        Return which rules the pod would violate on this node; empty if none.

        Users may create pods with a node, again and again and without success. Such a reservation counts only in the
        namespace of the pod; that of a bind `by_scheduler` counts in all.
        """
        require_synced(self._view)
        index, now = self._view.index, self._clock()
        self._reserved.end(now)
        expected = [
            (one.workload, one.node)
            for key, one in self._reserved.items()
            if (one.by_scheduler or one.workload.namespace == workload.namespace) and key not in index.records
        ]
        broken = bind_review.broken_rules(workload, node, index, expected)
        if not broken and not dry_run:
            until = now + BIND_RESERVED_SECONDS
            self._reserved.add(workload.key, _ReservedBind(until, workload, node, by_scheduler))
        return "; ".join(dict.fromkeys(rule.text(self._names) for rule in broken))


class _ReservedCharge(_Reservation, frozen=True):
    charge: Charge
    created: bool  # whether the pod is created, so that it counts as seen in any state


class QuotaReviewer:
    """Reviews charges. One instance serves all reviews of a process: it remembers the pods just admitted."""

    def __init__(
        self,
        view: ClusterView,
        charge: Literal["largest", "average"],
        quota_name: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view, self._quota_name, self._clock = view, quota_name, clock
        self._charger = Charger(view.index, charge)
        self._reserved: _Reservations[_ReservedCharge] = _Reservations()

    def concerns(self, workload: Workload, before: Workload | None) -> bool:
        """Whether the pod is charged, or its change from `before` changes the charge. Any thread may ask."""
        exclusion = self._exclusion(workload)
        return bool(exclusion.keys) and (before is None or self._exclusion(before) != exclusion)

    async def rejection(self, workload: Workload, before: Workload | None, *, dry_run: bool) -> str:
        """Return why the quota rejects the pod, or its change from `before`; empty if it does not."""
        charge = self._charger.pending(workload) if self.concerns(workload, before) else None
        if charge is None:
            return ""
        require_synced(self._view)
        limits = self._view.limits.of_namespace(workload.namespace)
        if limits is None:
            return ""
        pending = await self._view.pending(workload.namespace)
        # There is no await from here on: later reviews count this pod as reserved.
        others = (one.amounts for one in self._charges(workload.namespace, pending) if one.workload != workload.key)
        message = quota.quota_rejection(charge, quota.sum_amounts(others), limits, self._quota_name)
        if not message and not dry_run:
            until = self._clock() + POD_RESERVED_SECONDS
            self._reserved.add(workload.key, _ReservedCharge(until, charge, before is None))
        return message

    def _exclusion(self, workload: Workload) -> Exclusion:
        return self._charger.exclusion(workload.needs.affinity, workload.namespace)

    def _charges(self, namespace: str, pending: Iterable[Workload]) -> list[Charge]:
        """Return the charges of a namespace: for bound pods, pending pods and pods just admitted."""
        pending = list(pending)
        pending_charges = (self._charger.pending(workload) for workload in pending)
        found = [*self._charger.placed([namespace]), *(charge for charge in pending_charges if charge is not None)]
        charged, existing = {charge.workload for charge in found}, {workload.key for workload in pending}
        self._reserved.end(self._clock())
        for key, one in [*self._reserved.items()]:
            if one.charge.namespace != namespace:
                continue
            if key in charged or (one.created and (key in existing or key in self._view.index.records)):
                del self._reserved[key]
            else:
                found.append(one.charge)
        return found
