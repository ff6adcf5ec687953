"""
The limits of evictions: a rate limit, and PodDisruptionBudgets as the eviction API applies them.

Budgets mirror pkg/registry/core/pod/storage/eviction.go: an empty selector selects the whole namespace, and a pod with
more than one budget cannot be evicted. Knows nothing of violations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload

MINUTE = 60.0


class EvictionRateLimit:
    """How many evictions may start per minute and be in progress at once. `started` are the times of earlier ones."""

    def __init__(
        self, now: float, *, per_minute: int, at_once: int, started: Iterable[float] = (), in_progress: int = 0
    ) -> None:
        self._now, self._per_minute, self._at_once = now, per_minute, at_once
        self._recent = sorted(start for start in started if start > now - MINUTE)
        self._in_progress = in_progress

    @property
    def open(self) -> bool:
        return not self.why

    @property
    def why(self) -> str:
        """The limit that is reached; empty if another eviction may start."""
        if self._in_progress >= self._at_once:
            return f"{self._in_progress} evictions are in progress, which is the limit"
        if len(self._recent) >= self._per_minute:
            return f"{len(self._recent)} evictions in the last minute, which is the limit"
        return ""

    @property
    def until(self) -> float:
        """When another eviction may start; infinite if one in progress must end first."""
        if self._in_progress >= self._at_once or not self._per_minute:
            return math.inf
        return self._recent[-self._per_minute] + MINUTE

    def take(self) -> None:
        """Count an eviction that starts now."""
        self._in_progress += 1
        self._recent.append(self._now)


class EvictionBudgets:
    """What is left of each budget after the evictions charged so far."""

    def __init__(self, budgets: Iterable[DisruptionBudget] = ()) -> None:
        self._by_namespace: dict[str, list[DisruptionBudget]] = {}
        self._left: dict[tuple[str, str], int] = {}
        for budget in budgets:
            self._by_namespace.setdefault(budget.namespace, []).append(budget)
            self._left[budget.namespace, budget.name] = budget.allowed

    def rejection(self, workload: Workload) -> str:
        """Why the workload cannot be evicted now; empty if it can."""
        budgets = self._budgets_of(workload)
        if len(budgets) > 1:
            named = " and ".join(budget.name for budget in budgets)
            return f"PodDisruptionBudgets {named} both select it, which the eviction API does not support"
        spent = (budget for budget in budgets if self._left[budget.namespace, budget.name] < 1)
        return next((f"PodDisruptionBudget {budget.name} allows no disruption" for budget in spent), "")

    def charge(self, workload: Workload) -> None:
        """Charge the eviction of the workload to its budgets."""
        for budget in self._budgets_of(workload):
            self._left[budget.namespace, budget.name] -= 1

    def _budgets_of(self, workload: Workload) -> list[DisruptionBudget]:
        """The budgets that select the workload, except those that have its disruption recorded already."""
        return [
            budget
            for budget in self._by_namespace.get(workload.namespace, ())
            if budget.selector is not None
            and budget.selector.matches(workload.labels)
            and workload.name not in budget.disrupted
        ]
