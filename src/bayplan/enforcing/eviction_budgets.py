"""
PodDisruptionBudgets as the eviction API reads them, kept in books while a plan is made.

Mirrors pkg/registry/core/pod/storage/eviction.go: an empty selector selects the whole namespace, and a pod with more
than one budget cannot be evicted at all. Knows nothing of violations.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model.disruption import Budget
from bayplan.model.workloads import Workload


class EvictionBudgets:
    """What is left of each budget once everything charged so far has gone."""

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        self._by_namespace: dict[str, list[Budget]] = {}
        self._left: dict[tuple[str, str], int] = {}
        for budget in budgets:
            self._by_namespace.setdefault(budget.namespace, []).append(budget)
            self._left[budget.namespace, budget.name] = budget.allowed

    def refusal(self, workload: Workload) -> str:
        """Why the workload cannot be evicted now; empty if it can."""
        guarding = self._guarding(workload)
        if len(guarding) > 1:
            named = " and ".join(budget.name for budget in guarding)
            return f"PodDisruptionBudgets {named} both select it, which the eviction API does not support"
        return next((f"PodDisruptionBudget {b.name} allows no disruption" for b in guarding if self._spent(b)), "")

    def charge(self, workload: Workload) -> None:
        """Take note that the workload goes."""
        for budget in self._guarding(workload):
            self._left[budget.namespace, budget.name] -= 1

    def _spent(self, budget: Budget) -> bool:
        return self._left[budget.namespace, budget.name] < 1

    def _guarding(self, workload: Workload) -> list[Budget]:
        """The budgets that select the workload; none where its going is charged already."""
        return [
            budget
            for budget in self._by_namespace.get(workload.namespace, ())
            if budget.selector is not None
            and budget.selector.matches(workload.labels)
            and workload.name not in budget.disrupted
        ]
