"""PodDisruptionBudgets: what they select, and how many disruptions their controller still allows."""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, Int32, LabelSelector, WireObject


class PodDisruptionBudgetSpec(WireObject):
    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class PodDisruptionBudgetStatus(WireObject):
    """`disrupted_pods`: pod name → when the API server took its disruption into account."""

    disruptions_allowed: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str | None] | None = None


class PodDisruptionBudget(ApiObject):
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)
