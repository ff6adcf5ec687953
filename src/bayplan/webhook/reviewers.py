"""What the door may ask about the cluster it guards, if somebody watches the cluster and can tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

import msgspec

from bayplan.enforcing import bind_review
from bayplan.enforcing import quota as quota_limits
from bayplan.enforcing.quota import Charge, Charger, QuotaLimits, exclusion_of
from bayplan.errors import ClusterError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey


class ClusterView(Protocol):
    """Asked on the thread that owns the index, which stays the same object all along."""

    @property
    def synced(self) -> bool:
        """Whether all that there was to know has been seen."""

    @property
    def index(self) -> PlacementIndex:
        """Nodes, namespaces and the pods that have a node."""

    @property
    def limits(self) -> QuotaLimits:
        """What each namespace may be charged."""

    async def pending(self, namespace: str) -> Iterable[Workload]:
        """The pods of a namespace that have no node yet."""

    async def pod(self, namespace: str, name: str) -> Workload | None:
        """One pod, wherever it stands; None if there is none of this name."""


def require_synced(view: ClusterView) -> None:
    """Raises ClusterError otherwise: by half of the cluster everything would be let in."""
    if not view.synced:
        raise ClusterError("the cluster is not known yet")


# RF merged from webhook.reviewers: Whether a bind breaks no rule over nodes that must hold while pods run. Binds come
# faster than they are seen in the cluster, so a pod that was let onto a node stands there from then on, until it is
# seen or it is clear that it will not come.


BIND_EXPECTED_SECONDS = 5.0  # seconds; a bind that was let in and then refused by somebody else is never seen


class _AdmittedBind(msgspec.Struct, frozen=True):
    workload: Workload
    node: str
    until: float


class BindReviewer:
    """One for all reviews of a process: it remembers whom it has just let in."""

    def __init__(self, view: ClusterView, clock: Callable[[], float] = time.monotonic) -> None:
        self._view, self._clock = view, clock
        self._admitted: dict[WorkloadKey, _AdmittedBind] = {}

    def rejection(self, workload: Workload, node: str, *, dry_run: bool) -> str:
        """Which rules the pod would break on this node; empty if none."""
        require_synced(self._view)
        index, now = self._view.index, self._clock()
        self._admitted = {k: one for k, one in self._admitted.items() if one.until > now and k not in index.records}
        coming = [(one.workload, one.node) for one in self._admitted.values()]
        broken = bind_review.broken_rules(workload, node, index, coming)
        if not broken and not dry_run:
            self._admitted[workload.key] = _AdmittedBind(workload, node, now + BIND_EXPECTED_SECONDS)
        return "; ".join(str(rule) for rule in broken)


# RF merged from webhook.quota_door: Whether a pod's charge still fits under its namespace's limits. Reviews come
# faster than what they let in is seen in the cluster, so a charge that was let in counts from then on, until its pod
# is seen or it is clear that it will not come.

POD_EXPECTED_SECONDS = 30.0  # seconds; a pod that was let in and then refused by somebody else is never seen


class _AdmittedPod(msgspec.Struct, frozen=True):
    charge: Charge
    until: float


class QuotaReviewer:
    """One for all reviews of a process: it remembers whom it has just let in."""

    def __init__(
        self,
        view: ClusterView,
        charge: Literal["largest", "average"],
        quota: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view, self._quota, self._clock = view, quota, clock
        self._charger = Charger(view.index, charge)
        self._admitted: dict[WorkloadKey, _AdmittedPod] = {}

    async def rejection(self, workload: Workload, before: Workload | None, *, dry_run: bool) -> str:
        """Why the pod may not come in, or not change from what it was before; empty if it may."""
        charge = self._charger.waiting(workload)
        if charge is None or (before is not None and self._exclusion(before) == self._exclusion(workload)):
            return ""
        require_synced(self._view)
        limits = self._view.limits.of(workload.namespace)
        if limits is None:
            return ""
        pending = await self._view.pending(workload.namespace)
        # From here on nobody else has a turn: whoever asks next sees that this one was let in.
        others = (one.amounts for one in self._charges(workload.namespace, pending) if one.workload != workload.key)
        said = quota_limits.quota_refusal(charge, quota_limits.sum_amounts(others), limits, self._quota)
        if not said and not dry_run:
            self._admitted[workload.key] = _AdmittedPod(charge, self._clock() + POD_EXPECTED_SECONDS)
        return said

    def _exclusion(self, workload: Workload) -> object:
        return exclusion_of(workload.needs.affinity, workload.namespace, self._view.index.semantics)

    def _charges(self, namespace: str, pending: Iterable[Workload]) -> list[Charge]:
        """What the namespace is charged: for pods that run, that wait, and that were let in a moment ago."""
        waits = (self._charger.waiting(workload) for workload in pending)
        seen = [*self._charger.placed([namespace]), *(charge for charge in waits if charge is not None)]
        names, now = {charge.workload for charge in seen}, self._clock()
        self._admitted = {key: one for key, one in self._admitted.items() if one.until > now and key not in names}
        return seen + [one.charge for one in self._admitted.values() if one.charge.namespace == namespace]
