"""VolumeBinding: bound volumes tie a pod to nodes, waiting claims to nodes where a volume can be had."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.model import labels
from bayplan.model.decisions import Codes, Mask, Reason, Status
from bayplan.model.node_selectors import NodeTerm
from bayplan.model.volumes import Claim, StorageClass, Volume
from bayplan.model.workloads import Workload
from bayplan.rules import node_affinity
from bayplan.rules.claims import ClaimRule, Part, missing_claim, part_of
from bayplan.rules.rule import Failure

UNBOUND = Reason("claim-unbound", "pod has unbound immediate PersistentVolumeClaims", Status.UNRESOLVABLE)
ELSEWHERE = Reason("volume-elsewhere", "node(s) didn't match PersistentVolume's node affinity", Status.UNRESOLVABLE)
NO_VOLUME = Reason("volume-none", "node(s) didn't find available persistent volumes to bind", Status.UNRESOLVABLE)
GONE = Reason(
    "volume-gone",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    Status.UNRESOLVABLE,
)
NO_SPACE = Reason("volume-space", "node(s) did not have enough free storage", Status.UNRESOLVABLE)
BITS = ((1, ELSEWHERE), (2, NO_VOLUME), (4, GONE), (8, NO_SPACE))
WAITS = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class VolumeBinding(ClaimRule):
    name = "VolumeBinding"
    id = "volume-binding"

    def refuse(self, plan: Part, index: PlacementIndex) -> Reason | None:
        missing = missing_claim(plan, index)
        if missing is not None:
            return missing
        for claim in plan.known(index):
            if claim.lost:
                text = f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
                return Reason("claim-lost", text, Status.UNRESOLVABLE)
            if claim.terminating:
                text = f'persistentvolumeclaim "{claim.name}" is being deleted'
                return Reason("claim-deleted", text, Status.UNRESOLVABLE)
        immediate = any(not claim.bound and not _waits(claim, index) for claim in plan.known(index))
        return UNBOUND if immediate else None

    def reject(self, plan: Part, index: PlacementIndex, at: At) -> Codes:
        """Bits: a bound volume is elsewhere, a waiting claim finds none, a bound volume is gone."""
        codes = np.zeros(index.slots.capacity, np.int64)
        waiting = []
        for claim in plan.known(index):
            if not claim.bound:
                waiting.append(claim)
                continue
            volume = index.storage.volumes.get(claim.volume)
            if volume is None:
                codes |= 4
            elif volume.required is not None:
                codes |= np.where(_fits(volume, index), 0, 1)
        if waiting:
            could = _can_bind(waiting, index, spacious=False)
            codes |= np.where(could, 0, 2)
            if _is_metered(waiting, index):
                codes |= np.where(could & ~_can_bind(waiting, index), 8, 0)
        # A volume that is gone is the whole answer: nothing else is looked at.
        return np.where(codes & 4, 4, codes)[at]

    def reasons(self, plan: Part, code: int) -> tuple[Reason, ...]:
        del plan
        return tuple(reason for bit, reason in BITS if code & bit)

    def evidence(self, plan: Part, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        code = int(self.reject(plan, index, np.array([slot]))[0])
        failures = []
        for claim in plan.known(index):
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
    return not claim.volume and storage_class is not None and storage_class.binding_mode == WAITS


def _fits(volume: Volume, index: PlacementIndex) -> Mask:
    """Where the volume can be reached; only labels are looked at, and a volume without terms is anywhere."""
    if volume.required is None:
        return np.ones(index.slots.capacity, np.bool_)
    terms = tuple(NodeTerm(term.expressions) for term in volume.required)
    return node_affinity.matching_terms(terms, index)


def reaches(volume: Volume, slot: int, index: PlacementIndex) -> bool:
    """Whether the volume can be reached from this node."""
    return bool(_fits(volume, index)[slot])


def _can_bind(waiting: list[Claim], index: PlacementIndex, *, spacious: bool = True) -> Mask:
    """Where every waiting claim finds a volume of its own or one can be made for it; `spacious`: there is space too."""
    mask = index.slots.alive.copy()
    offers = _offers_for(waiting, index, spacious=spacious)
    for slot in np.flatnonzero(mask).tolist():
        mask[slot] = _assigned(offers, slot, index) is not None
    return mask


def volumes_for(workload: Workload, slot: int, index: PlacementIndex) -> list[tuple[Claim, str]]:
    """Each waiting claim of the workload with the volume it gets on this node, "" for one that is yet to be made."""
    waiting = [claim for claim in part_of(workload).known(index) if not claim.bound]
    assigned = _assigned(_offers_for(waiting, index), slot, index)
    assert assigned is not None, "asked only where the rule lets the workload go"
    return assigned


Offers = list[tuple[Claim, list[tuple[Volume, Mask]], Mask]]  # claim, volumes and where, where one can be made


def _offers_for(waiting: list[Claim], index: PlacementIndex, *, spacious: bool = True) -> Offers:
    return [
        (claim, _offers(claim, index), _can_provision(claim, index, spacious=spacious))
        for claim in _smallest_first(waiting)
    ]


def _assigned(offers: Offers, slot: int, index: PlacementIndex) -> list[tuple[Claim, str]] | None:
    """A volume for each claim, none twice; None if one of them has to go without."""
    assigned: list[tuple[Claim, str]] = []
    taken: set[str] = set()
    for claim, volumes, provision in offers:
        if claim.selected_node and claim.selected_node != index.slots.at(slot).name:
            return None
        found = next((v.name for v, fits in volumes if v.name not in taken and fits[slot]), None)
        if found is not None and not claim.selected_node:
            taken.add(found)
            assigned.append((claim, found))
        elif provision[slot]:
            assigned.append((claim, ""))
        else:
            return None
    return assigned


def _smallest_first(claims: list[Claim]) -> list[Claim]:
    return sorted(claims, key=lambda claim: claim.requested)


def _offers(claim: Claim, index: PlacementIndex) -> list[tuple[Volume, Mask]]:
    """The volumes that would serve the claim, smallest first, and where each can be reached."""
    volumes = [v for v in index.storage.volumes_of_class(claim.storage_class) if _serves(v, claim)]
    reserved = [v for v in volumes if v.claim]
    return [(v, _fits(v, index)) for v in (reserved or sorted(volumes, key=lambda v: v.capacity))]


def _serves(volume: Volume, claim: Claim) -> bool:
    if volume.claim:
        return volume.claim == claim.key and volume.claim_uid in ("", claim.uid)
    return (
        volume.phase in ("Available", "")
        and not volume.terminating
        and volume.capacity >= claim.requested
        and volume.volume_mode == claim.volume_mode
        and set(claim.access_modes) <= set(volume.access_modes)
        and (claim.selector is None or labels.matches(claim.selector, volume.labels))
    )


def _can_provision(claim: Claim, index: PlacementIndex, *, spacious: bool) -> Mask:
    storage_class = index.storage.classes.get(claim.storage_class)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return np.zeros(index.slots.capacity, np.bool_)
    allowed = _allowed(storage_class, index)
    if spacious and claim.requested and storage_class.provisioner in index.storage.metering_drivers:
        allowed &= _has_space(claim, index)
    return allowed


def _is_metered(waiting: list[Claim], index: PlacementIndex) -> bool:
    """Whether a driver of one of the claims tells what space it has left."""
    classes = (index.storage.classes.get(claim.storage_class) for claim in waiting)
    return any(found is not None and found.provisioner in index.storage.metering_drivers for found in classes)


def _has_space(claim: Claim, index: PlacementIndex) -> Mask:
    """Where the driver says that a volume of this size can be had."""
    mask = np.zeros(index.slots.capacity, np.bool_)
    for space in index.storage.space.values():
        enough = space.largest is not None and space.largest >= claim.requested
        if space.storage_class == claim.storage_class and space.topology is not None and enough:
            for slot in index.slots.by_name.values():
                mask[slot] |= space.topology.matches(index.slots.at(slot).labels)
    return mask


def _allowed(storage_class: StorageClass, index: PlacementIndex) -> Mask:
    """Where the class may make volumes: any of its topology terms, everywhere if it has none."""
    if not storage_class.allowed:
        return np.ones(index.slots.capacity, np.bool_)
    mask = np.zeros(index.slots.capacity, np.bool_)
    for term in storage_class.allowed:
        here = np.ones(index.slots.capacity, np.bool_)
        for key, values in term:
            column = index.column(key)
            wanted = np.zeros(column.n_domains, np.int64)
            wanted[[column.by_value[value] for value in values if value in column.by_value]] = 1
            here &= column.gather(wanted, ALL) > 0
        mask |= here
    return mask


def _either(terms: tuple[NodeTerm, ...]) -> str:
    return " or ".join(str(term) for term in terms)
