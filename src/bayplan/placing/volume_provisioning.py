"""
Volumes of which it is not known which nodes can use them.

A claim that is created with a class that provisions at once is bound by the time its pod is scheduled, to a volume that
does not exist yet: a driver may create it for one zone or for all nodes. A claim that a running pod uses is bound to a
volume, also if a state lacks one of them; and if it lacks all storage classes, a new claim has one nevertheless. The
pods of such claims are tried as if every node could use the volume, and are not judged. Claims of the state that are
not bound are left as they are: one that is pending has a reason to be.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import storage
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload
from bayplan.rules import volume_claims
from bayplan.rules.volume_binding import WAIT_FOR_FIRST_CONSUMER
from bayplan.wire.storage import PersistentVolumeClaim

NO_PROVISIONER = "kubernetes.io/no-provisioner"
NOT_KNOWN = "where the volume of its new claim {} is provisioned is not known"
NO_CLASSES = "the storage class of its new claim {} is not in the input"
NO_CLAIM = "its claim {} is not in the input"
NO_VOLUME = "the volume of its claim {} is not in the input"


class Provisioning(msgspec.Struct, frozen=True):
    """
    How the volumes of new claims are provisioned.

    `default_class` is the storage class of claims that name none. If the classes are not `known`, there are others than
    those of the input.
    """

    default_class: str = ""
    classes_known: bool = True

    def claim_of(self, written: PersistentVolumeClaim) -> Claim:
        """The claim with its class."""
        return storage.claim_of(written, self.default_class)

    def create(self, written: PersistentVolumeClaim, index: PlacementIndex) -> bool:
        """Add a claim that is created; whether a volume is added for it of which not all is known."""
        claim = self.claim_of(written)
        doubt = "" if claim.volume else self._doubt(claim, written, index)
        if doubt:
            claim = _bound(claim, doubt, index)
        index.set_claim(claim.key, claim)
        return bool(doubt)

    def _doubt(self, claim: Claim, written: PersistentVolumeClaim, index: PlacementIndex) -> str:
        storage_class = index.storage.classes.get(claim.storage_class)
        if storage_class is None:
            is_without_class = written.spec.storage_class_name == ""  # by its own words
            return "" if self.classes_known or is_without_class else NO_CLASSES
        is_provisioned = storage_class.provisioner not in ("", NO_PROVISIONER)
        return NOT_KNOWN if is_provisioned and storage_class.binding_mode != WAIT_FOR_FIRST_CONSUMER else ""


def assume_missing(
    running: Iterable[Workload], index: PlacementIndex, *, claims_known: bool, volumes_known: bool
) -> bool:
    """Add the claims that running pods use and the volumes that claims are bound to; whether any was missing."""
    found = False
    if not volumes_known:
        for claim in list(index.storage.claims.values()):
            if claim.bound and claim.volume not in index.storage.volumes:
                _bound(claim, NO_VOLUME, index)
                found = True
    if not claims_known:
        for workload in running:
            names = workload.needs.claims.named if workload.needs.claims else ()
            for key in (f"{workload.namespace}/{name}" for name in names):
                if key not in index.storage.claims:
                    index.set_claim(key, _bound(Claim(key=key), NO_CLAIM, index))
                    found = True
    return found


def _bound(claim: Claim, doubt: str, index: PlacementIndex) -> Claim:
    """The claim as it is bound to a volume that is added for it."""
    volume = Volume(
        name=claim.volume or f"for {claim.key}",  # no name that an API server accepts
        storage_class=claim.storage_class,
        capacity=claim.requested,
        access_modes=claim.access_modes,
        volume_mode=claim.volume_mode,
        claim=claim.key,
        driver=_driver_of(claim, index),
        handle=claim.key,
        doubt=doubt,
    )
    index.set_volume(volume.name, volume)
    return msgspec.structs.replace(claim, volume=volume.name, bound=True)


def _driver_of(claim: Claim, index: PlacementIndex) -> str:
    storage_class = index.storage.classes.get(claim.storage_class)
    return "" if storage_class is None else storage_class.provisioner


def doubt_about(workload: Workload, index: PlacementIndex) -> str:
    """Why it is not known whether the pod can be placed; empty if its volumes are known, or wait for its node."""
    for claim in volume_claims.claim_part(workload).known(index):
        volume = index.storage.volumes.get(claim.volume)
        if volume is not None and volume.doubt:
            return volume.doubt.format(claim.name)
    return ""
