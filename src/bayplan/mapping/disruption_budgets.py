"""PodDisruptionBudgets, mapped to the budgets that preemption and the audit read."""

from __future__ import annotations

from bayplan.mapping import selectors
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.wire.controllers import PodDisruptionBudget


def budget_of(written: PodDisruptionBudget) -> DisruptionBudget:
    meta, spec, status = written.metadata, written.spec, written.status
    return DisruptionBudget(
        namespace=meta.namespace or "default",
        name=meta.name,
        selector=selectors.selector_of(spec.selector),
        min_available=spec.min_available,
        max_unavailable=spec.max_unavailable,
        expected=status.expected_pods,
        allowed=status.disruptions_allowed,
        disrupted=frozenset(status.disrupted_pods or ()),
    )
