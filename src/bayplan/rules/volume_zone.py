"""VolumeZone: a pod must run in the zones and regions that its volumes are labelled with."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.model.reasons import Codes, Mask, Reason, StatusCode
from bayplan.model.terms import REGION, ZONE
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure
from bayplan.rules.volume_binding import WAIT_FOR_FIRST_CONSUMER
from bayplan.rules.volume_claims import ClaimPart, ClaimRule, missing_claim

ELSEWHERE = Reason("volume-zone", "node(s) had no available volume zone", StatusCode.UNRESOLVABLE)
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
CURRENT_NAME = {OLD_ZONE: ZONE, OLD_REGION: REGION}
TOPOLOGY_LABELS = (OLD_ZONE, OLD_REGION, ZONE, REGION)
SEPARATOR = "__"  # a volume in several zones names them all in one label


class VolumeZone(ClaimRule):
    name = "VolumeZone"
    id = "volume-zone"
    reasons_by_code = (ELSEWHERE,)

    def pre_filter(self, state: ClaimPart, index: PlacementIndex) -> Reason | None:
        missing = missing_claim(state, index)
        if missing is not None:
            return missing
        for claim in state.known(index):
            if claim.volume:
                if claim.volume not in index.storage.volumes:
                    return _unresolvable("volume-missing", f'persistentvolume "{claim.volume}" not found')
                continue
            if not claim.storage_class:
                return _unresolvable("claim-unnamed", "PersistentVolumeClaim had no pv name and storageClass name")
            storage_class = index.storage.classes.get(claim.storage_class)
            if storage_class is None:
                text = f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
                return _unresolvable("class-missing", text)
            if storage_class.binding_mode is None:
                text = f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'
                return _unresolvable("class-unclear", text)
            if storage_class.binding_mode != WAIT_FOR_FIRST_CONSUMER:
                return _unresolvable("volume-unnamed", "PersistentVolume had no name")
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


def _zones(state: ClaimPart, index: PlacementIndex) -> list[tuple[str, str, tuple[str, ...]]]:
    """(claim, label key, allowed values) for each topology label of each bound volume."""
    bound = [(claim, index.storage.volumes.get(claim.volume)) for claim in state.known(index)]
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


def _unresolvable(reason_id: str, text: str) -> Reason:
    return Reason(reason_id, text, StatusCode.UNRESOLVABLE)
