"""VolumeBinding: bound volumes tie a pod to nodes, waiting claims to nodes where a volume can be had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model import labels
from bayplan.model.labels import IN, Selector
from bayplan.model.node_selectors import NodeTerm
from bayplan.model.reasons import Codes, Mask, Reason, Slots, StatusCode
from bayplan.model.volumes import Claim, StorageClass, Volume
from bayplan.model.workloads import Workload
from bayplan.rules import node_affinity
from bayplan.rules.rule import Failure
from bayplan.rules.volume_claims import ClaimPart, ClaimRule, claim_part, missing_claim

UNBOUND = Reason("claim-unbound", "pod has unbound immediate PersistentVolumeClaims", StatusCode.UNRESOLVABLE)
ELSEWHERE = Reason("volume-elsewhere", "node(s) didn't match PersistentVolume's node affinity", StatusCode.UNRESOLVABLE)
NO_VOLUME = Reason("volume-none", "node(s) didn't find available persistent volumes to bind", StatusCode.UNRESOLVABLE)
GONE = Reason(
    "volume-gone",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    StatusCode.UNRESOLVABLE,
)
NO_SPACE = Reason("volume-space", "node(s) did not have enough free storage", StatusCode.UNRESOLVABLE)
BITS = ((1, ELSEWHERE), (2, NO_VOLUME), (4, GONE), (8, NO_SPACE))
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class VolumeBinding(ClaimRule):
    name = "VolumeBinding"
    id = "volume-binding"

    def pre_filter(self, state: ClaimPart, index: PlacementIndex) -> Reason | None:
        missing = missing_claim(state, index)
        if missing is not None:
            return missing
        for claim in state.known(index):
            if claim.lost:
                text = f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
                return Reason("claim-lost", text, StatusCode.UNRESOLVABLE)
            if claim.terminating:
                text = f'persistentvolumeclaim "{claim.name}" is being deleted'
                return Reason("claim-deleted", text, StatusCode.UNRESOLVABLE)
        immediate = any(not claim.bound and not _waits(claim, index) for claim in state.known(index))
        return UNBOUND if immediate else None

    def reject(self, state: ClaimPart, index: PlacementIndex, at: At) -> Codes:
        """Bits: a bound volume is elsewhere, a waiting claim finds none, a bound volume is gone."""
        codes = np.zeros(index.slots.capacity, np.int64)
        waiting = []
        for claim in state.known(index):
            if not claim.bound:
                waiting.append(claim)
                continue
            volume = index.storage.volumes.get(claim.volume)
            if volume is None:
                codes |= 4
            elif volume.required is not None:
                codes |= np.where(_fits(volume, index), 0, 1)
        if waiting:
            could, spacious = can_bind(waiting, index)
            codes |= np.where(could, 0, 2) | np.where(could & ~spacious, 8, 0)
        # A volume that is gone is the whole answer: nothing else is looked at.
        return np.where(codes & 4, 4, codes)[at]

    def reasons(self, state: ClaimPart, code: int) -> tuple[Reason, ...]:
        del state
        return tuple(reason for bit, reason in BITS if code & bit)

    def evidence(self, state: ClaimPart, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        code = int(self.reject(state, index, np.array([slot]))[0])
        failures = []
        for claim in state.known(index):
            volume = index.storage.volumes.get(claim.volume)
            if code & 1 and volume is not None and volume.required is not None and not _fits(volume, index)[slot]:
                detail = f"claim {claim.key} is bound to {volume.name}, which wants {_either(volume.required)}"
                failures.append(Failure(self.id, ELSEWHERE.text, detail=detail, term=claim.key))
            if code & 2 and not claim.bound:
                detail = f"no volume for claim {claim.key} of class {claim.storage_class} can be had here"
                failures.append(Failure(self.id, NO_VOLUME.text, detail=detail, term=claim.key))
            if code & 4 and claim.bound and volume is None:
                detail = f"claim {claim.key} is bound to {claim.volume}, which does not exist"
                failures.append(Failure(self.id, GONE.text, detail=detail, term=claim.key))
        return failures


def _waits(claim: Claim, index: PlacementIndex) -> bool:
    """Whether the claim is bound only once its pod has a node; one that names a volume is not."""
    storage_class = index.storage.classes.get(claim.storage_class)
    return not claim.volume and storage_class is not None and storage_class.binding_mode == WAIT_FOR_FIRST_CONSUMER


def _fits(volume: Volume, index: PlacementIndex) -> Mask:
    mask = np.zeros(index.slots.capacity, np.bool_)
    mask[slots_reaching(volume, index)] = True
    return mask


def is_reachable(volume: Volume, slot: int, index: PlacementIndex) -> bool:
    """Whether the volume can be reached from this node."""
    return bool(_fits(volume, index)[slot])


def volumes_for(workload: Workload, slot: int, index: PlacementIndex) -> list[tuple[Claim, str]]:
    """Each waiting claim of the workload with the volume it gets on this node, "" for one that is yet to be made."""
    waiting = [claim for claim in claim_part(workload).known(index) if not claim.bound]
    return [
        (claim, volumes[number].name if (number := int(picks[slot])) >= 0 else "")
        for claim, volumes, picks in matched_volumes(waiting, index)
    ]


def _either(terms: tuple[NodeTerm, ...]) -> str:
    return " or ".join(str(term) for term in terms)


# RF merged from rules.volume_supply: Which volumes claims that wait for their pod would get, and where: one that is
# there, or one that can be made. Each claim takes the first volume that serves it and is not taken, the smallest
# claim first, as kube-scheduler's binder does; but for all targets at once.

NO_PROVISIONER = "kubernetes.io/no-provisioner"
NO_MATCH = -1

Chosen = tuple[Claim, Sequence[Volume], NDArray[np.int64]]


def can_bind(waiting: list[Claim], index: PlacementIndex) -> tuple[Mask, Mask]:
    """Where every waiting claim finds a volume of its own or one can be made for it; and where there is space too."""
    could, spacious = index.slots.alive.copy(), index.slots.alive.copy()
    for claim, _, volumes in matched_volumes(waiting, index):
        here = _where_selected(claim, index)
        provision = _can_provision(claim, index)
        could &= here & ((volumes != NO_MATCH) | provision)
        if claim.requested and _is_metered(claim, index):
            provision &= _has_space(claim, index)
        spacious &= here & ((volumes != NO_MATCH) | provision)
    return could, spacious


def matched_volumes(waiting: list[Claim], index: PlacementIndex) -> Iterator[Chosen]:
    """For each claim the volumes that may serve it, and for each target the number of the one it takes, or `NONE`."""
    taken: list[tuple[Sequence[Volume], NDArray[np.int64]]] = []
    for claim in sorted(waiting, key=lambda claim: claim.requested):
        # One that has been promised a node is about to have its volume made there.
        volumes = [] if claim.selected_node else _first_of_each_reach(_serving(claim, index), len(taken) + 1)
        choice = _choice(volumes, taken, index)
        taken.append((volumes, choice))
        yield claim, volumes, choice


def slots_reaching(volume: Volume, index: PlacementIndex) -> Slots:
    """Where the volume can be reached; only labels are looked at, and a volume without terms is anywhere."""
    if volume.required is None:
        return np.flatnonzero(index.slots.alive)
    terms = tuple(NodeTerm(term.expressions) for term in volume.required)
    if len(terms) == 1 and len(terms[0].expressions) == 1 and terms[0].expressions[0].operator == "In":
        (requirement,) = terms[0].expressions
        return _having(requirement.key, requirement.values, index)
    return np.flatnonzero(node_affinity.matching_terms(terms, index))


def _choice(
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
    """Of those that can be reached from the same targets only as many as may be taken before."""
    seen: Counter[tuple[NodeTerm, ...] | None] = Counter()
    found = []
    for volume in volumes:
        seen[volume.required] += 1
        if seen[volume.required] <= most:
            found.append(volume)
    return found


def _serving(claim: Claim, index: PlacementIndex) -> list[Volume]:
    """The volumes that would serve the claim: those reserved for it or else the others, smallest first."""
    reserved = [v for v in index.storage.reserved_for(claim) if v.claim_uid in ("", claim.uid)]
    if reserved:
        return reserved
    volumes = [v for v in index.storage.unclaimed(claim.storage_class) if _serves(v, claim)]
    return sorted(volumes, key=lambda volume: volume.capacity)


def _serves(volume: Volume, claim: Claim) -> bool:
    return (
        volume.phase in ("Available", "")
        and not volume.terminating
        and volume.capacity >= claim.requested
        and volume.volume_mode == claim.volume_mode
        and set(claim.access_modes) <= set(volume.access_modes)
        and (claim.selector is None or labels.matches(claim.selector, volume.labels))
    )


# Volumes that are yet to be made


def _where_selected(claim: Claim, index: PlacementIndex) -> Mask:
    if not claim.selected_node:
        return index.slots.alive
    mask = np.zeros_like(index.slots.alive)
    slot = index.slots.by_name.get(claim.selected_node)
    if slot is not None:
        mask[slot] = True
    return mask


def _can_provision(claim: Claim, index: PlacementIndex) -> Mask:
    storage_class = index.storage.classes.get(claim.storage_class)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return np.zeros(index.slots.capacity, np.bool_)
    return _allowed(storage_class, index)


def _allowed(storage_class: StorageClass, index: PlacementIndex) -> Mask:
    """Where the class may make volumes: any of its topology terms, everywhere if it has none."""
    if not storage_class.allowed:
        return np.ones(index.slots.capacity, np.bool_)
    mask = np.zeros(index.slots.capacity, np.bool_)
    for term in storage_class.allowed:
        here = np.ones(index.slots.capacity, np.bool_)
        for key, values in term:
            has = np.zeros(index.slots.capacity, np.bool_)
            has[_having(key, values, index)] = True
            here &= has
        mask |= here
    return mask


def _is_metered(claim: Claim, index: PlacementIndex) -> bool:
    """Whether the driver that would make the volume tells what space it has left."""
    storage_class = index.storage.classes.get(claim.storage_class)
    return storage_class is not None and storage_class.provisioner in index.storage.metering_drivers


def _has_space(claim: Claim, index: PlacementIndex) -> Mask:
    """Where the driver says that a volume of this size can be had."""
    mask = np.zeros(index.slots.capacity, np.bool_)
    for space in index.storage.space_of_class(claim.storage_class):
        if space.topology is not None and space.largest is not None and space.largest >= claim.requested:
            mask[_selected(space.topology, index)] = True
    return mask


def _selected(topology: Selector, index: PlacementIndex) -> Slots:
    """The targets that a selector selects. Drivers name one zone or one node, so few are looked at one by one."""
    named = [requirement for requirement in topology.requirements if requirement.operator == IN]
    slots = min((_having(one.key, one.values, index) for one in named), key=len, default=None)
    if slots is None:
        slots = np.flatnonzero(index.slots.alive)
    if len(topology.requirements) == len(named) == 1:
        return slots
    at = index.slots.at
    return np.array([slot for slot in slots.tolist() if topology.matches(at(slot).labels)], np.intp)


def _having(key: str, values: tuple[str, ...], index: PlacementIndex) -> Slots:
    """The targets whose label has one of the values."""
    column = index.column(key)
    found = [column.slots_in(column.by_value[value]) for value in dict.fromkeys(values) if value in column.by_value]
    return found[0] if len(found) == 1 else np.concatenate(found or [np.zeros(0, np.intp)])
