"""
Unschedulable pods, grouped by equivalence class and retried when a change may make one of them schedulable.

The changes since the last call give each class a queueing hint: a pod removed from a node matters to classes that only
lack resources there, or whose terms match it; a change of a node matters to all. The classes with a hint are evaluated
by the engine, at the cost of one decision each. One pod of a class that is schedulable now, or that preemption can make
schedulable, is returned; the next one only after that one is placed or nominated. So no attempt is futile, and no
schedulable pod is missed. The caller limits the time of one call; the remaining classes are evaluated by the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.engine import equivalence
from bayplan.engine.evaluations import RuleResult
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.capacity import PODS
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing.scheduling_queue import PendingPod
from bayplan.rules import resources_fit
from bayplan.rules.volume_claims import claim_part, has_claims, is_affected
from bayplan.rules.volume_limits import VolumeLimits

MAX_REPLAYED_CHANGES = 256  # with more changes than this, evaluating every class is cheaper than reading them
MAX_NOMINATED_EVALUATIONS = 4  # nominated pods of a class that are evaluated without a check of resources
MAX_CACHED_PEER_HINTS = 4096

# What can lift the rejection of a node.
BY_RESOURCES, BY_NODE, BY_PEERS = 1, 2, 4
LIFTED_BY_RESOURCES = {"NodeResourcesFit", "NodePorts", "NodeVolumeLimits"}
LIFTED_BY_PEERS = {"InterPodAffinity", "PodTopologySpread", "VolumeRestrictions"}

NO_RESOURCES: Mapping[str, int] = {}
OutOfTime = Callable[[], bool]


class UnschedulableClass:
    """The unschedulable pods of one equivalence class, and what can lift the rejection of each node."""

    __slots__ = ("_lacks_attachments", "_lifted_by", "_peer_hints", "_peer_rules", "members", "outdated")

    def __init__(self) -> None:
        self.members: dict[WorkloadKey, PendingPod] = {}
        self.outdated = True  # the results of the rules are missing or no longer valid
        self._lifted_by: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._peer_rules: list[RuleResult] = []
        self._peer_hints: dict[tuple[int, bool, bool], bool] = {}  # whether equivalent placed pods matter here
        self._lacks_attachments = False  # some node cannot attach another volume

    @property
    def sample(self) -> PendingPod:
        return next(iter(self.members.values()))

    def record(self, verdicts: Verdicts, index: PlacementIndex) -> None:
        """Remember the results of the rules."""
        self._lifted_by = np.zeros(index.slots.capacity, np.uint8)
        for one in verdicts.results:
            name, rejected = one.rule.name, one.rejected()
            if name == VolumeLimits.name:
                self._lacks_attachments = rejected is not None and bool(rejected.any())
            if rejected is not None:
                lifted = (
                    BY_RESOURCES if name in LIFTED_BY_RESOURCES else BY_PEERS if name in LIFTED_BY_PEERS else BY_NODE
                )
                self._lifted_by[rejected] |= lifted
        # A node that no rule rejects is taken by nominated pods, for which more resources may suffice.
        self._lifted_by[verdicts.feasible] |= BY_RESOURCES
        self._peer_rules = [one for one in verdicts.results if one.rule.name in LIFTED_BY_PEERS]
        self._peer_hints.clear()
        self.outdated = False

    def queueing_hint(self, change: Change, index: PlacementIndex) -> bool:
        """Whether a change may make one of the pods schedulable, or make preemption for it possible."""
        match change.type:
            case ChangeType.WORKLOAD_ADDED:
                return self._affects_peer_rules(change, index) or self._shares_volume(change, index)
            case ChangeType.WORKLOAD_REMOVED:
                return self._frees_resources(change, index) or self._affects_peer_rules(change, index)
            case ChangeType.STORAGE_CHANGED:
                part = claim_part(self.sample.workload)
                return bool(part.names.names) and (self._lacks_attachments or is_affected(part, change, index))
            case _:  # nodes and namespaces: rare, and any of them may matter
                return True

    def _frees_resources(self, change: Change, index: PlacementIndex) -> bool:
        """Whether a pod was removed from a node that lacks resources, and they suffice now, or do after preemption."""
        assert change.workload is not None
        workload = self.sample.workload
        # A pod of lower priority could be preempted before: its removal makes nothing possible that was not.
        is_new_victim = workload.preempts and change.workload.priority >= workload.priority
        for slot in change.slots:
            lifted_by = int(self._lifted_by[slot]) if slot < len(self._lifted_by) else BY_NODE
            if lifted_by & BY_RESOURCES and not lifted_by & BY_NODE:
                preemptible = _requested_by_lower_priority(workload, slot, index) if is_new_victim else NO_RESOURCES
                if _fits_resources(workload, slot, index, preemptible):
                    return True
        return False

    def _shares_volume(self, change: Change, index: PlacementIndex) -> bool:
        """Whether a pod was added that has one of their volumes attached."""
        if not self._lacks_attachments or change.workload is None or not has_claims(change.workload):
            return False
        needed = {index.storage.handle_of(claim) for claim in claim_part(self.sample.workload).claims()} - {None}
        return any(index.storage.handle_of(claim) in needed for claim in claim_part(change.workload).claims())

    def _affects_peer_rules(self, change: Change, index: PlacementIndex) -> bool:
        """Whether the added or removed pod counts for a rule about other pods."""
        cls = change.member_of
        if cls is None or change.workload is None or not self._peer_rules:
            return False
        # The rules read nothing else of a pod; a pod without slots is on an unknown node.
        key = (cls.id, bool(change.slots), bool(change.workload.needs.claims.names))
        hint = self._peer_hints.get(key)
        if hint is None:
            if len(self._peer_hints) == MAX_CACHED_PEER_HINTS:
                self._peer_hints.clear()
            hint = any(one.rule.touched(one.evaluation.state, change, index) is not None for one in self._peer_rules)
            self._peer_hints[key] = hint
        return hint


def _fits_resources(
    workload: Workload, slot: int, index: PlacementIndex, more: Mapping[str, int] = NO_RESOURCES
) -> bool:
    """Whether the requests of a pod fit a node with `more` than is free; resources that a profile may ignore fit."""
    capacity = index.capacity
    for resource, amount in ((PODS, 1), *workload.needs.requests.amounts):
        row = capacity.row(resource)
        free = capacity.allocatable_at[row][slot] - capacity.requested_at[row][slot]
        # A request of 0 fits although the node may be overcommitted.
        if amount and amount > free + more.get(resource, 0) and not resources_fit.may_be_ignored(resource):
            return False
    return True


def _requested_by_lower_priority(workload: Workload, slot: int, index: PlacementIndex) -> Mapping[str, int]:
    """What the pods of lower priority on a node request."""
    requested: Counter[str] = Counter()
    for key in index.workloads_on(slot):
        other = index.records[key].workload
        if other.priority < workload.priority:
            requested[PODS] += 1
            requested.update(dict(other.needs.requests.amounts))
    return requested


class UnschedulablePods:
    """
    The unschedulable pods by equivalence class.

    `fits` evaluates whether a pod is schedulable now, and `filter_nodes` gives the verdicts of all rules for it.
    `preemptor` chooses the pod among equivalent ones that preemption can make schedulable. `nominated` are the
    nominated pods with their nodes: of a class, only they may use the resources there.
    """

    def __init__(
        self,
        index: PlacementIndex,
        fits: Callable[[Workload], bool],
        filter_nodes: Callable[[Workload], Verdicts],
        preemptor: Callable[[Mapping[WorkloadKey, PendingPod]], PendingPod | None] = lambda _equivalent: None,
        nominated: Callable[[], Sequence[tuple[Workload, str]]] = tuple,
    ) -> None:
        self._index = index
        self._fits = fits
        self._filter_nodes = filter_nodes
        self._preemptor = preemptor
        self._nominated = nominated
        self._classes: dict[Hashable, UnschedulableClass] = {}
        self._signature_of: dict[WorkloadKey, Hashable] = {}
        self._activated: dict[WorkloadKey, Hashable] = {}  # pods whose class waits for the result of their attempt
        self._position = index.journal.end
        self._generation = index.peer_index.generation
        self._for_retry: dict[Hashable, None] = {}  # classes with a hint, in this order
        self._for_sweep: dict[Hashable, None] = {}  # classes without one, which the sweep evaluates
        self.n_evaluations = 0  # for metrics and tests

    def __len__(self) -> int:
        return len(self._signature_of)

    def __contains__(self, key: WorkloadKey) -> bool:
        return key in self._signature_of

    def add(self, pending: PendingPod) -> None:
        """Add a pod for which no node is feasible."""
        if not self._classes:
            self._position = self._index.journal.end  # earlier changes concern no pod
        signature = self._signature(pending.workload)
        if self._activated.get(pending.key) == signature:
            del self._activated[pending.key]  # it is not schedulable after all, so no pod of its class is
        else:
            self._end_attempt(pending.key)
        members = self._classes.get(signature)
        if members is None:
            members = self._classes[signature] = UnschedulableClass()
        members.members[pending.key] = pending
        if members.outdated:
            members.record(self._filter_nodes(pending.workload), self._index)
        self._signature_of[pending.key] = signature

    def remove(self, key: WorkloadKey) -> None:
        """Remove a pod that is gone or has changed; if it was activated, the next of its class may be tried."""
        self._take(key)
        self._end_attempt(key)

    def _end_attempt(self, key: WorkloadKey) -> None:
        signature = self._activated.pop(key, None)
        if signature in self._classes:
            self._mark_for_retry(signature)

    def _take(self, key: WorkloadKey) -> None:
        signature = self._signature_of.pop(key, None)
        if signature is not None:
            members = self._classes[signature].members
            del members[key]
            if not members:
                del self._classes[signature]
                self._for_retry.pop(signature, None)
                self._for_sweep.pop(signature, None)

    def placed(self, workload: Workload) -> None:
        """Mark the class of a pod that is placed or nominated: the next one may be schedulable too."""
        self._end_attempt(workload.key)
        signature = self._signature(workload)
        if signature in self._classes:
            self._mark_for_retry(signature)

    def mark_all_for_retry(self) -> None:
        """Mark every class after an event that is no change of the index."""
        for signature in self._classes:
            self._mark_for_retry(signature)

    @property
    def has_candidates(self) -> bool:
        """Whether classes are left to be evaluated."""
        return bool(self._for_retry or self._for_sweep)

    def pop_schedulable(self, out_of_time: OutOfTime = lambda: False) -> list[PendingPod]:
        """Remove and return the pods that the changes since the last call have made schedulable."""
        if not self._classes:
            return []
        changes = self._index.journal.since(self._position)
        self._position = self._index.journal.end
        if self._generation != self._index.peer_index.generation:
            self._regroup()
        if changes is None or len(changes) > MAX_REPLAYED_CHANGES:
            self.mark_all_for_retry()
        else:
            for change in changes:
                self._mark_by_hint(change)
        return self._evaluate(self._for_retry, out_of_time)

    def mark_all_for_sweep(self) -> None:
        """Mark every class for the sweep."""
        self._for_sweep = {signature: None for signature in self._classes if signature not in self._for_retry}

    def sweep(self, out_of_time: OutOfTime = lambda: False) -> list[PendingPod]:
        """Remove and return the schedulable pods that no queueing hint has found: each one is a bug."""
        return self._evaluate(self._for_sweep, out_of_time)

    def _mark_for_retry(self, signature: Hashable) -> None:
        self._for_retry[signature] = None
        self._for_sweep.pop(signature, None)  # after a hint, a schedulable pod is no longer a missed one

    def _evaluate(self, signatures: dict[Hashable, None], out_of_time: OutOfTime) -> list[PendingPod]:
        """Evaluate classes, one at least, until the time is over."""
        found = []
        while signatures:
            signature = next(iter(signatures))
            del signatures[signature]
            one = self._classes[signature]
            self.n_evaluations += 1
            chosen = self._schedulable_of(one)
            if chosen is not None:
                found.append(chosen)
                self._take(chosen.key)
                if signature in self._classes:
                    self._activated[chosen.key] = signature
                    one.outdated = True
            else:
                one.record(self._filter_nodes(one.sample.workload), self._index)
            if out_of_time():
                break
        return found

    def _schedulable_of(self, one: UnschedulableClass) -> PendingPod | None:
        """The pod of a class to activate: one that is schedulable, else one that preemption makes schedulable."""
        nominated = [(one.members[pod.key], node) for pod, node in self._nominated() if pod.key in one.members]
        if len(nominated) > MAX_NOMINATED_EVALUATIONS:
            slots = self._index.slots.by_name
            nominated = [
                (pending, node)
                for pending, node in nominated
                if node in slots and _fits_resources(pending.workload, slots[node], self._index)
            ]
        for pending in (one.sample, *(pending for pending, _ in nominated)):
            if self._fits(pending.workload):
                return pending
        return self._preemptor(one.members)

    def _mark_by_hint(self, change: Change) -> None:
        """Mark the classes that a change gives a queueing hint."""
        if change.type is ChangeType.WORKLOAD_REMOVED and change.workload is not None and change.workload.terminating:
            # A victim is gone: a pod nominated to its node has the resources, or may preempt others now.
            for pod, node in self._nominated():
                if pod.key in self._signature_of and self._index.slots.by_name.get(node) in change.slots:
                    self._mark_for_retry(self._signature_of[pod.key])
        for signature, one in self._classes.items():
            if signature not in self._for_retry and one.queueing_hint(change, self._index):
                self._mark_for_retry(signature)

    def _signature(self, workload: Workload) -> Hashable:
        """The signature, with what preemption and the choice of the profile read beyond the rules."""
        signature = equivalence.signature(workload, self._index)
        return signature, workload.scheduler_name, workload.priority, workload.preempts

    def _regroup(self) -> None:
        """Group the pods again: terms have changed, which may distinguish pods that were equivalent before."""
        self._generation = self._index.peer_index.generation
        pods = [pending for one in self._classes.values() for pending in one.members.values()]
        for pending in pods:
            if self._signature(pending.workload) != self._signature_of[pending.key]:
                self._take(pending.key)
                self.add(pending)
                self._mark_for_retry(self._signature_of[pending.key])
