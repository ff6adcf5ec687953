"""
Unschedulable pods, grouped by equivalence class and retried when a change may make one of them schedulable.

The changes since the last call give each class a queueing hint: the rules that reject its pods say whether a change may
lift the rejection; a change of a node matters to all. The classes with a hint are evaluated by the engine, at the cost
of one decision each. One pod of a class that is schedulable now, or that preemption can make schedulable, is returned;
the next one only after that one is placed or nominated. So no attempt is futile, and no schedulable pod is missed. The
caller limits the time of one call: what is left of grouping, of reading changes and of evaluating is done by the next
ones, because tenants may create thousands of pods that have a class of their own each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic

import msgspec
import numpy as np

from bayplan.engine import equivalence
from bayplan.engine.evaluations import RuleResult
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing.evaluator import Evaluator
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import Pending
from bayplan.rules.rule import LiftedBy

MAX_REPLAYED_CHANGES = 256  # with more changes than this, evaluating every class is cheaper than reading them
MAX_NOMINATED_EVALUATIONS = 4  # nominated pods of a class that are evaluated without a check of their nodes
HINTED_BY_RULES = (ChangeType.WORKLOAD_ADDED, ChangeType.WORKLOAD_REMOVED, ChangeType.STORAGE_CHANGED)

OutOfTime = Callable[[], bool]


class UnschedulableClass(Generic[Pending]):
    """The unschedulable pods of one equivalence class, and the rules whose rejection a change must lift."""

    __slots__ = ("_lifted_by", "members", "outdated")

    def __init__(self) -> None:
        self.members: dict[WorkloadKey, Pending] = {}
        self.outdated = True  # the results of the rules are missing or no longer valid
        # The rules that reject the pods, by the changes that may lift that; with nodes if only changes there matter.
        self._lifted_by: dict[ChangeType, list[tuple[RuleResult, Mask | None]]] = {}

    @property
    def sample(self) -> Pending:
        return next(iter(self.members.values()))

    def record(self, verdicts: Verdicts | None, index: PlacementIndex) -> None:
        """Remember which rules reject the pods, and where lifting that may make a node feasible."""
        self.outdated = False
        if verdicts is None:
            self._lifted_by = {}
            return
        self._lifted_by = {change: [] for change in HINTED_BY_RULES}
        if verdicts.pre_filter_rejection is not None:
            rule, _ = verdicts.pre_filter_rejection
            for one in verdicts.results:
                if one.rule is rule:
                    self._add(one, None)
            return
        alive = index.slots.alive
        by_rule = [(one, rejected & alive) for one in verdicts.results if (rejected := one.rejected()) is not None]
        by_target = [rejected for one, rejected in by_rule if one.rule.lifted_by is LiftedBy.TARGET]
        closed = np.logical_or.reduce([~alive, *by_target])
        for one, rejected in by_rule:
            if one.rule.lifted_by is LiftedBy.TARGET:
                where = rejected
            elif one.rule.lifted_by is LiftedBy.PEERS and self.sample.workload.preempts:
                # Evicting peers can make the rule reject a node, and other peers can prevent that.
                where = ~closed
            else:
                # A node that no rule rejects is taken by nominated pods, beside which these may fit after a change.
                where = (rejected | verdicts.feasible) & ~closed
            if where.any():
                self._add(one, None if one.rule.lifted_by is LiftedBy.PEERS else where)

    def _add(self, one: RuleResult, where: Mask | None) -> None:
        for change in (*one.rule.lifted_by.changes, ChangeType.STORAGE_CHANGED):
            self._lifted_by[change].append((one, where))

    def queueing_hint(self, change: Change, index: PlacementIndex) -> bool:
        """Whether a change may make one of the pods schedulable, or make preemption for it possible."""
        rejecting = self._lifted_by.get(change.type)
        if rejecting is None:
            return True  # nodes and namespaces: rare, and any of them may matter
        for one, where in rejecting:
            concerned: Change | None = change
            if where is not None and change.workload is not None:
                concerned = _at(change, where)
            if concerned is not None and one.may_lift(self.sample.workload, concerned, index):
                return True
        return False


def _at(change: Change, where: Mask) -> Change | None:
    """The change of a workload with those of its slots alone; None if it has none."""
    # A slot beyond the mask is that of a node which has been added, a hint of its own.
    slots = tuple([slot for slot in change.slots if slot < len(where) and where[slot]])
    if len(slots) == len(change.slots):
        return change if slots else None
    return msgspec.structs.replace(change, slots=slots) if slots else None


class UnschedulablePods(Generic[Pending]):
    """The unschedulable pods by equivalence class. The nominated ones of a class may fit where others do not."""

    def __init__(self, index: PlacementIndex, evaluator: Evaluator[Pending], nominations: Nominations) -> None:
        self._index = index
        self._evaluator = evaluator
        self._nominations = nominations
        self._classes: dict[Hashable, UnschedulableClass[Pending]] = {}
        self._signature_of: dict[WorkloadKey, Hashable] = {}
        self._activated: dict[WorkloadKey, Hashable] = {}  # pods whose class waits for the result of their attempt
        self._position = index.journal.end
        self._generation = self._mentions = -1  # of the rules of placed pods, and of what terms mention
        self._ungrouped: dict[WorkloadKey, object] = {}  # pods whose class is to be checked after a change of terms
        self._changes: list[Change] = []
        self._unread: dict[Hashable, None] = {}  # classes for which the hints of `_changes` are not known yet
        self._for_retry: dict[Hashable, None] = {}  # classes with a hint, in this order
        self._for_sweep: dict[Hashable, None] = {}  # classes without one, which the sweep evaluates
        self._outdated: list[Pending] = []
        self.n_evaluations = 0  # for metrics and tests

    def __len__(self) -> int:
        return len(self._signature_of)

    def __contains__(self, key: WorkloadKey) -> bool:
        return key in self._signature_of

    def add(self, pending: Pending) -> None:
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
            members.record(self._evaluator.verdicts(pending.workload), self._index)
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
            self._ungrouped.pop(key, None)
            if not members:
                del self._classes[signature]
                for signatures in (self._unread, self._for_retry, self._for_sweep):
                    signatures.pop(signature, None)

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
        """Whether something is left to be done without a further change."""
        return bool(self._for_retry or self._for_sweep or self._unread or self._ungrouped)

    def pop_schedulable(self, out_of_time: OutOfTime = lambda: False) -> list[Pending]:
        """Remove and return the pods that the changes since the last call have made schedulable."""
        if not self._classes:
            return []
        self._regroup(out_of_time)
        self._read_changes(out_of_time)
        return self._evaluate(self._for_retry, out_of_time)

    def mark_all_for_sweep(self) -> None:
        """Mark every class for the sweep, but for those that are retried anyway, now or after an attempt."""
        retried = {*self._for_retry, *self._activated.values()}
        self._for_sweep = {signature: None for signature in self._classes if signature not in retried}

    def sweep(self, out_of_time: OutOfTime = lambda: False) -> list[Pending]:
        """Remove and return the schedulable pods that no queueing hint has found: each one is a bug."""
        return self._evaluate(self._for_sweep, out_of_time)

    def pop_outdated(self) -> list[Pending]:
        """Return the pods that evaluations have removed because they do not fit for another reason than is reported."""
        found, self._outdated = self._outdated, []
        return found

    def _mark_for_retry(self, signature: Hashable) -> None:
        self._for_retry[signature] = None
        self._for_sweep.pop(signature, None)  # after a hint, a schedulable pod is no longer a missed one

    def _evaluate(self, signatures: dict[Hashable, None], out_of_time: OutOfTime) -> list[Pending]:
        """Evaluate classes, one at least, until the time is over."""
        found, has_read_all = [], self._position == self._index.journal.end
        while signatures:
            signature = next(iter(signatures))
            del signatures[signature]
            self._unread.pop(signature, None)  # the index has these changes
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
                one.record(self._evaluator.verdicts(one.sample.workload), self._index)
                if self._evaluator.is_outdated(one.sample):
                    self._outdated.append(one.sample)
                    self._take(one.sample.key)
            if out_of_time():
                break
        if has_read_all:
            self._position = self._index.journal.end  # what evaluations tried on the index is undone
        return found

    def _schedulable_of(self, one: UnschedulableClass[Pending]) -> Pending | None:
        """The pod of a class to activate: one that is schedulable, else one that preemption makes schedulable."""
        nominated = [(one.members[pod.key], node) for pod, node in self._nominations.all() if pod.key in one.members]
        if len(nominated) > MAX_NOMINATED_EVALUATIONS:
            verdicts, slots = self._evaluator.verdicts(one.sample.workload), self._index.slots.by_name
            feasible = np.zeros(0, np.bool_) if verdicts is None else verdicts.feasible
            nominated = [(pending, node) for pending, node in nominated if node in slots and feasible[slots[node]]]
        for pending in (one.sample, *(pending for pending, _ in nominated)):
            if self._evaluator.fits(pending.workload, self._nominations):
                return pending
        return self._evaluator.pod_helped_by_preemption(one.members, self._nominations)

    def _read_changes(self, out_of_time: OutOfTime) -> None:
        """Mark the classes that the changes since the last call give a queueing hint, until the time is over."""
        if not self._unread:
            self._changes = self._next_changes()
            self._unread = dict.fromkeys(self._classes) if self._changes else {}
        while self._unread:
            signature = next(iter(self._unread))
            del self._unread[signature]
            one = self._classes[signature]
            if signature not in self._for_retry and any(one.queueing_hint(c, self._index) for c in self._changes):
                self._mark_for_retry(signature)
            if out_of_time():
                break

    def _next_changes(self) -> list[Change]:
        """The changes to read for each class; none if all classes are marked without that."""
        changes = self._index.journal.since(self._position)
        self._position = self._index.journal.end
        if changes is None or len(changes) > MAX_REPLAYED_CHANGES:
            self.mark_all_for_retry()
            return []
        self._mark_nominated(changes)
        return changes

    def _mark_nominated(self, changes: Sequence[Change]) -> None:
        """Mark the pods nominated to a node that a victim has left: they have room there, or may preempt others."""
        left = {
            slot
            for change in changes
            if change.type is ChangeType.WORKLOAD_REMOVED
            and change.workload is not None
            and change.workload.terminating
            for slot in change.slots
        }
        for pod, node in self._nominations.all() if left else ():
            if pod.key in self._signature_of and self._index.slots.by_name.get(node) in left:
                self._mark_for_retry(self._signature_of[pod.key])

    def _signature(self, workload: Workload) -> Hashable:
        """The signature, with what preemption and the choice of the profile read beyond the rules."""
        signature = equivalence.signature(workload, self._index)
        return signature, workload.scheduler_name, workload.priority, workload.preempts

    def _regroup(self, out_of_time: OutOfTime) -> None:
        """Group the pods again if terms have changed, which may distinguish pods that were equivalent before."""
        peer_index = self._index.peer_index
        if self._generation != peer_index.owner_rules.generation:
            self._generation = peer_index.owner_rules.generation
            if self._mentions != peer_index.terms.mentions_generation:
                self._mentions = peer_index.terms.mentions_generation
                self._ungrouped |= self._signature_of  # those that are left over from the last time come first
        while self._ungrouped:
            key = next(iter(self._ungrouped))
            del self._ungrouped[key]
            signature = self._signature_of[key]
            pending = self._classes[signature].members[key]
            if self._signature(pending.workload) != signature:
                self._take(key)
                self.add(pending)
                self._mark_for_retry(self._signature_of[key])
            if out_of_time():
                break
