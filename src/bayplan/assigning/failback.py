"""
Fail back to an earlier affinity group or tier (switch `failBackAfter`), which Karmada does only on request.

A workload that has been placed for the hold-down time is scheduled twice: as it is, and as if it were unplaced. The
second decision is taken only if it is better: an earlier group, or in the same group more replicas in earlier tiers. So
small changes of capacity move nothing.
"""

from __future__ import annotations

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.placements import AffinityGroup
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_affinity import NO_TIER, tier_by_target


def as_unplaced(workload: Workload) -> Workload:
    """The workload as if it had never been placed, except that its own replicas still count as available capacity."""
    assert workload.binding is not None
    binding = msgspec.structs.replace(workload.binding, observed="", fresh=True)
    return msgspec.structs.replace(workload, binding=binding)


def permitted(workload: Workload) -> Workload:
    """The workload as it is scheduled when its hold-down is over."""
    assert workload.binding is not None
    return msgspec.structs.replace(workload, binding=msgspec.structs.replace(workload.binding, may_fail_back=True))


def is_at_best(binding: Binding, observed: str, shares: tuple[tuple[str, int], ...], index: PlacementIndex) -> bool:
    """Whether no other place could be better: all replicas are in the first tier of the first group."""
    groups = binding.placement.groups
    if not groups or (len(groups) == 1 and len(groups[0].tiers) <= 1):
        return True
    position, held = _merit(binding, observed, shares, index)
    return position == 0 and not any(held[1:])


def is_better(
    binding: Binding,
    new: tuple[str, tuple[tuple[str, int], ...]],
    old: tuple[str, tuple[tuple[str, int], ...]],
    index: PlacementIndex,
) -> bool:
    """Whether the new (group, shares) is better than the old one."""
    return _merit(binding, *new, index) > _merit(binding, *old, index)


def _merit(
    binding: Binding, observed: str, shares: tuple[tuple[str, int], ...], index: PlacementIndex
) -> tuple[int, list[int]]:
    """A sort key: earlier groups first, then replicas in earlier tiers; a cluster without replicas counts as one."""
    groups = binding.placement.groups
    position = next((i for i, group in enumerate(groups) if group.name == observed), len(groups))
    group = groups[position] if position < len(groups) else AffinityGroup()
    tiers = tier_by_target(group.tiers, index)
    held = [0] * len(group.tiers)
    for name, replicas in shares:
        slot = index.slots.by_name.get(name)
        if slot is not None and tiers[slot] != NO_TIER:
            held[int(tiers[slot])] += max(replicas, 1)
    return -position, held
