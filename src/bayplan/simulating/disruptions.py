"""
PodDisruptionBudgets: their status as the disruption controller keeps it, and whether an eviction is allowed.

Mirrors pkg/controller/disruption and pkg/registry/core/pod/storage/eviction.go. A budget that its controller has not
seen yet cannot happen: its status is up to date before anything else happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.controllers.scaled_values import scaled
from bayplan.mapping import disruption_budgets
from bayplan.mapping.pods import FINISHED
from bayplan.simulating.store import POD, Store, key_of, owner_of
from bayplan.wire.controllers import PodDisruptionBudget
from bayplan.wire.pods import Pod

BUDGET = "PodDisruptionBudget"
ALWAYS_ALLOW = "AlwaysAllow"
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


class _Counted:
    """A budget with its pods, which are healthy or not, and the numbers of its status."""

    def __init__(self, written: PodDisruptionBudget) -> None:
        self.written, self.budget = written, disruption_budgets.budget_of(written)
        self.pods: dict[ObjectKey, bool] = {}
        self.owners: Counter[ObjectKey] = Counter()
        self.healthy = self.desired = self.allowed = 0

    def selects(self, pod: Pod) -> bool:
        """Whether the budget is about the pod; one that is finished does not count."""
        selector = self.budget.selector
        is_finished = pod.status.phase in FINISHED
        return selector is not None and not is_finished and selector.matches(pod.metadata.labels or {})

    def forget(self, pod: Pod) -> None:
        is_healthy = self.pods.pop(key_of(pod), None)
        if is_healthy is not None:
            self.healthy -= is_healthy
            owner = owner_of(pod)
            if owner is not None:
                self.owners[owner] -= 1

    def count(self, pod: Pod) -> None:
        is_healthy = is_ready(pod) and pod.metadata.deletion_timestamp is None
        self.pods[key_of(pod)] = is_healthy
        self.healthy += is_healthy
        owner = owner_of(pod)
        if owner is not None:
            self.owners[owner] += 1


class DisruptionController:
    """
    Keeps `status.disruptionsAllowed`.

    `scale_of` is the number of replicas that a controller asks for, None of what is no controller.
    """

    def __init__(self, store: Store, scale_of: Callable[[ObjectKey], int | None]) -> None:
        self._store, self._scale_of = store, scale_of
        self._by_namespace: dict[str, dict[ObjectKey, _Counted]] = {}
        store.listen(self._changed)

    def _changed(self, key: ObjectKey, before: Any, after: Any) -> None:
        if key.kind == BUDGET:
            known = self._by_namespace.setdefault(key.namespace, {})
            if after is None:
                known.pop(key, None)
            elif key not in known or known[key].written.spec != after.spec:
                self._begin(_Counted(after), known)
        elif key.kind == POD and key.namespace in self._by_namespace and _counts_otherwise(before, after):
            for one in list(self._by_namespace[key.namespace].values()):
                self._follow(one, before, after)

    def _begin(self, one: _Counted, known: dict[ObjectKey, _Counted]) -> None:
        known[key_of(one.written)] = one
        namespace = one.written.metadata.namespace
        for pod in self._store.pods():
            if pod.metadata.namespace == namespace and one.selects(pod):
                one.count(pod)
        self._update(one)

    def _follow(self, one: _Counted, before: Pod | None, after: Pod | None) -> None:
        if before is not None:
            one.forget(before)
        is_selected = after is not None and one.selects(after)
        if after is not None and is_selected:
            one.count(after)
        if is_selected or (before is not None and one.selects(before)):
            self._update(one)

    def recount(self, namespace: str) -> None:
        """Update the budgets of a namespace, because a controller was scaled."""
        for one in list(self._by_namespace.get(namespace, {}).values()):
            self._update(one)

    def _selecting(self, pod: Pod) -> list[_Counted]:
        return [one for one in self._by_namespace.get(pod.metadata.namespace, {}).values() if one.selects(pod)]

    def _update(self, one: _Counted) -> None:
        """Compute the numbers of the status (getExpectedPodCount)."""
        spec = one.written.spec
        if spec.max_unavailable is not None:
            expected = self._expected_scale(one)
            one.desired = max(0, expected - scaled(spec.max_unavailable, expected, up=True))
        elif isinstance(spec.min_available, str):
            expected = self._expected_scale(one)
            one.desired = scaled(spec.min_available, expected, up=True)
        else:
            expected, one.desired = len(one.pods), max(0, spec.min_available or 0)
        self._set_allowed(one, max(0, one.healthy - one.desired) if expected else 0, expected)

    def _expected_scale(self, one: _Counted) -> int:
        """The replicas that the controllers of the pods ask for."""
        roots: dict[ObjectKey, None] = {}
        for owner, n_pods in one.owners.items():
            found = self._store.find(owner) if n_pods else None
            if n_pods:
                roots[(None if found is None else owner_of(found)) or owner] = None
        scales = [self._scale_of(root) for root in roots]
        return sum(scale for scale in scales if scale is not None)

    def _set_allowed(self, one: _Counted, allowed: int, expected: int) -> None:
        one.allowed, status = allowed, one.written.status
        if (status.disruptions_allowed, status.expected_pods) == (allowed, expected):
            return
        status = msgspec.structs.replace(status, disruptions_allowed=allowed, expected_pods=expected)
        one.written = msgspec.structs.replace(one.written, status=status)
        if self._store.find(key_of(one.written)) is not None:
            self._store.put(one.written)

    def refusal(self, pod: Pod) -> str:
        """Why a pod may not be evicted now, empty if it may; its deletion is counted at once."""
        if pod.status.phase in ("Pending", *FINISHED):
            return ""
        budgets = self._selecting(pod)
        if len(budgets) > 1:
            return SEVERAL
        if not budgets:
            return ""
        one = budgets[0]
        if not is_ready(pod):
            # An unhealthy pod may go if the budget is met without it (unhealthyPodEvictionPolicy IfHealthyBudget).
            if one.written.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW:
                return ""
            if one.healthy >= one.desired > 0:
                return ""
        if one.allowed < 1:
            needs = f"The disruption budget {one.budget.name} needs {one.desired} healthy pods"
            return f"{REFUSED} {needs} and has {one.healthy} currently"
        return ""


def is_ready(pod: Pod) -> bool:
    """Whether the pod has the condition Ready."""
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())


def _counts_otherwise(before: Pod | None, after: Pod | None) -> bool:
    """Whether a change of a pod may change the number of healthy or of existing pods."""
    if before is None or after is None:
        return True
    return _standing(before) != _standing(after)


def _standing(pod: Pod) -> tuple[object, ...]:
    meta = pod.metadata
    return is_ready(pod), meta.deletion_timestamp is None, pod.status.phase in FINISHED, meta.labels
