"""
Reviews that need the state of the cluster: binds against execution-time rules, and pods against the quota.

Reviews arrive faster than their effects are seen in the cluster. An admitted bind or pod therefore counts from its
review on, until it is seen or it is clear that it will not come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

import msgspec

from bayplan.enforcing import bind_review, quota
from bayplan.enforcing.quota import Charge, Charger, QuotaLimits
from bayplan.errors import ClusterError
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey

# An admitted object that another admission plugin rejects is never seen; after this time it no longer counts.
BIND_EXPECTED_SECONDS = 5.0
POD_EXPECTED_SECONDS = 30.0


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


class _AdmittedBind(msgspec.Struct, frozen=True):
    workload: Workload
    node: str
    until: float


class BindReviewer:
    """Reviews binds. One instance serves all reviews of a process: it remembers the binds just admitted."""

    def __init__(self, view: ClusterView, names: PeerNames, clock: Callable[[], float] = time.monotonic) -> None:
        self._view, self._names, self._clock = view, names, clock
        self._admitted: dict[WorkloadKey, _AdmittedBind] = {}

    def rejection(self, workload: Workload, node: str, *, dry_run: bool) -> str:
        """Return which rules the pod would violate on this node; empty if none."""
        require_synced(self._view)
        index, now = self._view.index, self._clock()
        self._admitted = {k: one for k, one in self._admitted.items() if one.until > now and k not in index.records}
        expected = [(one.workload, one.node) for one in self._admitted.values()]
        broken = bind_review.broken_rules(workload, node, index, expected)
        if not broken and not dry_run:
            self._admitted[workload.key] = _AdmittedBind(workload, node, now + BIND_EXPECTED_SECONDS)
        return "; ".join(dict.fromkeys(rule.text(self._names) for rule in broken))


class _AdmittedPod(msgspec.Struct, frozen=True):
    charge: Charge
    until: float


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
        self._admitted: dict[WorkloadKey, _AdmittedPod] = {}

    async def rejection(self, workload: Workload, before: Workload | None, *, dry_run: bool) -> str:
        """Return why the quota rejects the pod, or its change from `before`; empty if it does not."""
        charge = self._charger.pending(workload)
        if charge is None or (before is not None and self._exclusion(before) == self._exclusion(workload)):
            return ""
        require_synced(self._view)
        limits = self._view.limits.of_namespace(workload.namespace)
        if limits is None:
            return ""
        pending = await self._view.pending(workload.namespace)
        # There is no await from here on: later reviews count this pod as admitted.
        others = (one.amounts for one in self._charges(workload.namespace, pending) if one.workload != workload.key)
        message = quota.quota_rejection(charge, quota.sum_amounts(others), limits, self._quota_name)
        if not message and not dry_run:
            self._admitted[workload.key] = _AdmittedPod(charge, self._clock() + POD_EXPECTED_SECONDS)
        return message

    def _exclusion(self, workload: Workload) -> object:
        return self._charger.exclusion(workload.needs.affinity, workload.namespace)

    def _charges(self, namespace: str, pending: Iterable[Workload]) -> list[Charge]:
        """Return the charges of a namespace: for bound pods, pending pods and pods just admitted."""
        pending_charges = (self._charger.pending(workload) for workload in pending)
        seen = [*self._charger.placed([namespace]), *(charge for charge in pending_charges if charge is not None)]
        names, now = {charge.workload for charge in seen}, self._clock()
        self._admitted = {key: one for key, one in self._admitted.items() if one.until > now and key not in names}
        return seen + [one.charge for one in self._admitted.values() if one.charge.namespace == namespace]
