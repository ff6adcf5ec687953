"""
VolumeBinding: bound volumes must be reachable from the node, unbound claims must find or provision a volume there.

Each unbound claim takes the first matching volume that is not taken, the smallest claim first, as kube-scheduler's
binder does; but for all targets at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.kubernetes_versions import V1_37
from bayplan.model.node_selectors import NodeTerm
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, Scores, StatusCode
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload
from bayplan.rules import utilization_shapes, volume_matching
from bayplan.rules.arguments import Arguments
from bayplan.rules.evictions import EvictionEffect, Preemptor
from bayplan.rules.rule import Failure, LiftedBy, Touched
from bayplan.rules.utilization_shapes import Shape
from bayplan.rules.volume_claims import CLAIM_AWAITED, CLAIM_MISSING, ClaimPart, ClaimRule, claim_part
from bayplan.validating.fields import Cause, Field
from bayplan.wire.scheduler_config import VolumeBindingArgs

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


class VolumeBindingArguments(Arguments, frozen=True):
    """VolumeBindingArgs: how the storage that claims would take is scored."""

    written_type = VolumeBindingArgs
    gated: ClassVar = {"shape": (V1_37, "StorageCapacityScoring")}
    shape: Shape = ((0, 100), (100, 0))

    @classmethod
    def validate(cls, written: Field) -> list[Cause]:
        timeout = written["bindTimeoutSeconds"]
        found = timeout.check_integer(0, None, "invalid BindTimeoutSeconds, should not be a negative value")
        return found + (utilization_shapes.validate(written["shape"]) if written["shape"].items() else [])

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        points = written.get("shape")
        return cls(utilization_shapes.read(points)) if points else cls()


class VolumeBinding(ClaimRule):
    name = "VolumeBinding"
    id = "volume-binding"
    extends = ("preFilter", "filter", "preScore", "score")
    filter_needs_pre_filter = True
    default_weight = 1
    arguments_type = VolumeBindingArguments
    arguments: VolumeBindingArguments
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
            elif _required(volume) is not None:
                codes[(codes == 0) & ~_reachable_mask(volume, index)] = 1
        if unbound:
            codes |= volume_matching.unbound_codes(unbound, index)
        return codes[at]

    def score(self, state: ClaimPart, index: PlacementIndex, at: At) -> Scores | None:
        """Since 1.37: the less of the storage the claims would take, the higher, averaged over the classes."""
        if index.semantics.kubernetes_version < V1_37:
            return None
        unbound = [claim for claim in state.known(index) if not claim.bound]
        if not unbound:
            return None
        table = np.array(utilization_shapes.scores(self.arguments.shape), np.int64)
        return volume_matching.storage_scores(unbound, table, index)[at]

    def touched(self, state: ClaimPart, change: Change, index: PlacementIndex) -> Touched:
        if change.type is not ChangeType.STORAGE_CHANGED or change.table != "attach_limits":
            return super().touched(state, change, index)
        slot = index.slots.by_name.get(change.name)
        volumes = (index.storage.volumes.get(claim.volume) for claim in state.known(index))
        taken_over = any(volume is not None and volume.taken_over for volume in volumes)
        return (slot,) if slot is not None and taken_over else None

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
                and _required(volume) is not None
                and not _reachable_mask(volume, index)[slot]
            ):
                terms = " or ".join(str(term) for term in _required(volume) or ())
                detail = f"claim {claim.key} is bound to {volume.name}, which requires {terms}"
                failures.append(Failure(self.id, ELSEWHERE.text, detail=detail, term=claim.key))
            if code & 2 and not claim.bound:
                whose = f"of class {claim.storage_class}" if claim.storage_class else "without a class"
                detail = f"no volume for claim {claim.key} {whose} is available here"
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


def _required(volume: Volume) -> tuple[NodeTerm, ...] | None:
    """What the volume requires of some node at least."""
    return volume.required if volume.required is not None else volume.required_by_driver


def _reachable_mask(volume: Volume, index: PlacementIndex) -> Mask:
    mask = np.zeros(index.slots.capacity, np.bool_)
    mask[volume_matching.slots_reaching(volume, index)] = True
    if volume.required_by_driver is not None and volume.required_by_driver != volume.required:
        by_name, limits = index.slots.by_name, index.storage.attach_limits
        there = [by_name[node] for node, found in limits.items() if volume.taken_over in found and node in by_name]
        mask[there] = np.isin(there, volume_matching.slots_meeting(volume.required_by_driver, index))
    return mask


def is_reachable(volume: Volume, slot: int, index: PlacementIndex) -> bool:
    """Whether the volume can be reached from this node."""
    return bool(_reachable_mask(volume, index)[slot])


def volumes_for(workload: Workload, slot: int, index: PlacementIndex) -> list[tuple[Claim, str]]:
    """Each unbound claim of the workload with the volume that it gets on this node, "" for one to be provisioned."""
    unbound = [claim for claim in claim_part(workload).known(index) if not claim.bound]
    return [
        (claim, volumes[number].name if (number := int(picks[slot])) >= 0 else "")
        for claim, volumes, picks in volume_matching.matched_volumes(unbound, index)
    ]
