"""
Pods that no rule tells apart, asleep: what is against each node for them, and whether a change may have helped.

Asks the engine nothing; that costs a decision, and this says when it is worth one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bayplan.engine.filtering import RuleResult, Verdicts
from bayplan.indexing.capacity import PODS
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing.pending_pod import PendingPod
from bayplan.rules import resources_fit
from bayplan.rules.volume_claims import claim_part, has_claims, is_affected
from bayplan.rules.volume_limits import VolumeLimits

# What a rule's refusal of a node hangs on.
ROOM, NODE, PEERS = 1, 2, 4
LIFTED_BY_DEPARTURE = {"NodeResourcesFit", "NodePorts", "NodeVolumeLimits"}
LIFTED_BY_PEERS = {"InterPodAffinity", "PodTopologySpread", "VolumeRestrictions"}
MOST_HEARD = 4096
NOTHING_MORE: Mapping[str, int] = {}


class UnschedulableClass:
    """Pods that no rule tells apart, and what is against each node for them."""

    __slots__ = ("heard", "held_by", "lacks_attachments", "members", "outdated", "peers")

    def __init__(self) -> None:
        self.members: dict[WorkloadKey, PendingPod] = {}
        self.held_by: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.peers: list[RuleResult] = []
        self.heard: dict[tuple[int, bool, bool], bool] = {}  # whether comings and goings of like pods matter here
        self.lacks_attachments = False  # on some node no more volumes can be attached for them
        self.outdated = False  # one of them was woken: what was against nodes is no longer so

    @property
    def sample(self) -> PendingPod:
        return next(iter(self.members.values()))

    def judge(self, verdicts: Verdicts, index: PlacementIndex) -> None:
        """Remember what the rules said, and who of them listens to other pods."""
        self.held_by = np.zeros(index.slots.capacity, np.uint8)
        for one in verdicts.results:
            rejected = one.rejected()
            if one.rule.name == VolumeLimits.name:
                self.lacks_attachments = rejected is not None and bool(rejected.any())
            if rejected is not None:
                self.held_by[rejected] |= _hangs_on(one.rule.name)
        # Where no rule is against it, promises to others are, and these may be kept with more room.
        self.held_by[verdicts.feasible] |= ROOM
        self.peers = [one for one in verdicts.results if one.rule.name in LIFTED_BY_PEERS]
        self.heard.clear()
        self.outdated = False

    def may_be_helped(self, change: Change, index: PlacementIndex) -> bool:
        """Whether a change may give one of them a place, or let others make it one."""
        match change.type:
            case ChangeType.WORKLOAD_ADDED:
                return self._has_a_part(change, index) or self._brings_volumes(change, index)
            case ChangeType.WORKLOAD_REMOVED:
                return self._makes_room(change, index) or self._has_a_part(change, index)
            case ChangeType.STORAGE_CHANGED:
                return self._is_served(change, index)
            case _:  # nodes and namespaces: rare, and any of them may matter
                return True

    def _makes_room(self, change: Change, index: PlacementIndex) -> bool:
        """Whether a pod left a node that is refused for want of room, and there is enough of it now or can be made."""
        assert change.workload is not None
        workload = self.sample.workload
        # One that is less important could have been asked to go before: nothing can be made now that could not then.
        more_can_be_made = workload.preempts and change.workload.priority >= workload.priority
        for slot in change.slots:
            held_by = int(self.held_by[slot]) if slot < len(self.held_by) else NODE
            if held_by & ROOM and not held_by & NODE:
                lesser = _held_by_lesser(workload, slot, index) if more_can_be_made else NOTHING_MORE
                if has_room(workload, slot, index, lesser):
                    return True
        return False

    def _is_served(self, change: Change, index: PlacementIndex) -> bool:
        """Whether their claims may be better off, or fewer volumes of others be attached."""
        part = claim_part(self.sample.workload)
        return bool(part.names.names) and (self.lacks_attachments or is_affected(part, change, index))

    def _brings_volumes(self, change: Change, index: PlacementIndex) -> bool:
        """Whether a pod came that has a volume attached which they want too."""
        if not self.lacks_attachments or change.workload is None or not has_claims(change.workload):
            return False
        wanted = {index.storage.handle_of(claim) for claim in claim_part(self.sample.workload).claims()} - {None}
        return any(index.storage.handle_of(claim) in wanted for claim in claim_part(change.workload).claims())

    def _has_a_part(self, change: Change, index: PlacementIndex) -> bool:
        """Whether the pod that came or went counts for a rule that listens to others."""
        cls = change.member_of
        if cls is None or change.workload is None or not self.peers:
            return False
        # Of a pod the rules read no more than this; it may also be on no node that we know.
        alike = (cls.id, bool(change.slots), bool(change.workload.needs.claims.names))
        heard = self.heard.get(alike)
        if heard is None:
            if len(self.heard) == MOST_HEARD:
                self.heard.clear()
            heard = any(one.rule.touched(one.state, change, index) is not None for one in self.peers)
            self.heard[alike] = heard
        return heard


def _hangs_on(rule: str) -> int:
    if rule in LIFTED_BY_DEPARTURE:
        return ROOM
    return PEERS if rule in LIFTED_BY_PEERS else NODE


def has_room(workload: Workload, slot: int, index: PlacementIndex, more: Mapping[str, int] = NOTHING_MORE) -> bool:
    """Whether a node has what a pod asks for, with `more` than is free now; what a profile may ignore it may lack."""
    capacity = index.capacity
    for resource, amount in ((PODS, 1), *workload.needs.requests.amounts):
        row = capacity.row(resource)
        free = capacity.allocatable_at[row][slot] - capacity.requested_at[row][slot]
        # Who asks for nothing of it fits, though others may have been given more than there is.
        if amount and amount > free + more.get(resource, 0) and not resources_fit.may_be_ignored(resource):
            return False
    return True


def _held_by_lesser(workload: Workload, slot: int, index: PlacementIndex) -> Mapping[str, int]:
    """What the less important pods on a node hold."""
    held: Counter[str] = Counter()
    for key in index.workloads_on(slot):
        other = index.records[key].workload
        if other.priority < workload.priority:
            held[PODS] += 1
            held.update(dict(other.needs.requests.amounts))
    return held
