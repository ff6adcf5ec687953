"""
Pods that fit nowhere, asleep until something happens that lets one of them fit.

Pods that no rule tells apart sleep as one kind. The changes since the last look say which kinds may be better off: a
pod that left a node matters to kinds that only its room was missing for, or whose terms it had a part in; a node that
changed matters to all. Of those kinds the engine is asked, at the price of one decision each, and one pod of a kind
that fits now, or that less important ones could make room for, is woken; the next one only when that one was placed or
promised a place. So nobody is tried in vain, and nobody who would fit sleeps on. Who asks says when it is enough for
now; the kinds that are left are asked at the next look.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from bayplan.engine.filtering import Verdicts
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey, label_keys
from bayplan.queueing import unschedulable_class
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.unschedulable_class import UnschedulableClass

MANY_CHANGES = 256  # from here on every kind is asked, which is cheaper than looking through the changes
FEW = 4  # decisions that are no more than a moment's work

Enough = Callable[[], bool]


class UnschedulablePods:
    """
    The sleepers by kind.

    `fits` asks the engine whether a pod has a place now, `judge` what every rule says of every node, `helped` for whom
    of pods that are alike others would be asked to go. `nominated` are pods that were promised a node, which it is: of a
    kind, only they may have the room there.
    """

    def __init__(
        self,
        index: PlacementIndex,
        fits: Callable[[Workload], bool],
        judge: Callable[[Workload], Verdicts],
        helped: Callable[[Mapping[WorkloadKey, PendingPod]], PendingPod | None] = lambda _alike: None,
        nominated: Callable[[], Sequence[tuple[Workload, str]]] = tuple,
    ) -> None:
        self._index = index
        self._fits = fits
        self._judge = judge
        self._helped = helped
        self._nominated = nominated
        self._kinds: dict[Hashable, UnschedulableClass] = {}
        self._kind_of: dict[WorkloadKey, Hashable] = {}
        self._away: dict[WorkloadKey, Hashable] = {}  # who was woken, and the kind that waits for what becomes of it
        self._position = index.journal.end
        self._generation = index.peer_index.generation
        self._for_retry: dict[Hashable, None] = {}  # to be asked at the next look, in this order
        self._for_sweep: dict[Hashable, None] = {}  # to be asked by the sweep, which nothing has happened to
        self.asked = 0  # how often the engine was asked, for metrics and tests

    def __len__(self) -> int:
        return len(self._kind_of)

    def __contains__(self, key: WorkloadKey) -> bool:
        return key in self._kind_of

    def add(self, pending: PendingPod) -> None:
        """Let a pod that was just refused sleep."""
        if not self._kinds:
            self._position = self._index.journal.end  # nobody cared for what happened before
        key = self._key(pending.workload)
        if self._away.get(pending.key) == key:
            del self._away[pending.key]  # it did not fit after all, so none of its kind does
        else:
            self._settle(pending.key)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = UnschedulableClass()
            kind.outdated = True
        kind.members[pending.key] = pending
        if kind.outdated:
            kind.judge(self._judge(pending.workload), self._index)
        self._kind_of[pending.key] = key

    def remove(self, key: WorkloadKey) -> None:
        """Forget a pod that is gone or has become another; if it was woken, the next of its kind may have its room."""
        self._take(key)
        self._settle(key)

    def _settle(self, key: WorkloadKey) -> None:
        kind_key = self._away.pop(key, None)
        if kind_key in self._kinds:
            self._mark_for_retry(kind_key)

    def _take(self, key: WorkloadKey) -> None:
        kind_key = self._kind_of.pop(key, None)
        if kind_key is not None:
            kind = self._kinds[kind_key]
            del kind.members[key]
            if not kind.members:
                del self._kinds[kind_key]
                self._for_retry.pop(kind_key, None)
                self._for_sweep.pop(kind_key, None)

    def placed(self, workload: Workload) -> None:
        """One of a kind has found a place or was promised one: perhaps there is room for the next."""
        self._settle(workload.key)
        key = self._key(workload)
        if key in self._kinds:
            self._mark_for_retry(key)

    def mark_all_for_retry(self) -> None:
        """Something has happened that no change of the index tells of: ask for every kind."""
        for key in self._kinds:
            self._mark_for_retry(key)

    @property
    def has_candidates(self) -> bool:
        """Whether there are kinds left to be asked."""
        return bool(self._for_retry or self._for_sweep)

    def wake(self, enough: Enough = lambda: False) -> list[PendingPod]:
        """The pods that the changes since the last look have given a place; they sleep no longer."""
        if not self._kinds:
            return []
        changes = self._index.journal.since(self._position)
        self._position = self._index.journal.end
        if self._generation != self._index.peer_index.generation:
            self._regroup()
        if changes is None or len(changes) > MANY_CHANGES:
            self.mark_all_for_retry()
        else:
            for change in changes:
                self._mark_concerned_for_retry(change)
        return self._asked(self._for_retry, enough)

    def mark_all_for_sweep(self) -> None:
        """Have the sweep ask for every kind."""
        self._for_sweep = {key: None for key in self._kinds if key not in self._for_retry}

    def sweep(self, enough: Enough = lambda: False) -> list[PendingPod]:
        """Of the suspects those who fit: they should have been woken before."""
        return self._asked(self._for_sweep, enough)

    def _mark_for_retry(self, key: Hashable) -> None:
        self._for_retry[key] = None
        self._for_sweep.pop(key, None)  # something has happened: whoever fits now need not have fitted before

    def _asked(self, kinds: dict[Hashable, None], enough: Enough) -> list[PendingPod]:
        """Put kinds to the engine, one at least, until it is enough."""
        found = []
        while kinds:
            key = next(iter(kinds))
            del kinds[key]
            kind = self._kinds[key]
            self.asked += 1
            chosen = self._chosen_of(kind)
            if chosen is not None:
                found.append(chosen)
                self._take(chosen.key)
                if key in self._kinds:
                    self._away[chosen.key] = key
                    kind.outdated = True
            else:
                kind.judge(self._judge(kind.sample.workload), self._index)
            if enough():
                break
        return found

    def _chosen_of(self, kind: UnschedulableClass) -> PendingPod | None:
        """Who of a kind is to be woken: one that fits, else one that others would be asked to go for."""
        for pending in (kind.sample, *self._nominated_of(kind)):
            if self._fits(pending.workload):
                return pending
        return self._helped(kind.members)

    def _nominated_of(self, kind: UnschedulableClass) -> list[PendingPod]:
        """Those of a kind who were promised a node; of many only those for whom there is room on it by now."""
        found = [(kind.members[one.key], node) for one, node in self._nominated() if one.key in kind.members]
        if len(found) > FEW:
            slots = self._index.slots.by_name
            found = [
                (p, n)
                for p, n in found
                if n in slots and unschedulable_class.has_room(p.workload, slots[n], self._index)
            ]
        return [pending for pending, _ in found]

    def _mark_concerned_for_retry(self, change: Change) -> None:
        if change.type is ChangeType.WORKLOAD_REMOVED and change.workload is not None and change.workload.terminating:
            self._mark_waiting_for(change.slots)
        for key, kind in self._kinds.items():
            if key not in self._for_retry and kind.may_be_helped(change, self._index):
                self._mark_for_retry(key)

    def _mark_waiting_for(self, slots: Sequence[int]) -> None:
        """Somebody on its way out is gone: who was promised its node has its room, or may ask others to go now."""
        for one, node in self._nominated():
            if one.key in self._kind_of and self._index.slots.by_name.get(node) in slots:
                self._mark_for_retry(self._kind_of[one.key])

    def _key(self, workload: Workload) -> Hashable:
        needs = workload.needs
        visible = self._index.peer_index.visible(workload.labels, label_keys(needs))
        return (
            workload.scheduler_name,
            workload.namespace,
            visible,
            needs,
            workload.requested_target,
            workload.unplaceable,
            workload.priority,
            workload.preempts,
        )

    def _regroup(self) -> None:
        """Terms have come or gone, which may tell pods apart that were alike before."""
        self._generation = self._index.peer_index.generation
        pods = [pending for kind in self._kinds.values() for pending in kind.members.values()]
        for pending in pods:
            if self._key(pending.workload) != self._kind_of[pending.key]:
                self._take(pending.key)
                self.add(pending)
                self._mark_for_retry(self._kind_of[pending.key])
