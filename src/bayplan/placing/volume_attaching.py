"""
Whether the volumes of a placed pod can be attached to its node while other pods use them elsewhere.

The scheduler does not ask: it places a pod beside or away from the pod that has its volume. But a volume that only one
node may use is attached to a second one only after the first has let it go
(pkg/controller/volume/attachdetach/reconciler). So a rollout that waits for such a pod before it deletes the old one
waits for ever. Volumes that no CSI driver attaches are not known here.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import WorkloadKey
from bayplan.rules import volume_claims

_ONE_NODE = frozenset(("ReadWriteOnce", "ReadWriteOncePod"))
ATTACHED = "its volume of claim {} is attached to {} for {}, and only one node may use it"
NOT_KNOWN = "its volume of claim {} may have to be detached first (CSIDriver {} is not in the input): {} uses it on {}"


class VolumeAttaching(msgspec.Struct, frozen=True):
    """
    Which CSI drivers attach volumes: all but those of which `attaches` is false.

    If the drivers are `known`, one that is missing attaches; else nothing is known of it.
    """

    attaches: Mapping[str, bool] = {}
    known: bool = True

    def obstacle(self, key: WorkloadKey, index: PlacementIndex, waiting: Container[WorkloadKey]) -> tuple[str, bool]:
        """
        What keeps a placed pod from starting, empty if nothing does, and whether that is certain.

        Pods that are `waiting` for volumes have none attached.
        """
        placed = index.records[key]
        for claim in volume_claims.claim_part(placed.workload).claims():
            handle = index.storage.handle_of(claim)
            if handle is None or not self.attaches.get(handle.driver, True) or not _serves_one_node(claim, index):
                continue
            for user in sorted(index.claim_users.users(claim)):
                other = index.records[WorkloadKey(user)]
                if other.shares == placed.shares or other.key in waiting:
                    continue
                node = other.shares[0][0]
                if handle.driver not in self.attaches and not self.known:
                    return NOT_KNOWN.format(claim, handle.driver, user, node), False
                return ATTACHED.format(claim, node, user), True
        return "", True


def _serves_one_node(claim: str, index: PlacementIndex) -> bool:
    """Whether no two nodes may use the volume of a claim at once (isMultiAttachForbidden)."""
    found = index.storage.claims[claim]
    volume = index.storage.volumes.get(found.volume)
    modes = found.access_modes if volume is None else volume.access_modes
    return bool(modes) and _ONE_NODE.issuperset(modes)
