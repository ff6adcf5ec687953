"""
Which pods that are being deleted leave their nodes.

A kubelet that can be reached ends the containers of a pod, and the pod is gone. On an unreachable node nothing happens:
the pod stays, with what it requests and under its name, and no new pod starts there either. Pods of a node that is out
of service are collected (pkg/controller/podgc). Knows no grace periods and no finalizers.
"""

from __future__ import annotations

from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.placement_index import PlacementIndex

UNREACHABLE, OUT_OF_SERVICE = "node.kubernetes.io/unreachable", "node.kubernetes.io/out-of-service"
# A controller of another kind may create the pod again on its node or under its name, once it is gone.
_REPLACED_BEFORE = frozenset(("ReplicaSet", "ReplicationController", "Job"))
STAYS = "it is not deleted, because its node {} is unreachable"
CANNOT_START = "its node {} is unreachable"


def is_unreachable(node: str, index: PlacementIndex) -> bool:
    """Whether the kubelet of a node does not answer, so that its pods neither start nor leave."""
    slot = index.slots.by_name.get(node)
    if slot is None:
        return False  # pods of a node that is gone are collected
    keys = {taint.key for taint in index.slots.at(slot).taints}
    return UNREACHABLE in keys and OUT_OF_SERVICE not in keys


def makes_room(placed: PlacedWorkload, index: PlacementIndex) -> bool:
    """Whether a pod that is being deleted leaves its node, and no pod comes for it that does not exist yet."""
    owner = placed.workload.controller
    if owner is not None and owner.kind not in _REPLACED_BEFORE:
        return False
    return not is_unreachable(placed.shares[0][0], index)
