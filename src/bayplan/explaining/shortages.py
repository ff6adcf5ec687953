"""
What targets lack of the requests of a workload, where all other rules admit it.

Knows nothing of how the shortage could end.
"""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.engine.filtering import Verdicts
from bayplan.indexing.capacity import PODS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import quantities
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload
from bayplan.rules.resources_fit import ResourcesFit

Amounts = tuple[tuple[str, int], ...]  # resource → amount, cpu in thousandths


def admitted_but_for_resources(verdicts: Verdicts, index: PlacementIndex) -> Mask:
    """The targets that no rule but that of resources rejects, whether that one does or not."""
    if verdicts.pre_filter_rejection is not None:
        return np.zeros_like(index.slots.alive)
    admitted = index.slots.alive.copy()
    if verdicts.excluded is not None:
        admitted &= ~verdicts.excluded
    for one in verdicts.results:
        rejected = one.rejected()
        if rejected is not None and not isinstance(one.rule, ResourcesFit):
            admitted &= ~rejected
    return admitted


def requests_of(workload: Workload) -> dict[str, int]:
    """What the workload takes of its target, the pod itself included."""
    return {**{resource: amount for resource, amount in workload.needs.requests.amounts if amount}, PODS: 1}


def counted_requests(workload: Workload, verdicts: Verdicts) -> dict[str, int]:
    """The requests without the resources that the profile ignores."""
    ignored = [one.rule.is_ignored for one in verdicts.results if isinstance(one.rule, ResourcesFit)]
    return {
        resource: amount
        for resource, amount in requests_of(workload).items()
        if not any(is_ignored(resource) for is_ignored in ignored)
    }


class Shortage(msgspec.Struct, frozen=True):
    """
    The target that lacks the least of what is requested, and how much it lacks; both are empty if there is none.

    `too_small`: no target could hold the requests even if nothing else were there.
    """

    nearest: str = ""
    missing: Amounts = ()
    too_small: bool = False


def smallest_shortage(where: Mask, requests: dict[str, int], index: PlacementIndex) -> Shortage:
    """The smallest shortage of these targets; those that are large enough count first."""
    capacity = index.capacity
    rows = [capacity.row(resource) for resource in requests]
    requested = np.array(list(requests.values()), np.int64)[:, None]
    is_large_enough: Mask = where & (capacity.allocatable[rows] >= requested).all(axis=0)
    too_small = not is_large_enough.any()
    slots = np.flatnonzero(where if too_small else is_large_enough)
    if not len(slots):
        return Shortage()
    free = capacity.allocatable[rows][:, slots] - capacity.requested[rows][:, slots]
    short = np.maximum(requested - free, 0)  # (n_resources, n_slots)
    # Fractions of the request make resources comparable; the name breaks ties.
    worst = (short / np.maximum(requested, 1)).sum(axis=0)
    names = {index.slots.at(int(slots[i])).name: int(i) for i in np.flatnonzero(worst == worst.min())}
    nearest, best = min(names.items())
    found = zip(requests, np.take(short, best, axis=1).tolist(), strict=True)
    return Shortage(nearest, tuple((resource, amount) for resource, amount in found if amount), too_small)


def amounts_text(amounts: Amounts) -> str:
    """`500m cpu and 2 pod slots`."""
    return " and ".join(
        f"{amount} pod slot{'s'[: amount != 1]}"
        if resource == PODS
        else f"{quantities.show(resource, amount)} {resource}"
        for resource, amount in amounts
    )
