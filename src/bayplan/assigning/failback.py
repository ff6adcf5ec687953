"""
Going back to a better group or tier (switch `failBackAfter`), which Karmada only does when told to.

A workload that has stood for the hold-down time is decided twice: as it is, and as if it came anew. The second
decision counts only if it is better: an earlier group, or in the same group more replicas in earlier tiers. So nothing
moves merely because the numbers have shifted a little.
"""

from __future__ import annotations

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.placements import AffinityGroup
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_affinity import NO_TIER, tier_by_target


def as_unplaced(workload: Workload) -> Workload:
    """The workload as if it had never been placed, but for the room that it has where it is."""
    assert workload.binding is not None
    binding = msgspec.structs.replace(workload.binding, observed="", fresh=True)
    return msgspec.structs.replace(workload, binding=binding)


def is_better(
    binding: Binding,
    new: tuple[str, tuple[tuple[str, int], ...]],
    old: tuple[str, tuple[tuple[str, int], ...]],
    index: PlacementIndex,
) -> bool:
    """Whether one (group, shares) beats another."""
    return _merit(binding, *new, index) > _merit(binding, *old, index)


def _merit(
    binding: Binding, observed: str, shares: tuple[tuple[str, int], ...], index: PlacementIndex
) -> tuple[int, list[int]]:
    """Earlier groups first, then replicas in earlier tiers; clusters count where there are no replicas."""
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
