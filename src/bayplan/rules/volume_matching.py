"""
Which volumes unbound claims take on each node, or where their drivers can provision some, and how that is scored.

For all targets at once; what it means for a pod is up to VolumeBinding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import labels
from bayplan.model.labels import IN, Selector
from bayplan.model.node_selectors import NodeTerm
from bayplan.model.reasons import Codes, Mask, Scores, Slots
from bayplan.model.volumes import Claim, Volume
from bayplan.rules import node_affinity

NO_PROVISIONER = "kubernetes.io/no-provisioner"
NO_MATCH = -1

VolumeMatch = tuple[Claim, Sequence[Volume], NDArray[np.int64]]


def unbound_codes(unbound: list[Claim], index: PlacementIndex) -> Codes:
    """
    2 where a claim has neither a volume of its own nor one that can be provisioned, 8 where there is no space for it.

    The first claim that cannot be satisfied decides, in the order of kube-scheduler: those with a selected node, then
    those without a matching volume, the smallest first.
    """
    codes = np.zeros(index.slots.capacity, np.int64)
    for claim, _, volumes in sorted(matched_volumes(unbound, index), key=lambda match: not match[0].selected_node):
        provision = _can_provision(claim, index)
        to_provision = (codes == 0) & (volumes == NO_MATCH)
        codes[to_provision & ~provision] = 2
        if claim.requested and _is_metered(claim, index):
            codes[to_provision & provision & ~_has_space(claim, index)] = 8
    for claim in unbound:
        codes[~_where_selected(claim, index)] = 2
    return codes


def storage_scores(unbound: list[Claim], table: NDArray[np.int64], index: PlacementIndex) -> Scores:
    """
    The average over the classes of the score for what the claims take of their volumes or of their class's capacity.

    `table` holds the score for each percentage.
    """
    n = index.slots.capacity
    static = {claim.storage_class: np.zeros((2, n), np.int64) for claim in unbound}  # requested, and of how much
    dynamic = {claim.storage_class: np.zeros((2, n), np.int64) for claim in unbound}
    counts = {name: np.zeros((2, n), np.bool_) for name in static}  # whether the class counts, static and dynamic
    for claim, volumes, choice in matched_volumes(unbound, index):
        name, bound = claim.storage_class, choice != NO_MATCH
        sizes = np.array([*(volume.capacity for volume in volumes), 0], np.int64)
        static[name] += np.where(bound, np.stack((np.full(n, claim.requested), sizes[choice])), 0)
        counts[name][0] |= bound
        capacity = _capacity(claim, index) if _is_metered(claim, index) else None
        if capacity is not None:
            provisioned = ~bound & (capacity >= 0)
            dynamic[name][0] += np.where(provisioned, claim.requested, 0)
            dynamic[name][1] = np.where(provisioned, capacity, dynamic[name][1])
            counts[name][1] |= provisioned
    any_static = np.logical_or.reduce([counted[0] for counted in counts.values()])
    total, classes = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for name, counted in counts.items():
        requested, capacity = np.where(any_static, static[name], dynamic[name])
        share = np.where(requested > capacity, 100, requested * 100 // np.maximum(capacity, 1))
        share[capacity == 0] = 100
        here = np.where(any_static, counted[0], counted[1])
        total += np.where(here, table[share], 0)
        classes += here
    # Rounded, half up: math.Round of a number that is not negative.
    return np.where(classes == 0, 0, (2 * total + classes) // np.maximum(2 * classes, 1))


def matched_volumes(unbound: list[Claim], index: PlacementIndex) -> Iterator[VolumeMatch]:
    """For each claim the matching volumes, and for each target the number of the one that it takes, or `NO_MATCH`."""
    taken: list[tuple[Sequence[Volume], NDArray[np.int64]]] = []
    for claim in sorted(unbound, key=lambda claim: claim.requested):
        # A claim with a selected node is about to have its volume provisioned there.
        volumes = [] if claim.selected_node else _first_of_each_reach(_volumes_matching(claim, index), len(taken) + 1)
        choice = _chosen_by_target(volumes, taken, index)
        taken.append((volumes, choice))
        yield claim, volumes, choice


def slots_reaching(volume: Volume, index: PlacementIndex) -> Slots:
    """The targets that reach the volume; a volume without terms is reached from all."""
    return np.flatnonzero(index.slots.alive) if volume.required is None else slots_meeting(volume.required, index)


def slots_meeting(required: Sequence[NodeTerm], index: PlacementIndex) -> Slots:
    """The targets that meet one of the terms of a volume, of which only the label requirements count."""
    terms = tuple(NodeTerm(term.expressions) for term in required)
    if len(terms) == 1 and len(terms[0].expressions) == 1 and terms[0].expressions[0].operator == "In":
        (requirement,) = terms[0].expressions
        return _slots_with_value(requirement.key, requirement.values, index)
    return np.flatnonzero(node_affinity.matching_terms(terms, index))


def _chosen_by_target(
    volumes: Sequence[Volume], taken: list[tuple[Sequence[Volume], NDArray[np.int64]]], index: PlacementIndex
) -> NDArray[np.int64]:
    """The first of the volumes that each target reaches and that no other claim takes there, shape (capacity,)."""
    found = np.full(index.slots.capacity, NO_MATCH, np.int64)
    reaches = [slots_reaching(volume, index) for volume in volumes]
    if not reaches:
        return found
    slots = np.concatenate(reaches)
    numbers = np.repeat(np.arange(len(volumes)), [len(one) for one in reaches])
    free = np.ones(len(slots), np.bool_)
    for others, choice in taken:
        by_name = {volume.name: number for number, volume in enumerate(others)}
        same = np.array([by_name.get(volume.name, NO_MATCH - 1) for volume in volumes])
        free &= choice[slots] != same[numbers]
    # Written from the last to the first, so that the first stays.
    found[slots[free][::-1]] = numbers[free][::-1]
    return found


def _first_of_each_reach(volumes: list[Volume], most: int) -> list[Volume]:
    """Of the volumes that are reached from the same targets only the first `most`: others take fewer than that."""
    seen: Counter[tuple[NodeTerm, ...] | None] = Counter()
    found = []
    for volume in volumes:
        seen[volume.required] += 1
        if seen[volume.required] <= most:
            found.append(volume)
    return found


def _volumes_matching(claim: Claim, index: PlacementIndex) -> list[Volume]:
    """The volumes that match the claim: those reserved for it, or else the unclaimed ones, smallest first."""
    reserved = [v for v in index.storage.reserved_for(claim) if v.claim_uid in ("", claim.uid) and _suits(v, claim)]
    if reserved:
        return reserved
    volumes = [v for v in index.storage.unclaimed(claim.storage_class) if _matches(v, claim)]
    return sorted(volumes, key=lambda volume: volume.capacity)


def _suits(volume: Volume, claim: Claim) -> bool:
    """What also a volume that is reserved for the claim must have."""
    return (
        not volume.terminating
        and volume.capacity >= claim.requested
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
    )


def _matches(volume: Volume, claim: Claim) -> bool:
    return (
        volume.phase in ("Available", "")
        and _suits(volume, claim)
        and set(claim.access_modes) <= set(volume.access_modes)
        and (claim.selector is None or labels.matches(claim.selector, volume.labels))
    )


# Volumes to be provisioned


def _where_selected(claim: Claim, index: PlacementIndex) -> Mask:
    """The selected node of the claim, or all targets."""
    if not claim.selected_node:
        return index.slots.alive
    mask = np.zeros_like(index.slots.alive)
    slot = index.slots.by_name.get(claim.selected_node)
    if slot is not None:
        mask[slot] = True
    return mask


def _can_provision(claim: Claim, index: PlacementIndex) -> Mask:
    """Where the claim's class provisions volumes: any of its allowed topologies, everywhere if it has none."""
    storage_class = index.storage.classes.get(claim.storage_class)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return np.zeros(index.slots.capacity, np.bool_)
    if not storage_class.allowed:
        return np.ones(index.slots.capacity, np.bool_)
    mask = np.zeros(index.slots.capacity, np.bool_)
    for term in filter(None, storage_class.allowed):  # a term without requirements matches no node
        here = np.ones(index.slots.capacity, np.bool_)
        for key, values in term:
            has = np.zeros(index.slots.capacity, np.bool_)
            has[_slots_with_value(key, values, index)] = True
            here &= has
        mask |= here
    return mask


def _is_metered(claim: Claim, index: PlacementIndex) -> bool:
    """Whether the driver that would provision the volume publishes its storage capacity."""
    storage_class = index.storage.classes.get(claim.storage_class)
    return storage_class is not None and storage_class.provisioner in index.storage.metering_drivers


def _has_space(claim: Claim, index: PlacementIndex) -> Mask:
    """Where the driver publishes storage capacity for a volume of this size."""
    mask: Mask = _capacity(claim, index) >= 0
    return mask


def _capacity(claim: Claim, index: PlacementIndex) -> NDArray[np.int64]:
    """What the driver publishes where a volume of this size has space, shape (capacity,); -1 elsewhere."""
    found = np.full(index.slots.capacity, -1, np.int64)
    for space in index.storage.space_of_class(claim.storage_class):
        if space.topology is not None and space.largest is not None and space.largest >= claim.requested:
            found[_selected(space.topology, index)] = space.capacity
    return found


def _selected(topology: Selector, index: PlacementIndex) -> Slots:
    """The targets that a selector selects. Drivers name one zone or one node, so few targets are matched singly."""
    named = [requirement for requirement in topology.requirements if requirement.operator == IN]
    slots = min((_slots_with_value(one.key, one.values, index) for one in named), key=len, default=None)
    if slots is None:
        slots = np.flatnonzero(index.slots.alive)
    if len(topology.requirements) == len(named) == 1:
        return slots
    at = index.slots.at
    return np.array([slot for slot in slots.tolist() if topology.matches(at(slot).labels)], np.intp)


def _slots_with_value(key: str, values: tuple[str, ...], index: PlacementIndex) -> Slots:
    """The targets whose label has one of the values."""
    column = index.column(key)
    found = [column.slots_in(column.by_value[value]) for value in dict.fromkeys(values) if value in column.by_value]
    return found[0] if len(found) == 1 else np.concatenate(found or [np.zeros(0, np.intp)])
