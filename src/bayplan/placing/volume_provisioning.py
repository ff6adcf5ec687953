"""
Claims that are created and whose class provisions their volumes at once, before any pod is scheduled.

Such a claim is bound by the time its pod is scheduled, to a volume that does not exist yet: a driver may create it for
one zone or for all nodes. So its pod is tried as if every node could use the volume, and is not judged. Claims that run
already are left as they are: one that is pending has a reason to be.
"""

from __future__ import annotations

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload
from bayplan.rules import volume_claims
from bayplan.rules.volume_binding import WAIT_FOR_FIRST_CONSUMER

NO_PROVISIONER = "kubernetes.io/no-provisioner"
NOT_KNOWN = "where the volume of its new claim {} is provisioned is not known"


def create_claim(claim: Claim, index: PlacementIndex) -> None:
    """Add a claim that is created, with its volume if one is provisioned for it at once."""
    storage_class = index.storage.classes.get(claim.storage_class)
    if (
        not claim.volume
        and storage_class is not None
        and storage_class.binding_mode != WAIT_FOR_FIRST_CONSUMER
        and storage_class.provisioner not in ("", NO_PROVISIONER)
    ):
        volume = Volume(
            name=f"for {claim.key}",  # no name that an API server accepts
            storage_class=claim.storage_class,
            capacity=claim.requested,
            access_modes=claim.access_modes,
            volume_mode=claim.volume_mode,
            claim=claim.key,
            driver=storage_class.provisioner,
            handle=claim.key,
            assumed=True,
        )
        index.set_volume(volume.name, volume)
        claim = msgspec.structs.replace(claim, volume=volume.name, bound=True)
    index.set_claim(claim.key, claim)


def doubt_about(workload: Workload, index: PlacementIndex) -> str:
    """Why it is not known whether the pod can be placed; empty if its volumes exist, or wait for its node."""
    for claim in volume_claims.claim_part(workload).known(index):
        volume = index.storage.volumes.get(claim.volume)
        if volume is not None and volume.assumed:
            return NOT_KNOWN.format(claim.name)
    return ""
