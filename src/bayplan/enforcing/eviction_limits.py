"""How many evictions may be started now: so many in a minute, and so many under way at once. Knows not whose."""

from __future__ import annotations

import math
from collections.abc import Iterable

from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload

MINUTE = 60.0


class EvictionRateLimit:
    """Lets evictions pass, one by one, as far as the limits allow. `started` are the times of earlier ones."""

    def __init__(
        self, now: float, *, per_minute: int, at_once: int, started: Iterable[float] = (), under_way: int = 0
    ) -> None:
        self._now, self._per_minute, self._at_once = now, per_minute, at_once
        self._recent = sorted(start for start in started if start > now - MINUTE)
        self._under_way = under_way

    @property
    def open(self) -> bool:
        return not self.why

    @property
    def why(self) -> str:
        """What keeps it shut; empty if it is open."""
        if self._under_way >= self._at_once:
            return f"{self._under_way} evictions are under way, as many as may be at once"
        if len(self._recent) >= self._per_minute:
            return f"{len(self._recent)} evictions in the last minute, as many as may be"
        return ""

    @property
    def until(self) -> float:
        """When the oldest eviction that stands in the way is a minute old; not known where others must be gone."""
        if self._under_way >= self._at_once or not self._per_minute:
            return math.inf
        return self._recent[-self._per_minute] + MINUTE

    def pass_one(self) -> None:
        self._under_way += 1
        self._recent.append(self._now)


# RF merged from enforcing.eviction_budgets: PodDisruptionBudgets as the eviction API reads them, kept in books while
# a plan is made. Mirrors pkg/registry/core/pod/storage/eviction.go: an empty selector selects the whole namespace,
# and a pod with more than one budget cannot be evicted at all. Knows nothing of violations.


class EvictionBudgets:
    """What is left of each budget once everything charged so far has gone."""

    def __init__(self, budgets: Iterable[DisruptionBudget] = ()) -> None:
        self._by_namespace: dict[str, list[DisruptionBudget]] = {}
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

    def _spent(self, budget: DisruptionBudget) -> bool:
        return self._left[budget.namespace, budget.name] < 1

    def _guarding(self, workload: Workload) -> list[DisruptionBudget]:
        """The budgets that select the workload; none where its going is charged already."""
        return [
            budget
            for budget in self._by_namespace.get(workload.namespace, ())
            if budget.selector is not None
            and budget.selector.matches(workload.labels)
            and workload.name not in budget.disrupted
        ]
