"""
VolumeBinding: bound volumes must be reachable from the node, unbound claims must find or provision a volume there.

Each unbound claim takes the first matching volume that is not taken, the smallest claim first, as kube-scheduler's
binder does; but for all targets at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model import labels
from bayplan.model.kubernetes_versions import V1_37
from bayplan.model.labels import IN, Selector
from bayplan.model.node_selectors import NodeTerm
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, Scores, Slots, StatusCode
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload
from bayplan.rules import node_affinity
from bayplan.rules.evictions import EvictionEffect, Preemptor
from bayplan.rules.rule import Failure, LiftedBy
from bayplan.rules.volume_claims import CLAIM_AWAITED, CLAIM_MISSING, ClaimPart, ClaimRule, claim_part

LOST = Reason(
    "claim-lost",
    'persistentvolumeclaim "<name>" bound to non-existent persistentvolume "<volume>"',
    StatusCode.UNRESOLVABLE,
)
NOT_OWNED = Reason(
    "claim-not-owned", "PVC <claim> was not created for pod <pod> (pod is not owner)", StatusCode.UNRESOLVABLE
)
DELETED = Reason("claim-deleted", 'persistentvolumeclaim "<name>" is being deleted', StatusCode.UNRESOLVABLE)
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
    extends = ("preFilter", "filter", "preScore", "score")
    filter_needs_pre_filter = True
    default_weight = 1
    lifted_by = LiftedBy.TARGET
    documented = (
        DocumentedReason(
            CLAIM_MISSING,
            means=(
                "The pod mounts a PersistentVolumeClaim that is not in its namespace. For an ephemeral volume the text "
                "is `waiting for ephemeral volume controller to create the persistentvolumeclaim`."
            ),
            to_do="Create the claim, correct its name, or add its manifest with -f.",
        ),
        DocumentedReason(
            NOT_OWNED,
            means=(
                "The pod has an ephemeral volume, and a claim with the name that its claim would have exists already: "
                "it belongs to another pod or to none."
            ),
            to_do="Delete or rename that claim, or rename the pod or its volume.",
        ),
        DocumentedReason(
            UNBOUND,
            means=(
                "A claim of the pod has no volume yet, although its class binds immediately (volumeBindingMode: "
                "Immediate)."
            ),
            to_do=(
                "Find out why the claim is pending: kubectl describe pvc NAME. With a class that has "
                "WaitForFirstConsumer, the scheduler chooses the node first."
            ),
        ),
        DocumentedReason(
            LOST,
            means="The volume that the claim was bound to does not exist any more.",
            to_do="Restore the volume, or delete and recreate the claim; its data is lost with the volume.",
        ),
        DocumentedReason(
            DELETED,
            means="A claim of the pod is deleted. It is removed when no pod uses it, and new pods cannot use it.",
            to_do="Wait until the claim is removed, and create it again.",
        ),
        DocumentedReason(
            ELSEWHERE,
            means="A volume of the pod is accessible only from other nodes: a local disk, or a disk in another zone.",
            to_do="Free resources on the nodes that can access the volume, or move the data.",
        ),
        DocumentedReason(
            NO_VOLUME,
            means=(
                "A claim of the pod waits for its first consumer, and for this node there is no free volume of its "
                "class, size and access mode, and none can be provisioned."
            ),
            to_do=(
                "Create volumes that this node can access, or check the provisioner and allowedTopologies of the class."
            ),
        ),
        DocumentedReason(
            NO_SPACE,
            means=(
                "A claim of the pod waits for its first consumer, and the storage driver reports (CSIStorageCapacity) "
                "too little capacity for a volume of that size on this node."
            ),
            to_do="Free or add storage that the node can access, or request a smaller volume.",
        ),
        DocumentedReason(
            GONE,
            means="A claim of the pod is bound to a volume that does not exist.",
            to_do=(
                "Restore the volume, or delete and recreate the claim. If the input is a dump, include the "
                "PersistentVolumes."
            ),
        ),
    )

    def pre_filter(self, state: ClaimPart, index: PlacementIndex) -> Reason | None:
        found = _unusable_claim(state, index)
        if found is not None:
            return found
        # Only a claim whose class delays binding may be unbound, and only if it names no volume.
        for claim in state.known(index):
            storage_class = index.storage.classes.get(claim.storage_class)
            waits = storage_class is not None and storage_class.binding_mode == WAIT_FOR_FIRST_CONSUMER
            if not claim.bound and (claim.volume or not waits):
                return UNBOUND
        return None

    def reject(self, state: ClaimPart, index: PlacementIndex, at: At) -> Codes:
        """Bits: a bound volume is elsewhere, an unbound claim finds none, a bound volume does not exist, no space."""
        codes = np.zeros(index.slots.capacity, np.int64)
        unbound = []
        for claim in state.known(index):
            if not claim.bound:
                unbound.append(claim)
                continue
            volume = index.storage.volumes.get(claim.volume)
            # Of the bound volumes, the first that cannot be used gives the reason.
            if volume is None:
                codes[codes == 0] = 4
            elif volume.required is not None:
                codes[(codes == 0) & ~_reachable_mask(volume, index)] = 1
        if unbound:
            codes |= unbound_codes(unbound, index)
        return codes[at]

    def score(self, state: ClaimPart, index: PlacementIndex, at: At) -> Scores | None:
        """Since 1.37: the less of the storage the claims would take, the higher, averaged over the classes."""
        if index.semantics.kubernetes_version < V1_37:
            return None
        unbound = [claim for claim in state.known(index) if not claim.bound]
        return storage_scores(unbound, index)[at] if unbound else None

    def reasons(self, state: ClaimPart, code: int) -> tuple[Reason, ...]:
        del state
        return tuple(reason for bit, reason in BITS if code & bit)

    def evidence(self, state: ClaimPart, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        code = int(self.reject(state, index, np.array([slot]))[0])
        failures = []
        for claim in state.known(index):
            volume = index.storage.volumes.get(claim.volume)
            if (
                code & 1
                and volume is not None
                and volume.required is not None
                and not _reachable_mask(volume, index)[slot]
            ):
                terms = " or ".join(str(term) for term in volume.required)
                detail = f"claim {claim.key} is bound to {volume.name}, which requires {terms}"
                failures.append(Failure(self.id, ELSEWHERE.text, detail=detail, term=claim.key))
            if code & 2 and not claim.bound:
                detail = f"no volume for claim {claim.key} of class {claim.storage_class} is available here"
                failures.append(Failure(self.id, NO_VOLUME.text, detail=detail, term=claim.key))
            if code & 4 and claim.bound and volume is None:
                detail = f"claim {claim.key} is bound to {claim.volume}, which does not exist"
                failures.append(Failure(self.id, GONE.text, detail=detail, term=claim.key))
        return failures

    def eviction_effect(self, state: ClaimPart, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        """The rule depends on volumes, not on the pods that use them."""
        del state, preemptor
        return EvictionEffect(codes)


def _unusable_claim(part: ClaimPart, index: PlacementIndex) -> Reason | None:
    """Why no node is possible: the first claim that does not exist, is lost or deleted, or belongs to another pod."""
    for name in part.names.names:
        claim, is_ephemeral = index.storage.claims.get(f"{part.namespace}/{name}"), name in part.names.ephemeral
        if claim is None:
            return (CLAIM_AWAITED if is_ephemeral else CLAIM_MISSING).filled(name=name)
        if claim.lost:
            return LOST.filled(name=claim.name, volume=claim.volume)
        if claim.terminating:
            return DELETED.filled(name=claim.name)
        if is_ephemeral and not part.names.owns(claim):
            return NOT_OWNED.filled(claim=claim.key, pod=f"{part.namespace}/{part.names.pod[0]}")
    return None


def _reachable_mask(volume: Volume, index: PlacementIndex) -> Mask:
    mask = np.zeros(index.slots.capacity, np.bool_)
    mask[slots_reaching(volume, index)] = True
    return mask


def is_reachable(volume: Volume, slot: int, index: PlacementIndex) -> bool:
    """Whether the volume can be reached from this node."""
    return bool(_reachable_mask(volume, index)[slot])


def volumes_for(workload: Workload, slot: int, index: PlacementIndex) -> list[tuple[Claim, str]]:
    """Each unbound claim of the workload with the volume that it gets on this node, "" for one to be provisioned."""
    unbound = [claim for claim in claim_part(workload).known(index) if not claim.bound]
    return [
        (claim, volumes[number].name if (number := int(picks[slot])) >= 0 else "")
        for claim, volumes, picks in matched_volumes(unbound, index)
    ]


# Matching volumes to unbound claims

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


def storage_scores(unbound: list[Claim], index: PlacementIndex) -> Scores:
    """100 where the claims take nothing of the volumes or of the capacity of their classes, 0 where they take all."""
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
        total += np.where(here, 100 - share, 0)
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
    """The targets that reach the volume, by label requirements only; a volume without terms is reached from all."""
    if volume.required is None:
        return np.flatnonzero(index.slots.alive)
    terms = tuple(NodeTerm(term.expressions) for term in volume.required)
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
