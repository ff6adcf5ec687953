"""
Whether a bind breaks no rule over nodes that must hold while pods run.

Binds come faster than they are seen in the cluster, so a pod that was let onto a node stands there from then on, until
it is seen or it is clear that it will not come.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from bayplan.enforcing import bind_review
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.webhook import cluster_view
from bayplan.webhook.cluster_view import ClusterView

PATIENCE = 5.0  # seconds; a bind that was let in and then refused by somebody else is never seen


class _LetIn(msgspec.Struct, frozen=True):
    workload: Workload
    node: str
    until: float


class BindDoor:
    """One for all reviews of a process: it remembers whom it has just let in."""

    def __init__(self, view: ClusterView, clock: Callable[[], float] = time.monotonic) -> None:
        self._view, self._clock = view, clock
        self._let_in: dict[WorkloadKey, _LetIn] = {}

    def refusal(self, workload: Workload, node: str, *, dry_run: bool) -> str:
        """Which rules the pod would break on this node; empty if none."""
        cluster_view.must_be_complete(self._view)
        index, now = self._view.index, self._clock()
        self._let_in = {k: one for k, one in self._let_in.items() if one.until > now and k not in index.records}
        coming = [(one.workload, one.node) for one in self._let_in.values()]
        broken = bind_review.broken_rules(workload, node, index, coming)
        if not broken and not dry_run:
            self._let_in[workload.key] = _LetIn(workload, node, now + PATIENCE)
        return "; ".join(str(rule) for rule in broken)
