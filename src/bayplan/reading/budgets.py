"""PodDisruptionBudgets as written → as preemption and the audit read them."""

from __future__ import annotations

from bayplan.model.disruption import Budget
from bayplan.reading import selectors
from bayplan.wire.disruption import PodDisruptionBudget


def budget_of(written: PodDisruptionBudget) -> Budget:
    meta, spec, status = written.metadata, written.spec, written.status
    return Budget(
        namespace=meta.namespace or "default",
        name=meta.name,
        selector=selectors.selector_of(spec.selector),
        min_available=spec.min_available,
        max_unavailable=spec.max_unavailable,
        expected=status.expected_pods,
        allowed=status.disruptions_allowed,
        disrupted=frozenset(status.disrupted_pods or ()),
    )
