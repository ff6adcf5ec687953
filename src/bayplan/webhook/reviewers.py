"""
Whether a bind breaks no rule over nodes that must hold while pods run.

Binds come faster than they are seen in the cluster, so a pod that was let onto a node stands there from then on, until
it is seen or it is clear that it will not come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from bayplan.enforcing import bind_review
from bayplan.enforcing import quota as quota_limits
from bayplan.enforcing.quota import Charge, Charger, exclusion_of
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.webhook import cluster_view
from bayplan.webhook.cluster_view import ClusterView

PATIENCE = 5.0  # seconds; a bind that was let in and then refused by somebody else is never seen


class _AdmittedBind(msgspec.Struct, frozen=True):
    workload: Workload
    node: str
    until: float


class BindReviewer:
    """One for all reviews of a process: it remembers whom it has just let in."""

    def __init__(self, view: ClusterView, clock: Callable[[], float] = time.monotonic) -> None:
        self._view, self._clock = view, clock
        self._let_in: dict[WorkloadKey, _AdmittedBind] = {}

    def refusal(self, workload: Workload, node: str, *, dry_run: bool) -> str:
        """Which rules the pod would break on this node; empty if none."""
        cluster_view.must_be_complete(self._view)
        index, now = self._view.index, self._clock()
        self._let_in = {k: one for k, one in self._let_in.items() if one.until > now and k not in index.records}
        coming = [(one.workload, one.node) for one in self._let_in.values()]
        broken = bind_review.broken_rules(workload, node, index, coming)
        if not broken and not dry_run:
            self._let_in[workload.key] = _AdmittedBind(workload, node, now + PATIENCE)
        return "; ".join(str(rule) for rule in broken)


# RF merged from webhook.quota_door: Whether a pod's charge still fits under its namespace's limits. Reviews come
# faster than what they let in is seen in the cluster, so a charge that was let in counts from then on, until its pod
# is seen or it is clear that it will not come.

QUOTA_DOOR_PATIENCE = 30.0  # seconds; a pod that was let in and then refused by somebody else is never seen


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
        self._let_in: dict[WorkloadKey, _AdmittedPod] = {}

    async def refusal(self, workload: Workload, before: Workload | None, *, dry_run: bool) -> str:
        """Why the pod may not come in, or not change from what it was before; empty if it may."""
        charge = self._charger.waiting(workload)
        if charge is None or (before is not None and self._exclusion(before) == self._exclusion(workload)):
            return ""
        cluster_view.must_be_complete(self._view)
        limits = self._view.limits.of(workload.namespace)
        if limits is None:
            return ""
        waiting = await self._view.waiting(workload.namespace)
        # From here on nobody else has a turn: whoever asks next sees that this one was let in.
        others = (one.amounts for one in self._charges(workload.namespace, waiting) if one.workload != workload.key)
        said = quota_limits.refusal(charge, quota_limits.added(others), limits, self._quota)
        if not said and not dry_run:
            self._let_in[workload.key] = _AdmittedPod(charge, self._clock() + QUOTA_DOOR_PATIENCE)
        return said

    def _exclusion(self, workload: Workload) -> object:
        return exclusion_of(workload.needs.affinity, workload.namespace, self._view.index.semantics)

    def _charges(self, namespace: str, waiting: Iterable[Workload]) -> list[Charge]:
        """What the namespace is charged: for pods that run, that wait, and that were let in a moment ago."""
        waits = (self._charger.waiting(workload) for workload in waiting)
        seen = [*self._charger.placed([namespace]), *(charge for charge in waits if charge is not None)]
        names, now = {charge.workload for charge in seen}, self._clock()
        self._let_in = {key: one for key, one in self._let_in.items() if one.until > now and key not in names}
        return seen + [one.charge for one in self._let_in.values() if one.charge.namespace == namespace]
