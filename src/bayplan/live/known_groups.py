"""
What is known of the groups of a live cluster: their members, when they were tried, and which are to be tried next.

Everything comes from the scheduling queue and the index, so nothing is lost with the process. Places nothing and tells
nobody.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from bayplan.grouping import pending_groups
from bayplan.grouping.pending_groups import PendingGroup
from bayplan.indexing.journal import Change, ChangeType
from bayplan.live.group_turns import GroupTurns
from bayplan.model.groups import MEMBER_OF, GroupSource
from bayplan.model.workloads import Needs, Workload, WorkloadKey
from bayplan.queueing.pending_pod import PendingPod, QueueStage
from bayplan.queueing.waiting_groups import WaitingGroups
from bayplan.watching.cluster_state import ClusterState

RETRY_SECONDS = 30.0  # after which a group is tried again at the latest: not all that may help is a change of the index
PROBLEM_RETRY_SECONDS = 0.2  # after which one that could not be tried is looked at again, if it has changed
NEEDS_MIN = "its members lack bayplan.io/group-min: a running scheduler does not know how many members there will be"
TOO_MANY = "it has more members than the {} that this scheduler accepts (--max-group-members)"
TOO_COMPLEX = "its members differ in so many terms that comparing them takes too long"


class GroupLimits(msgspec.Struct, frozen=True):
    """
    How large a group may be, and after how many seconds one that waits has timed out, 0 for never.

    A group whose terms would be compared with its members more than `max_comparisons` times is too large as well.
    """

    max_members: int = 1000
    max_comparisons: int = 2_000_000
    timeout: float = 300.0


class KnownGroup:
    """
    A group with pending members, or of which members have left.

    `since` is when it was first tried in vain, None while it does not wait; `timeout_at` is its next time-out.
    `below_since` is when members that ran became too few, with none pending. `has_run`: as many as must were bound at
    once. `is_released`: bound members are being deleted, because it never ran. `needs_peers`: a pod that is placed may
    be what it waits for. Until `quiet_until` its members are not told what is wrong with it.
    """

    __slots__ = (
        "attempts", "below_since", "has_run", "is_growing", "is_released", "key", "needs_peers", "not_before",
        "priority", "problem_since", "quiet_until", "retry_at", "since", "timeout_at", "told_below", "tried",
    )  # fmt: skip

    def __init__(self, key: str, now: float) -> None:
        self.key = key
        self.tried, self.not_before, self.retry_at, self.timeout_at = now, 0.0, math.inf, math.inf
        self.since: float | None = None
        self.below_since: float | None = None
        self.problem_since: float | None = None
        self.quiet_until = 0.0
        self.attempts = self.priority = 0
        self.is_growing = self.is_released = self.needs_peers = self.told_below = self.has_run = False

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]


class KnownGroups:
    """The groups by key. `backoff` says how long a group waits after so many attempts."""

    def __init__(
        self,
        state: ClusterState,
        waiting: WaitingGroups[PendingPod],
        limits: GroupLimits,
        clock: Callable[[], float],
        backoff: Callable[[int], float],
    ) -> None:
        self._state, self._queue, self._index, self._waiting = state, state.queue, state.index, waiting
        self._limits, self._clock, self._backoff = limits, clock, backoff
        self._turns: GroupTurns[KnownGroup] = GroupTurns()
        self._groups = self._turns.groups
        self._placed: dict[str, set[WorkloadKey]] = {}
        self._position = -1

    @property
    def n_waiting(self) -> int:
        return sum(group.since is not None and not group.is_growing for group in self._groups.values())

    # Changes

    def note_changes(self) -> None:
        """Read what has changed since the last call, and which groups it may help."""
        journal = self._index.journal
        changes = journal.since(self._position) if self._position >= 0 else None
        self._position = journal.end
        if changes is None:
            self._count_all()
            for group in self._groups:
                self._turns.mark_due(group)
        else:
            self._read(changes)
        for key in self._waiting.take_changed():
            self._touch(key)

    def _count_all(self) -> None:
        self._placed.clear()
        for key, record in self._index.records.items():
            if record.workload.group is not None:
                self._placed.setdefault(record.workload.labels[MEMBER_OF], set()).add(key)

    def _read(self, changes: Iterable[Change]) -> None:
        is_other = makes_room = has_new = False
        records = self._index.records
        for change in changes:
            workload = change.workload
            if workload is None:
                is_other = True
                continue
            record = records.get(workload.key)
            is_there = record is not None and record.shares == change.shares
            # What was only tried is there as it was before.
            if change.type is ChangeType.WORKLOAD_REMOVED:
                makes_room |= not is_there
            else:
                has_new |= is_there
            if workload.group is not None:
                self._count(workload, is_there=record is not None)
        if not (is_other or makes_room or has_new):
            return
        for key, group in self._groups.items():
            # Room does not help where something is wrong with the group itself.
            if is_other or (group.problem_since is None and (makes_room or group.needs_peers)):
                self._turns.mark_due(key)

    def _count(self, workload: Workload, *, is_there: bool) -> None:
        """Count a member that runs, or no longer does."""
        group = workload.labels[MEMBER_OF]
        members = self._placed.setdefault(group, set())
        if is_there:
            members.add(workload.key)
        else:
            members.discard(workload.key)
            self._touch(group)
            if not members:
                del self._placed[group]

    def _touch(self, key: str) -> None:
        if key not in self._groups:
            self._turns.add(KnownGroup(key, self._clock()))
        self._turns.mark_due(key)

    # Turns

    def next_due(self, now: float) -> KnownGroup | None:
        """The group whose turn it is; it is due again only after another change, or after some time."""
        chosen = self._turns.next_due(now)
        if chosen is not None:
            chosen.tried, chosen.retry_at = now, math.inf
        return chosen

    def next_at(self) -> float | None:
        """When a group is due, or times out; None if only a change can lead to it."""
        next_at = self._turns.next_at()
        return None if next_at == math.inf else next_at

    def again(self, group: KnownGroup, not_before: float = 0.0) -> None:
        """Let a group be tried again although nothing has changed."""
        if group.key in self._groups:
            group.not_before = max(group.not_before, not_before)
            self._turns.mark_due(group.key)

    def retry_at(self, group: KnownGroup, time: float) -> None:
        """Let a group be tried again by that time although nothing has changed."""
        group.retry_at = min(group.retry_at, time)
        self._turns.rearm(group)

    def tried_in_vain(self, group: KnownGroup, *, counts: bool = True) -> None:
        """Note that a group could not be placed; the backoff doubles if that `counts` as an attempt."""
        now = self._clock()
        group.attempts += counts
        if group.since is None:
            group.since = now
            group.timeout_at = now + self._limits.timeout if self._limits.timeout > 0 else math.inf
        group.not_before = now + (self._backoff(group.attempts) if counts else PROBLEM_RETRY_SECONDS)
        group.retry_at = now + RETRY_SECONDS
        self._turns.rearm(group)

    def placed_now(self, group: KnownGroup, *, has_more: bool) -> None:
        """Note that enough members of a group are assumed."""
        group.problem_since, group.is_released = None, False
        self.waits_no_longer(group)
        if has_more:
            self.again(group)  # the others are told why they wait

    def forget(self, group: KnownGroup) -> None:
        """Forget a group that has no pending members."""
        self._turns.remove(group.key)

    def waits_no_longer(self, group: KnownGroup) -> None:
        """Note that a group is placed, or has no pending members."""
        group.since, group.timeout_at = None, math.inf

    def timed_out(self, now: float) -> list[KnownGroup]:
        """The groups that have waited too long since the last call: again each time that the time-out has passed."""
        found = []
        for group in self._turns.timed_out(now):
            group.timeout_at += self._limits.timeout
            self._turns.rearm(group)
            if not group.is_growing:
                found.append(group)
        return found

    # Members

    def waiting_of(self, key: str) -> dict[WorkloadKey, PendingPod]:
        """The pending members of a group that have no node yet."""
        members = self._waiting.members.get(key, {})
        return {name: one for name, one in members.items() if one.stage in (QueueStage.GROUP, QueueStage.GATED)}

    def has_pending(self, key: str) -> bool:
        """Whether any member is pending, or being bound."""
        return key in self._waiting.members

    def placed_of(self, key: str) -> list[Workload]:
        """The members of a group that run or are being bound."""
        records = self._index.records
        members = [records[one].workload for one in sorted(self._placed.get(key, ())) if one in records]
        return [one for one in members if not one.terminating]

    def is_below(self, key: str) -> int:
        """How many members must run where fewer do, but some; 0 else. Not all are looked at, however many there are."""
        records = self._index.records
        there = (records[one].workload for one in self._placed.get(key, ()) if one in records)
        running = (one for one in there if not one.terminating)
        first = next(running, None)
        least = 0 if first is None else self.min_members(key, first)
        return least if 0 < 1 + sum(1 for _ in itertools.islice(running, max(least - 1, 0))) < least else 0

    def pending(self, key: str) -> PendingGroup | None:
        """A group with its pending members as they are known now; None if none is pending."""
        members = [one.workload for one in self.waiting_of(key).values()]
        if not members:
            return None
        placed = self.placed_of(key)
        found = pending_groups.pending_group(key, members, placed, self._state.spread_context.current.pod_groups)
        said = members[0].group
        wrong = self._too_large([*members, *placed], members)
        if not wrong and said is not None and said.source is GroupSource.ANNOTATION and not said.min_members:
            wrong = NEEDS_MIN
        return msgspec.structs.replace(found, problem=wrong) if wrong else found

    def of_pending(self, pod: Workload) -> PendingGroup | None:
        """The group that a pending pod waits with; None if it waits with none."""
        pending = self._queue.pods.get(pod.key)
        if pending is None or pod.group is None or pending.stage is not QueueStage.GROUP:
            return None
        return self.pending(pod.labels[MEMBER_OF])

    def note_members(self, group: KnownGroup, found: PendingGroup) -> None:
        """Remember of the members what says when they are to be tried."""
        pods = (*found.pods, *found.held_back)
        group.priority = max(pod.priority for pod in pods)
        group.is_growing = found.n_placed >= found.min_members
        if group.is_growing and not group.has_run:
            assumed = self._state.assumed
            n_bound = sum(one.key not in assumed for one in self.placed_of(group.key))
            group.has_run = n_bound >= found.min_members
        own = bool(found.topology_key)
        group.needs_peers = any(
            pod.needs.affinity.required or len(pod.needs.affinity.group_required) > own for pod in pods
        )

    def min_members(self, key: str, one: Workload) -> int:
        """How many members of a group must run, by its declaration or what a member says."""
        declared = self._state.spread_context.current.pod_groups.get(key)
        said = one.group
        if declared is not None and said is not None and declared.source is said.source:
            return declared.min_members
        return 0 if said is None else said.min_members

    def too_many(self, n_members: int) -> str:
        """What is wrong with a group of so many members; empty if nothing is."""
        return TOO_MANY.format(self._limits.max_members) if n_members > self._limits.max_members > 0 else ""

    def _too_large(self, members: Sequence[Workload], pending: Sequence[Workload]) -> str:
        if wrong := self.too_many(len(members)):
            return wrong
        classes = {id(pod.needs): pod.needs for pod in pending}
        if sum(map(_n_terms, classes.values())) * len(classes) > self._limits.max_comparisons:
            return TOO_COMPLEX
        return ""


def _n_terms(needs: Needs) -> int:
    affinity = needs.affinity
    sides = (affinity.required, affinity.anti_required, affinity.preferred, affinity.anti_preferred)
    return sum(map(len, sides)) + len(affinity.group_required) + len(needs.spread.constraints)
