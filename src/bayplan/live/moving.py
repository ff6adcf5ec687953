"""
A plan of moves carried out on a live cluster: look, evict what may be evicted, wait until it is replaced, look again.

What to do next is told by `enforcing.move_execution`; here it is done, through the Eviction API. Ends between two moves
when interrupted, and says what was done however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

import msgspec

from bayplan.enforcing import move_execution
from bayplan.enforcing.move_execution import (
    GONE,
    Dropped,
    Evicting,
    MoveCompleted,
    MoveEvent,
    MoveExecution,
    MoveSettings,
    MovesOutcome,
    MoveWaiting,
    Refused,
    Replacement,
    SeenPod,
)
from bayplan.enforcing.rebalancing import Rebalancing, WorkloadMove
from bayplan.errors import ClusterError
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ApiError, ForbiddenError, UnauthorizedError
from bayplan.live.cluster_writer import (
    ApiServerWriter,
    ClusterWriter,
    PodGoneError,
    PodRef,
    RejectedError,
    UnknownOutcomeError,
)
from bayplan.live.pod_moves import PodMoves
from bayplan.model.workloads import WorkloadKey
from bayplan.watching.background_tasks import BackgroundTasks
from bayplan.watching.pod_watch import PodWatch

NOT_OBSERVED = "it was listed, but has not been seen since"
NOT_AUTHORIZED = (ForbiddenError, UnauthorizedError)


class Mover:
    """
    `read_cluster` reads the cluster anew; `report` is told of everything that happens. `outcome` is what was done so far.

    `interrupt`, once set, ends it before the next move.
    """

    def __init__(
        self,
        connection: Connection,
        plan: Rebalancing,
        view: PodMoves,
        *,
        read_cluster: Callable[[], PodMoves],
        report: Callable[[MoveEvent], None],
        settings: MoveSettings,
        on_trouble: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        uids = {move.workload: view.cluster.index.records[move.workload].workload.uid for move in plan.moves}
        self.outcome = MovesOutcome(plan=plan)
        self.interrupt = asyncio.Event()
        self._connection, self._read_cluster, self._report = connection, read_cluster, report
        self._writer: ClusterWriter = ApiServerWriter(connection)
        self._execution = MoveExecution(plan, uids, settings)
        self._settings, self._on_trouble, self._clock = settings, on_trouble, clock

    async def run(self) -> MovesOutcome:
        """Until nothing is left to do, or nothing can be done, or interrupted."""
        try:
            async with BackgroundTasks() as background_tasks:
                await self._carry_out(PodWatch(self._connection, background_tasks, self._on_trouble))
        finally:
            self.outcome.left = self._execution.left
            self.outcome.interrupted = self.interrupt.is_set()
        return self.outcome

    async def _carry_out(self, watch: PodWatch) -> None:
        patience_ends = self._clock() + self._settings.timeout
        while not self.interrupt.is_set() and not self.outcome.stopped:
            view = await asyncio.to_thread(self._read_cluster)
            if self.interrupt.is_set():
                return
            step = self._execution.step(view, self._clock())
            for dropped in step.dropped:
                self._drop(dropped)
            if step.evict:
                if await self._move(step.evict, view, watch):
                    patience_ends = self._clock() + self._settings.timeout
            elif not step.waiting:
                return
            elif not step.in_time and self._clock() >= patience_ends:
                self.outcome.stopped = f"{step.waiting}; waited for {self._settings.timeout:g} s"
            else:
                until = step.until if step.in_time else min(step.until, patience_ends)
                await self._wait(MoveWaiting(step.waiting, max(until - self._clock(), 0.0)))

    async def _wait(self, waiting: MoveWaiting) -> None:
        self._report(waiting)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(waiting.seconds):
                await self.interrupt.wait()

    # Moving

    async def _move(self, moves: Sequence[WorkloadMove], view: PodMoves, watch: PodWatch) -> bool:
        """Evict these and wait for their replacements; whether any of them could be evicted."""
        refs = {move.workload: _ref(view, move.workload) for move in moves}
        await watch.follow(ref.namespace for ref in refs.values())
        known = {pod.uid: pod for pod in watch.pods.values()}
        evicted = []
        for move in moves:
            if self.interrupt.is_set():
                break
            ref = refs[move.workload]
            if ref.uid not in known:
                self._execution.refused(move.workload, NOT_OBSERVED, self._clock())
            elif await self._evict(move, ref):
                evicted.append(move)
        old = [known[refs[move.workload].uid] for move in evicted]
        became = await self._settled(old, frozenset(known), watch)
        self._note(evicted, became, view)
        return bool(evicted)

    async def _evict(self, move: WorkloadMove, pod: PodRef) -> bool:
        """Whether the pod is on its way out now."""
        key = move.workload
        self._report(Evicting(move, self._number(), len(self.outcome.plan.moves)))
        try:
            await self._writer.evict(pod)
        except PodGoneError:
            self._execution.drop(key)
            self._drop(Dropped(key, GONE))
            return False
        except (RejectedError, UnknownOutcomeError) as error:
            if isinstance(error.__cause__, NOT_AUTHORIZED):
                raise error.__cause__ from None
            self._execution.refused(key, _why(error), self._clock())
            self._report(Refused(key, _why(error)))
            return False
        self._execution.evicted(key, self._clock())
        return True

    def _number(self) -> int:
        return len(self.outcome.plan.moves) - len(self._execution.left) + 1

    async def _settled(
        self, evicted: Sequence[SeenPod], before: frozenset[str], watch: PodWatch
    ) -> tuple[Replacement, ...]:
        """What became of the evicted pods, once it is over or nobody wants to wait any longer."""
        deadline = self._clock() + self._settings.timeout
        while True:
            watch.changed.clear()
            became = move_execution.find_replacements(evicted, before, watch.pods.values())
            left = deadline - self._clock()
            if all(one.is_over for one in became) or self.interrupt.is_set() or left <= 0:
                return became
            await _either(watch.changed, self.interrupt, left)

    def _note(self, moves: Sequence[WorkloadMove], became: Sequence[Replacement], view: PodMoves) -> None:
        """Take note of moves that were made, and end it all where going on would do harm."""
        made = [MoveCompleted(move, replacement) for move, replacement in zip(moves, became, strict=True)]
        landed = [one for one in made if one.target]
        gains = view.reached([(one.move.workload, one.target) for one in landed])
        gained = dict(zip((one.move.workload for one in landed), gains, strict=True))
        for one in made:
            known = msgspec.structs.replace(one, gain=gained.get(one.move.workload, 0))
            self.outcome.made.append(known)
            self._report(known)
            if not one.replacement.is_over and not self.interrupt.is_set():
                missing = f"{one.move.workload} was evicted, but {one.replacement.missing}"
                self.outcome.stopped = f"{missing} within {self._settings.timeout:g} s"
            elif one.target and not known.as_planned and known.gain <= 0:
                # More of the same would disturb for nothing.
                self.outcome.stopped = (
                    f"the scheduler put {one.move.workload} elsewhere than planned, and nothing was gained"
                )

    def _drop(self, dropped: Dropped) -> None:
        self.outcome.dropped.append(dropped)
        self._report(dropped)


def _ref(view: PodMoves, key: WorkloadKey) -> PodRef:
    return PodRef.of(view.cluster.index.records[key].workload)


def _why(error: ClusterError) -> str:
    """In the API server's own words, if it said anything: disruption budgets are named in the causes."""
    said = error.__cause__
    if not isinstance(said, ApiError):
        return str(error)
    return " ".join([said.message, *(cause.message for cause in said.details.causes or () if cause.message)])


async def _either(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    """Until one of the two is set, or so many seconds have passed."""
    waits = [asyncio.ensure_future(event.wait()) for event in (one, other)]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
