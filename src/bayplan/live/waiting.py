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

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.filtering import Judged, Verdicts
from bayplan.indexing.capacity import PODS
from bayplan.indexing.journal import Change
from bayplan.indexing.journal import Kind as ChangeKind
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.live.pending import Pending
from bayplan.model.workloads import Workload, WorkloadKey, label_keys

# What a rule's refusal of a node hangs on.
ROOM, NODE, PEERS = 1, 2, 4
LIFTED_BY_DEPARTURE = {"NodeResourcesFit", "NodePorts", "NodeVolumeLimits"}
LIFTED_BY_PEERS = {"InterPodAffinity", "PodTopologySpread", "VolumeRestrictions"}
MANY_CHANGES = 256  # from here on every kind is asked, which is cheaper than looking through the changes
MOST_HEARD = 4096
FEW = 4  # decisions that are no more than a moment's work
NOTHING_MORE: Mapping[str, int] = {}

Enough = Callable[[], bool]


class _Kind:
    """Pods that no rule tells apart, and what is against each node for them."""

    __slots__ = ("heard", "held_by", "members", "outdated", "peers")

    def __init__(self) -> None:
        self.members: dict[WorkloadKey, Pending] = {}
        self.held_by: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.peers: list[Judged] = []
        self.heard: dict[tuple[int, bool, bool], bool] = {}  # whether comings and goings of like pods matter here
        self.outdated = False  # one of them was woken: what was against nodes is no longer so

    @property
    def sample(self) -> Pending:
        return next(iter(self.members.values()))

    def judge(self, verdicts: Verdicts, index: PlacementIndex) -> None:
        """Remember what the rules said, and who of them listens to other pods."""
        self.held_by = np.zeros(index.slots.capacity, np.uint8)
        for one in verdicts.judged:
            refused = one.refused()
            if refused is not None:
                self.held_by[refused] |= _hangs_on(one.rule.name)
        # Where no rule is against it, promises to others are, and these may be kept with more room.
        self.held_by[verdicts.feasible] |= ROOM
        self.peers = [one for one in verdicts.judged if one.rule.name in LIFTED_BY_PEERS]
        self.heard.clear()
        self.outdated = False


def _hangs_on(rule: str) -> int:
    if rule in LIFTED_BY_DEPARTURE:
        return ROOM
    return PEERS if rule in LIFTED_BY_PEERS else NODE


class Waiting:
    """
    The sleepers by kind.

    `fits` asks the engine whether a pod has a place now, `judge` what every rule says of every node, `helped` for whom
    of pods that are alike others would be asked to go. `promised` are pods that were promised a node, which it is: of a
    kind, only they may have the room there.
    """

    def __init__(
        self,
        index: PlacementIndex,
        fits: Callable[[Workload], bool],
        judge: Callable[[Workload], Verdicts],
        helped: Callable[[Mapping[WorkloadKey, Pending]], Pending | None] = lambda _alike: None,
        promised: Callable[[], Sequence[tuple[Workload, str]]] = tuple,
    ) -> None:
        self._index = index
        self._fits = fits
        self._judge = judge
        self._helped = helped
        self._promised = promised
        self._kinds: dict[Hashable, _Kind] = {}
        self._kind_of: dict[WorkloadKey, Hashable] = {}
        self._away: dict[WorkloadKey, Hashable] = {}  # who was woken, and the kind that waits for what becomes of it
        self._position = index.journal.end
        self._generation = index.census.generation
        self._doubtful: dict[Hashable, None] = {}  # to be asked at the next look, in this order
        self._suspects: dict[Hashable, None] = {}  # to be asked by the sweep, which nothing has happened to
        self.asked = 0  # how often the engine was asked, for metrics and tests

    def __len__(self) -> int:
        return len(self._kind_of)

    def __contains__(self, key: WorkloadKey) -> bool:
        return key in self._kind_of

    def park(self, pending: Pending) -> None:
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
            kind = self._kinds[key] = _Kind()
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
            self._doubt(kind_key)

    def _take(self, key: WorkloadKey) -> None:
        kind_key = self._kind_of.pop(key, None)
        if kind_key is not None:
            kind = self._kinds[kind_key]
            del kind.members[key]
            if not kind.members:
                del self._kinds[kind_key]
                self._doubtful.pop(kind_key, None)
                self._suspects.pop(kind_key, None)

    def placed(self, workload: Workload) -> None:
        """One of a kind has found a place or was promised one: perhaps there is room for the next."""
        self._settle(workload.key)
        key = self._key(workload)
        if key in self._kinds:
            self._doubt(key)

    def doubt_all(self) -> None:
        """Something has happened that no change of the index tells of: ask for every kind."""
        for key in self._kinds:
            self._doubt(key)

    @property
    def is_restless(self) -> bool:
        """Whether there are kinds left to be asked."""
        return bool(self._doubtful or self._suspects)

    def wake(self, enough: Enough = lambda: False) -> list[Pending]:
        """The pods that the changes since the last look have given a place; they sleep no longer."""
        if not self._kinds:
            return []
        changes = self._index.journal.since(self._position)
        self._position = self._index.journal.end
        if self._generation != self._index.census.generation:
            self._regroup()
        if changes is None or len(changes) > MANY_CHANGES:
            self.doubt_all()
        else:
            for change in changes:
                self._doubt_concerned(change)
        return self._asked(self._doubtful, enough)

    def suspect_all(self) -> None:
        """Have the sweep ask for every kind."""
        self._suspects = {key: None for key in self._kinds if key not in self._doubtful}

    def sweep(self, enough: Enough = lambda: False) -> list[Pending]:
        """Of the suspects those who fit: they should have been woken before."""
        return self._asked(self._suspects, enough)

    def _doubt(self, key: Hashable) -> None:
        self._doubtful[key] = None
        self._suspects.pop(key, None)  # something has happened: whoever fits now need not have fitted before

    def _asked(self, kinds: dict[Hashable, None], enough: Enough) -> list[Pending]:
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

    def _chosen_of(self, kind: _Kind) -> Pending | None:
        """Who of a kind is to be woken: one that fits, else one that others would be asked to go for."""
        for pending in (kind.sample, *self._promised_of(kind)):
            if self._fits(pending.workload):
                return pending
        return self._helped(kind.members)

    def _promised_of(self, kind: _Kind) -> list[Pending]:
        """Those of a kind who were promised a node; of many only those for whom there is room on it by now."""
        found = [(kind.members[one.key], node) for one, node in self._promised() if one.key in kind.members]
        if len(found) > FEW:
            slots = self._index.slots.by_name
            found = [(p, n) for p, n in found if n in slots and self._has_room(p.workload, slots[n], NOTHING_MORE)]
        return [pending for pending, _ in found]

    def _doubt_concerned(self, change: Change) -> None:
        for key, kind in self._kinds.items():
            if key not in self._doubtful and self._may_help(change, kind):
                self._doubt(key)

    def _may_help(self, change: Change, kind: _Kind) -> bool:
        match change.kind:
            case ChangeKind.WORKLOAD_ADDED:
                return self._has_a_part(change, kind)
            case ChangeKind.WORKLOAD_REMOVED:
                return self._makes_room(change, kind) or self._has_a_part(change, kind)
            case _:  # nodes, namespaces, storage: rare, and any of them may matter
                return True

    def _makes_room(self, change: Change, kind: _Kind) -> bool:
        """Whether a pod left a node that is refused for want of room, and there is enough of it now or can be made."""
        assert change.workload is not None
        workload = kind.sample.workload
        # One that is less important could have been asked to go before: nothing can be made now that could not then.
        more_can_be_made = workload.preempts and change.workload.priority >= workload.priority
        for slot in change.slots:
            held_by = int(kind.held_by[slot]) if slot < len(kind.held_by) else NODE
            if held_by & ROOM and not held_by & NODE:
                lesser = self._held_by_lesser(workload, slot) if more_can_be_made else NOTHING_MORE
                if self._has_room(workload, slot, lesser):
                    return True
        return False

    def _has_room(self, workload: Workload, slot: int, more: Mapping[str, int]) -> bool:
        capacity = self._index.capacity
        for resource, amount in ((PODS, 1), *workload.needs.requests.amounts):
            row = capacity.row(resource)
            free = capacity.allocatable[row, slot] - capacity.requested[row, slot]
            if amount > free + more.get(resource, 0):
                return False
        return True

    def _held_by_lesser(self, workload: Workload, slot: int) -> Mapping[str, int]:
        """What the less important pods on a node hold."""
        held: Counter[str] = Counter()
        for key in self._index.workloads_on(slot):
            other = self._index.records[key].workload
            if other.priority < workload.priority:
                held[PODS] += 1
                held.update(dict(other.needs.requests.amounts))
        return held

    def _has_a_part(self, change: Change, kind: _Kind) -> bool:
        """Whether the pod that came or went counts for a rule that listens to others."""
        cls = change.member_of
        if cls is None or change.workload is None or not kind.peers:
            return False
        # Of a pod the rules read no more than this; it may also be on no node that we know.
        alike = (cls.id, bool(change.slots), bool(change.workload.needs.claims.names))
        heard = kind.heard.get(alike)
        if heard is None:
            if len(kind.heard) == MOST_HEARD:
                kind.heard.clear()
            heard = any(one.rule.touched(one.plan, change, self._index) is not None for one in kind.peers)
            kind.heard[alike] = heard
        return heard

    def _key(self, workload: Workload) -> Hashable:
        needs = workload.needs
        visible = self._index.census.visible(workload.labels, label_keys(needs))
        return (
            workload.scheduler_name,
            workload.namespace,
            visible,
            needs,
            workload.requested_target,
            workload.unplaceable,
            workload.priority,
        )

    def _regroup(self) -> None:
        """Terms have come or gone, which may tell pods apart that were alike before."""
        self._generation = self._index.census.generation
        sleepers = [pending for kind in self._kinds.values() for pending in kind.members.values()]
        for pending in sleepers:
            if self._key(pending.workload) != self._kind_of[pending.key]:
                self._take(pending.key)
                self.park(pending)
                self._doubt(self._kind_of[pending.key])
