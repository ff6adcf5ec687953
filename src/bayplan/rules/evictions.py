"""
What evictions can change about the targets that a rule rejects, in the rule's own words. Selects no victims.

Nearly every rule that depends on workloads rejects a target because something there is used up, and what a workload
takes of it is a number. So victims are selected by arithmetic over all targets at once. Knows nothing of priorities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ValueColumn
from bayplan.model.reasons import Codes, Mask
from bayplan.model.workloads import Workload

Amounts = NDArray[np.int64]
NominatedPods = dict[int, list[Workload]]


class Preemptor(msgspec.Struct, frozen=True):
    """
    A workload for which others may be evicted, and all that a rule reads to say what evictions change.

    `nominated_pods`: slot → the workloads nominated for it whose priority is at least that of this one.
    """

    workload: Workload
    index: PlacementIndex
    nominated_pods: NominatedPods


class CapacityConstraint:
    """
    Something of which each target has a limited amount, and which only an eviction frees.

    `remaining`, shape (capacity,), is what the workload and the placed ones leave of it; where it is negative, the rule
    rejects the target with `code`. `adds`: the code is added to the rule's other codes instead of replacing them.
    `column` is set if all workloads of the target's domain take of it, not only those on the target.
    `compares_domains`: what remains depends on the workloads of other domains too, so their evictions change it.
    `needs_dry_run`: sums do not show whether an eviction frees enough.
    `forgets`: an eviction frees more than the rule itself says, because kube-scheduler forgets who else takes of it.
    """

    forgets: ClassVar[bool] = False
    adds: ClassVar[bool] = False
    needs_dry_run: ClassVar[bool] = False
    compares_domains: ClassVar[bool] = False
    column: ValueColumn | None = None

    def __init__(self, code: int, remaining: Amounts) -> None:
        self.code = code
        self.remaining = remaining

    def amounts(self) -> Amounts | None:
        """What workloads take of it, by row of the pod table; None if none takes any."""
        return None

    def amount_of(self, nominated: Workload, slot: int) -> int:
        """What a workload that is nominated for a target will take of it."""
        del nominated, slot
        return 0

    def reserve(self, nominated_pods: NominatedPods) -> None:
        """Subtract from `remaining` what nominated workloads will take."""
        if nominated_pods:
            self.remaining = self.remaining.copy()  # which may be an array of the index
        for slot, workloads in nominated_pods.items():
            self.remaining[slot] -= sum(self.amount_of(nominated, slot) for nominated in workloads)


class FixedConstraint(CapacityConstraint):
    """A target lacks something that no eviction frees."""


class PeerRequirement(ABC):
    """
    Workloads that must be there, so that evictions can make the rule reject a target with `code`, but never accept it.

    `now` says where they are, shape (capacity,), and `by_nominated` where nominated pods would be such workloads.
    `needs_dry_run`: `after` does not show what an eviction of `related` workloads changes.
    """

    def __init__(self, code: int, now: Mask, by_nominated: Mask, *, needs_dry_run: bool = False) -> None:
        self.code = code
        self.now = now
        self.by_nominated = by_nominated
        self.needs_dry_run = needs_dry_run

    @abstractmethod
    def after(self, evicted: Mask) -> Mask:
        """Where it still holds without the workloads `evicted` (by row) of that target, shape (capacity,)."""

    @abstractmethod
    def partners(self) -> Mask:
        """The workloads that are required, by row of the pod table."""

    def related(self) -> Mask:
        """Those and all others whose eviction can change where it holds, by row of the pod table."""
        return self.partners()


class EvictionEffect(msgspec.Struct, frozen=True):
    """
    What decides a rule's code for a target while workloads are evicted.

    It is that of `fixed_codes`, shape (capacity,), which no eviction changes. Each capacity constraint that is exceeded
    replaces it or adds to it, in their order, and so does a requirement that does not hold. `needs_dry_run`, shape
    (capacity,), are the targets where all this is only what holds now, and evictions may change it in any way.
    """

    fixed_codes: Codes | None = None
    capacity_constraints: tuple[CapacityConstraint, ...] = ()
    requirement: PeerRequirement | None = None
    needs_dry_run: Mask | None = None
