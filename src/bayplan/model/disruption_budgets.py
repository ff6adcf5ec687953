"""A PodDisruptionBudget: how many of the selected pods may be disrupted at once. Does not know where pods run."""

from __future__ import annotations

import msgspec

from bayplan.model.labels import Labels, Selector


class DisruptionBudget(msgspec.Struct, frozen=True, kw_only=True):
    """
    `allowed` is its controller's `disruptionsAllowed`, and `disrupted` the names of pods whose disruption is already
    counted in it. `expected` is the number of expected pods, 0 if unknown.

    `min_available` and `max_unavailable` are as written: a number, or a percentage such as `"30%"`.
    """

    namespace: str
    name: str
    selector: Selector | None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    expected: int = 0
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()

    def selects(self, labels: Labels) -> bool:
        """
        Whether a pod of the budget's namespace with these labels counts in it.

        As in kube-scheduler, a null or empty selector selects nothing, and a pod without labels is never selected.
        """
        if self.selector is None or not self.selector.requirements:
            return False
        return bool(labels) and self.selector.matches(labels)
