"""A PodDisruptionBudget: how many of some workloads may be gone at once. Knows nothing of who is where."""

from __future__ import annotations

import msgspec

from bayplan.model.labels import Labels, Selector


class DisruptionBudget(msgspec.Struct, frozen=True, kw_only=True):
    """
    `allowed` is how many more disruptions its controller says it stands, and `disrupted` the pods, by name, whose
    disruption is counted there already. `expected` is how many pods its controllers want, 0 if unknown.

    `min_available` and `max_unavailable` are as written: a number, or a share such as `"30%"`.
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

        As kube-scheduler reads it: a null or empty selector selects nobody, nor is a pod without labels ever selected.
        """
        if self.selector is None or not self.selector.requirements:
            return False
        return bool(labels) and self.selector.matches(labels)
