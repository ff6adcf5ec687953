"""
Places groups as a whole on a live cluster: all members that must run are assumed together, and then bound, or none.

Plans are made in a worker thread on a follower of the index, one group after the other, so no group holds the event
loop, and none holds room while it waits. A plan is carried out on the index of the loop: all members are assumed, and
if anything has changed since the copy was made, each is checked beside the others before the first one is bound. What
is known of a group comes from the API server alone: members that run count, so after a restart a group is completed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.errors import ClusterError
from bayplan.indexing.followers import Follower
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.live.binding import Binder, VolumeBinder
from bayplan.live.cluster_writer import PodRef
from bayplan.live.context import Engines, SchedulerContext
from bayplan.live.group_reports import GroupReporter
from bayplan.live.known_groups import KnownGroup, KnownGroups
from bayplan.live.loop import REST_FACTOR, InFlightBinds
from bayplan.live.preemption import PreemptionAttempt, PreemptionEvaluator
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing import group_attempt
from bayplan.queueing.group_attempt import GroupAttempt, GroupRequest
from bayplan.queueing.pending_pod import PendingPod, QueueStage, decides_alike, is_held_back

MAX_SEARCH_SECONDS = 2.0  # for a plan and for victims
MAX_STEP_SECONDS = 0.004  # of looking for a group to try, before other tasks run
MAX_CHECK_SECONDS = 0.004  # of checking assumed members, before other tasks run
MAX_IDLE_SECONDS = 300.0  # after which the copy of the index is released
PROBLEM_GRACE_SECONDS = 1.0  # before a group is told what is wrong with it: its members come one after the other
SECONDS_PER_MESSAGE = 0.02  # to a member about what is wrong with its group: so long the group is told nothing else
MAX_TOLD_AT_ONCE = 500  # members about that, before other tasks run
BELOW_GRACE_SECONDS = 5.0  # before too few members that run are told: a group may be on its way out
log = logging.getLogger("bayplan.groups")


class GroupParts(msgspec.Struct, frozen=True):
    """What carries out the decisions about groups; `start_task` runs what writes, `on_change` wakes the loop."""

    binder: Binder
    volumes: VolumeBinder
    preemptor: PreemptionEvaluator
    reporter: GroupReporter
    binds_in_flight: InFlightBinds
    start_task: Callable[[Coroutine[Any, Any, None]], None]
    on_change: Callable[[], None]


class _Attempt(msgspec.Struct, frozen=True):
    """An attempt in progress: the members by key, and what was known of each when it began."""

    group: KnownGroup
    request: GroupRequest
    members: Mapping[WorkloadKey, PendingPod]
    workloads: Mapping[WorkloadKey, Workload]
    began: float


class GroupPlacer:
    """Tries the groups of the scheduling queue, one at a time."""

    def __init__(self, context: SchedulerContext, engines: Engines, known: KnownGroups, parts: GroupParts) -> None:
        self._state, self._queue, self._index = context.state, context.state.queue, context.state.index
        self._clock, self._metrics, self._writer = context.clock, context.metrics, context.writer
        self._engines, self._known, self._parts = engines, known, parts
        self._reporter = parts.reporter
        self._is_trying = False
        self._no_attempt_before = 0.0
        self._follower: Follower | None = None
        self._copy_engines: dict[str, Engine] = {}
        self._release: asyncio.TimerHandle | None = None

    # For the loop

    def step(self) -> None:
        """Note what has changed, and try the next group unless one is being tried."""
        self._known.note_changes()
        now = self._clock()
        for group in self._known.timed_out(now):
            self._time_out(group, now)
        if self._is_trying or self._parts.binds_in_flight.is_full:
            return
        if now < self._no_attempt_before and self._queue.sizes[QueueStage.ACTIVE]:
            return
        # Groups with which something is wrong take no attempt; the others wait until the loop comes back.
        while self._clock() - now < MAX_STEP_SECONDS and (due := self._known.next_due(now)) is not None:
            attempt = self._begin(due, now)
            if attempt is not None:
                self._is_trying = True
                self._parts.start_task(self._try(attempt))
                return

    def next_at(self) -> float | None:
        """When a group is due or times out; None if only a change can lead to it, or one is being tried."""
        next_at = self._known.next_at()
        if next_at is None or self._is_trying or self._parts.binds_in_flight.is_full:
            return None
        return max(next_at, self._no_attempt_before) if self._queue.sizes[QueueStage.ACTIVE] else next_at

    # One group

    def _begin(self, group: KnownGroup, now: float) -> _Attempt | None:
        """What is to be tried; None if there is nothing, which is told where something is wrong."""
        members = self._known.waiting_of(group.key)
        if too_many := self._known.too_many(len(members)):
            nominated = self._clear_nominations(members)
            self._tell_problem(group, too_many, list(members.values()), nominated, now)
            return None
        for pending in members.values():
            self._state.refresh(pending)  # what it is read with may have changed
        found = self._known.pending(group.key)
        if found is None:
            self._review_running(group, now)
            return None
        self._known.note_members(group, found)
        if found.problem or not found.pods:
            nominated = self._clear_nominations(members)  # what cannot be placed leaves the room to others
            self._tell_problem(group, found.problem, list(members.values()), nominated, now)
            return None
        group.problem_since = None
        nominations, keys = self._queue.nominations, {pod.key for pod in found.pods}
        own = {key: node for key in keys if (node := nominations.target_of(key))}
        competing = nominations.competing_with(found.pods[0]) if len(nominations) else []
        request = GroupRequest(
            group=found,
            nominated=tuple((pod, node) for pod, node in competing if pod.key not in keys),
            own=own,
            victims=frozenset[str]().union(*(nominations.victims_of(key) for key in own)),
            budgets=tuple(self._state.budgets),
        )
        return _Attempt(group, request, members, {key: one.workload for key, one in members.items()}, now)

    async def _try(self, attempt: _Attempt) -> None:
        group = attempt.group
        try:
            found, position = await asyncio.to_thread(self._search, attempt.request)
            self._metrics.algorithm_seconds.observe(self._clock() - attempt.began)
            await self._carry_out(attempt, found, position)
        except Exception:
            # A bug in Bayplan: it is reported as such, and everything else is still scheduled.
            log.exception("internal error while placing a group", extra={"group": group.key})
            self._release_copy()  # it may be left in the middle of a change
            self._reporter.internal_error([one for one in attempt.members.values() if self._queue.is_unplaced(one)])
            self._known.tried_in_vain(group)
            self._known.again(group)
        finally:
            now = self._clock()
            self._is_trying, self._no_attempt_before = False, now + (now - attempt.began) * REST_FACTOR
            self._keep_copy()
            self._parts.on_change()

    async def _carry_out(self, attempt: _Attempt, found: GroupAttempt, position: int) -> None:
        group, members = attempt.group, attempt.members
        # The copy may be newer than the request, so a member that ran may have left before the plan was made.
        is_enough = not found.nodes or self._n_running(attempt) + len(found.nodes) >= attempt.request.group.min_members
        unchanged = all(self._is_as_before(members[key], workload) for key, workload in attempt.workloads.items())
        if not is_enough or not unchanged:
            self._known.again(group)
            return
        placed = [(members[key], node) for key, node in found.nodes.items()]
        if placed and not await self._assume(placed, position):
            self._known.tried_in_vain(group)
            self._known.again(group)
            return
        left = [one for key, one in members.items() if key not in found.nodes and one.stage is QueueStage.GROUP]
        if placed:
            log.info("group placed", extra={"group": group.key, "members": len(placed), "left": len(left)})
            self._metrics.group_attempts.labels("placed").inc()
            self._known.placed_now(group, has_more=bool(left))
            self._parts.start_task(self._bind(group, placed, attempt.began))
            return
        self._known.tried_in_vain(group)
        self._metrics.group_attempts.labels("nominated" if found.nominate else "waits").inc()
        nominated = self._nominate(attempt, found)
        self._reporter.waits(group.key, found.message, left, nominated, self._clock() - attempt.began)

    def _n_running(self, attempt: _Attempt) -> int:
        """How many other members of the group are on nodes by now."""
        return sum(one.key not in attempt.workloads for one in self._known.placed_of(attempt.group.key))

    def _is_as_before(self, pending: PendingPod, workload: Workload) -> bool:
        """Whether nothing has changed about a member that is pending still."""
        is_waiting = self._queue.holds(pending) and pending.stage in (QueueStage.GROUP, QueueStage.GATED)
        held = is_held_back(pending.workload) != is_held_back(workload)
        return is_waiting and not held and decides_alike(workload, pending.workload)

    # The copy of the index

    def _search(self, request: GroupRequest) -> tuple[GroupAttempt, int]:
        """Search on the copy, in the worker thread; with the position in the journal up to which it is one."""
        if self._follower is None:
            self._follower = Follower(self._index)
        copy, until = self._follower.catch_up(), time.monotonic() + MAX_SEARCH_SECONDS
        found = group_attempt.attempt(
            request, copy, lambda pod: self._engine_of(pod, copy), lambda: time.monotonic() > until
        )
        return found, self._follower.position

    def _engine_of(self, workload: Workload, copy: PlacementIndex) -> Engine:
        engine = self._copy_engines.get(workload.scheduler_name)
        if engine is None or engine.index is not copy:
            engine = Engine(copy, self._engines[workload.scheduler_name].rules)
            self._copy_engines[workload.scheduler_name] = engine
        return engine

    def _keep_copy(self) -> None:
        """Keep the copy until no group was tried for some time."""
        if self._release is not None:
            self._release.cancel()
        self._release = asyncio.get_running_loop().call_later(MAX_IDLE_SECONDS, self._release_copy_if_idle)

    def _release_copy_if_idle(self) -> None:
        if not self._is_trying:
            self._release_copy()

    def _release_copy(self) -> None:
        self._follower = None
        self._copy_engines.clear()

    # All or nothing

    async def _assume(self, placed: Sequence[tuple[PendingPod, str]], position: int) -> bool:
        """Assume all of these pods on their nodes; if that is not possible by now, none."""
        assumed: list[PendingPod] = []
        slots, is_current = self._index.slots.by_name, position == self._index.journal.end
        for pending, node in placed:
            slot = slots.get(node)
            # Volumes are chosen on the index, so they must be there.
            if slot is None or (pending.workload.needs.claims.names and not self._is_feasible(pending, slot)):
                self._give_up(assumed)
                return False
            self._queue.take(pending)
            self._parts.volumes.assume(pending.workload, slot)
            self._state.assume(pending, slot)
            assumed.append(pending)
        if is_current or await self._check(placed):
            return True
        self._give_up(assumed)
        return False

    async def _check(self, placed: Sequence[tuple[PendingPod, str]]) -> bool:
        """Whether each assumed pod is feasible where it is beside all others, a few at a time."""
        began = self._clock()
        for pending, node in placed:
            slot = self._index.slots.by_name.get(node)
            if slot is None or self._state.assumed.get(pending.key) != node or not self._queue.holds(pending):
                return False
            with self._index.without(pending.key):
                if not self._is_feasible(pending, slot):
                    return False
            if self._clock() - began >= MAX_CHECK_SECONDS:
                await asyncio.sleep(0)
                began = self._clock()
        return all(self._state.assumed.get(pending.key) == node for pending, node in placed)

    def _is_feasible(self, pending: PendingPod, slot: int) -> bool:
        workload = pending.workload
        return bool(filtering.run(workload, self._engines[workload.scheduler_name]).feasible[slot])

    def _give_up(self, assumed: Sequence[PendingPod]) -> None:
        for pending in assumed:
            self._parts.volumes.unreserve(pending.workload)
            if self._queue.holds(pending):
                self._state.requeue(pending)

    async def _bind(self, group: KnownGroup, placed: Sequence[tuple[PendingPod, str]], began: float) -> None:
        in_flight = self._parts.binds_in_flight
        for _ in placed:
            in_flight.enter()
        try:
            await self._parts.binder.bind_together(placed, began)
        finally:
            for _ in placed:
                in_flight.leave()
        if any(self._queue.holds(pending) for pending, _ in placed):
            self._known.tried_in_vain(group)  # what was refused is tried again after the backoff
        else:
            group.attempts, group.has_run = 0, True

    # Preemption

    def _nominate(self, attempt: _Attempt, found: GroupAttempt) -> Mapping[str, str]:
        """Nominate the members as the attempt says, and delete the victims; returns what is new, "" for no node."""
        pods = attempt.request.group.pods
        if found.nominate:
            carried_out = self._parts.preemptor.preempt_for_group(pods, found.nominate, found.victims)
            self._parts.start_task(self._evict(pods, carried_out))
        elif not found.clears_nominations:
            return {}
        cleared = self._clear_nominations(pod.key for pod in pods if pod.key not in found.nominate)
        return {key: found.nominate.get(key, "") for key in (*cleared, *found.nominate)}

    async def _evict(self, pods: Sequence[Workload], preemption: PreemptionAttempt) -> None:
        """Delete the victims; the group waits no longer for those that cannot be deleted."""
        nominations = self._queue.nominations

        def forget(victim: Workload) -> None:
            for pod in pods:
                nominations.note_victims(pod.key, nominations.victims_of(pod.key) - {victim.uid})

        await self._parts.preemptor.carry_out(pods[0], preemption, forget)

    def _clear_nominations(self, members: Iterable[WorkloadKey]) -> dict[WorkloadKey, str]:
        """Clear the nominations that members have, and return these members, each without a node."""
        cleared = [key for key in members if self._queue.nominations.target_of(key)]
        for key in cleared:
            self._queue.clear_nomination(key)
        return dict.fromkeys(cleared, "")

    # What is told without an attempt

    def _tell_problem(
        self,
        group: KnownGroup,
        problem: str,
        members: Sequence[PendingPod],
        nominated: Mapping[WorkloadKey, str],
        now: float,
    ) -> None:
        """Tell what is wrong with a group, unless it is only that its members have not all come yet."""
        self._known.tried_in_vain(group, counts=False)
        self._reporter.clear_nominated([one for one in members if one.key in nominated])
        if not problem:
            return  # its members are held back, and more than those that must run
        group.problem_since = now if group.problem_since is None else group.problem_since
        told_at = group.problem_since + PROBLEM_GRACE_SECONDS
        if now < told_at:
            self._known.again(group, told_at)
            return
        message = f"group {group.key} is not placed: {problem}"
        not_told = [one for one in members if one.stage is QueueStage.GROUP and one.message != message]
        if now >= group.quiet_until:
            told, not_told = not_told[:MAX_TOLD_AT_ONCE], not_told[MAX_TOLD_AT_ONCE:]
            # Each member that comes or leaves may change the message for all others.
            group.quiet_until = now + len(told) * SECONDS_PER_MESSAGE
            self._reporter.waits(group.key, message, told, {})
        if not_told:
            self._known.retry_at(group, group.quiet_until)

    def _review_running(self, group: KnownGroup, now: float) -> None:
        """Tell if too few members of a group run, of which none is pending."""
        least = self._known.is_below(group.key)
        if not least or self._known.has_pending(group.key):
            self._known.forget(group)
            return
        self._known.waits_no_longer(group)
        group.below_since = now if group.below_since is None else group.below_since
        if now - group.below_since < BELOW_GRACE_SECONDS:
            self._known.again(group, group.below_since + BELOW_GRACE_SECONDS)
        elif not group.told_below:
            group.told_below = True
            self._reporter.below_min(group.key, self._known.placed_of(group.key), least)

    def _time_out(self, group: KnownGroup, now: float) -> None:
        """Tell that a group has waited too long; if it was bound in part and never ran, let go what is bound."""
        waited = 0.0 if group.since is None else now - group.since
        members = list(self._known.waiting_of(group.key).values())
        self._reporter.timed_out(group.key, members, waited)
        placed = self._known.placed_of(group.key)
        least = self._known.min_members(group.key, members[0].workload) if members else 0
        if not 0 < len(placed) < least or group.has_run:
            return
        # What was created anew since others were deleted says nothing about those that are left.
        if not group.is_released and not _never_ran(placed, [one.workload for one in members]):
            return
        if all(one.controller is not None and one.key not in self._state.assumed for one in placed):
            group.is_released = True
            self._reporter.released(group.key, placed, least, waited)
            self._parts.start_task(self._delete(placed))

    async def _delete(self, placed: Sequence[Workload]) -> None:
        for workload in placed:
            try:
                await self._writer.delete(PodRef.of(workload))
            except ClusterError as error:
                log.warning("member not deleted", extra={"pod": workload.key, "error": str(error)})


def _never_ran(placed: Sequence[Workload], pending: Sequence[Workload]) -> bool:
    """
    Whether a group was never complete: no pending member was created after a bound one was started.

    Else a member that ran was replaced, and the others are not deleted for it.
    """
    last_created = max(one.created for one in pending)
    return all(not one.started or one.started >= last_created for one in placed)
