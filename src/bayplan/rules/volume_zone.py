"""VolumeZone: a pod must run in the zones and regions that its volumes are labelled with."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, StatusCode
from bayplan.model.terms import REGION, ZONE
from bayplan.model.workloads import Workload
from bayplan.rules.evictions import EvictionEffect, Preemptor
from bayplan.rules.rule import Failure, LiftedBy
from bayplan.rules.volume_binding import WAIT_FOR_FIRST_CONSUMER
from bayplan.rules.volume_claims import ClaimPart, ClaimRule, missing_claim

ELSEWHERE = Reason("volume-zone", "node(s) had no available volume zone", StatusCode.UNRESOLVABLE)
VOLUME_MISSING = Reason("volume-missing", 'persistentvolume "<name>" not found', StatusCode.UNRESOLVABLE)
CLAIM_UNNAMED = Reason(
    "claim-unnamed", "PersistentVolumeClaim had no pv name and storageClass name", StatusCode.UNRESOLVABLE
)
CLASS_MISSING = Reason("class-missing", 'storageclass.storage.k8s.io "<name>" not found', StatusCode.UNRESOLVABLE)
CLASS_UNCLEAR = Reason("class-unclear", 'VolumeBindingMode not set for StorageClass "<name>"', StatusCode.UNRESOLVABLE)
VOLUME_UNNAMED = Reason("volume-unnamed", "PersistentVolume had no name", StatusCode.UNRESOLVABLE)

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
CURRENT_NAME = {OLD_ZONE: ZONE, OLD_REGION: REGION}
TOPOLOGY_LABELS = (OLD_ZONE, OLD_REGION, ZONE, REGION)
SEPARATOR = "__"  # a volume in several zones names them all in one label


class VolumeZone(ClaimRule):
    name = "VolumeZone"
    id = "volume-zone"
    extends = ("preFilter", "filter")
    lifted_by = LiftedBy.TARGET
    reasons_by_code = (ELSEWHERE,)
    documented = (
        DocumentedReason(
            ELSEWHERE,
            means="A volume of the pod has a zone or region label that the node does not have.",
            to_do="Free resources in the volume's zone, or move the data.",
        ),
        DocumentedReason(
            VOLUME_MISSING,
            means="The volume that a claim names does not exist.",
            to_do="Restore the volume, or recreate the claim. If the input is a dump, include the PersistentVolumes.",
        ),
        DocumentedReason(
            CLAIM_UNNAMED,
            means="The claim has neither a volume nor a storage class to provision one.",
            to_do="Set storageClassName, or mark one class as the default.",
        ),
        DocumentedReason(
            CLASS_MISSING,
            means="The storage class that a claim names does not exist.",
            to_do="Create the class or correct its name. If the input is a dump, include the StorageClasses.",
        ),
        DocumentedReason(
            CLASS_UNCLEAR,
            means="The storage class has no volumeBindingMode. API servers set a default, so the class is from a file.",
            to_do="Set volumeBindingMode: Immediate or WaitForFirstConsumer.",
        ),
        DocumentedReason(
            VOLUME_UNNAMED,
            means="The class of the claim binds immediately, but the claim has no volume.",
            to_do="Find out why the claim is pending: kubectl describe pvc NAME.",
        ),
    )

    def pre_filter(self, state: ClaimPart, index: PlacementIndex) -> Reason | None:
        missing = missing_claim(state, index)
        if missing is not None:
            return missing
        for claim in state.named().known(index):
            if claim.volume:
                if claim.volume not in index.storage.volumes:
                    return VOLUME_MISSING.filled(name=claim.volume)
                continue
            if not claim.storage_class:
                return CLAIM_UNNAMED
            storage_class = index.storage.classes.get(claim.storage_class)
            if storage_class is None:
                return CLASS_MISSING.filled(name=claim.storage_class)
            if storage_class.binding_mode is None:
                return CLASS_UNCLEAR.filled(name=claim.storage_class)
            if storage_class.binding_mode != WAIT_FOR_FIRST_CONSUMER:
                return VOLUME_UNNAMED
        return None

    def reject(self, state: ClaimPart, index: PlacementIndex, at: At) -> Codes | None:
        required = _zones(state, index)
        if not required:
            return None
        labelled = np.zeros(index.slots.capacity, np.bool_)
        for key in TOPOLOGY_LABELS:
            labelled |= index.column(key).present(ALL)
        allowed = np.ones(index.slots.capacity, np.bool_)
        for _, key, values in required:
            allowed &= _in(key, values, index)
        # A node without any topology label passes: kube-scheduler supports clusters of a single zone.
        return np.where(labelled & ~allowed, 1, 0)[at]

    def evidence(self, state: ClaimPart, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        return [
            Failure(self.id, ELSEWHERE.text, detail=f"the volume of {claim} is in {key}={'|'.join(values)}", term=claim)
            for claim, key, values in _zones(state, index)
            if not _in(key, values, index)[slot]
        ]

    def eviction_effect(self, state: ClaimPart, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        """The rule depends on volumes, not on the pods that use them."""
        del state, preemptor
        return EvictionEffect(codes)


def _zones(state: ClaimPart, index: PlacementIndex) -> list[tuple[str, str, tuple[str, ...]]]:
    """(claim, label key, allowed values) for each topology label of each bound volume."""
    bound = [(claim, index.storage.volumes.get(claim.volume)) for claim in state.named().known(index)]
    return [
        (claim.key, key, tuple(volume.labels[key].split(SEPARATOR)))
        for claim, volume in bound
        for key in TOPOLOGY_LABELS
        if volume is not None and key in volume.labels
    ]


def _in(key: str, values: tuple[str, ...], index: PlacementIndex) -> Mask:
    """Which targets have one of the values, under the given or the current name of the label."""
    column = index.column(key)
    mask = _has(key, values, index)
    current = CURRENT_NAME.get(key)
    if current is not None:
        mask |= ~column.present(ALL) & _has(current, values, index)
    return mask


def _has(key: str, values: tuple[str, ...], index: PlacementIndex) -> Mask:
    column = index.column(key)
    listed = np.zeros(column.n_domains, np.int64)
    listed[[column.by_value[value] for value in values if value in column.by_value]] = 1
    return column.gather(listed, ALL) > 0
