"""
Carries out a plan of moves on a live cluster: read it, evict what may be evicted, wait for replacements, read again.

`enforcing.move_execution` decides the next step; here it is done through the Eviction API. An interrupt ends the run
between two moves, and the outcome is reported however the run ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from bayplan.enforcing import move_execution
from bayplan.enforcing.move_execution import (
    GONE,
    EvictionRejected,
    EvictionStarted,
    MoveCompleted,
    MoveDropped,
    MoveEvent,
    MoveExecution,
    MoveSettings,
    MovesOutcome,
    MoveWaiting,
    Replacement,
    SeenPod,
)
from bayplan.enforcing.rebalancing import Rebalancing, WorkloadMove
from bayplan.errors import ClusterError
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.decoding import Key
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
from bayplan.watching.background_tasks import BackgroundTasks, wait_for_any
from bayplan.watching.pod_watch import PodWatch

NOT_OBSERVED = "it was listed, but has not been seen since"
NOT_AUTHORIZED = (ForbiddenError, UnauthorizedError)


class FollowedPods(Protocol):
    """The pods of the namespaces that are followed; `changed` is set when one is added, changed or deleted."""

    pods: dict[Key, SeenPod]
    changed: asyncio.Event

    async def follow(self, namespaces: Iterable[str]) -> None:
        """Follow these namespaces too, and return when their pods are known."""
        ...


class MoveTools(msgspec.Struct, frozen=True):
    """How a mover evicts pods, and how it follows what becomes of them."""

    writer: ClusterWriter
    follow_pods: Callable[[BackgroundTasks], FollowedPods]


def tools_of(connection: Connection, on_trouble: Callable[[str], None] = lambda _text: None) -> MoveTools:
    """Evict through an API server, and watch its pods."""
    return MoveTools(ApiServerWriter(connection), lambda tasks: PodWatch(connection, tasks, on_trouble))


class Mover:
    """
    Moves pods by evicting them. `outcome` is what was done so far; `interrupt`, once set, ends the run before a move.

    `read_cluster` reads the current state of the cluster; `report` receives every event of the run.
    """

    def __init__(
        self,
        tools: MoveTools,
        plan: Rebalancing,
        view: PodMoves,
        *,
        read_cluster: Callable[[], PodMoves],
        report: Callable[[MoveEvent], None],
        settings: MoveSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        uids = {move.workload: view.cluster.index.records[move.workload].workload.uid for move in plan.moves}
        self.outcome = MovesOutcome(plan=plan)
        self.interrupt = asyncio.Event()
        self._tools, self._writer = tools, tools.writer
        self._read_cluster, self._report = read_cluster, report
        self._execution = MoveExecution(plan, uids, settings)
        self._settings, self._clock = settings, clock

    async def run(self) -> MovesOutcome:
        """Run until all moves are made, none can be made, or `interrupt` is set."""
        try:
            async with BackgroundTasks() as background_tasks:
                await self._carry_out(self._tools.follow_pods(background_tasks))
        finally:
            self.outcome.left = self._execution.left
            self.outcome.interrupted = self.interrupt.is_set()
        return self.outcome

    async def _carry_out(self, watch: FollowedPods) -> None:
        deadline = self._clock() + self._settings.timeout
        while not self.interrupt.is_set() and not self.outcome.stopped:
            view = await asyncio.to_thread(self._read_cluster)
            if self.interrupt.is_set():
                return
            step = self._execution.step(view, self._clock())
            for dropped in step.dropped:
                self._drop(dropped)
            if step.evict:
                if await self._evict_and_wait(step.evict, view, watch):
                    deadline = self._clock() + self._settings.timeout
            elif not step.waiting:
                return
            elif not step.in_time and self._clock() >= deadline:
                self.outcome.stopped = f"{step.waiting}; waited for {self._settings.timeout:g} s"
            else:
                until = step.until if step.in_time else min(step.until, deadline)
                await self._wait(MoveWaiting(step.waiting, max(until - self._clock(), 0.0)))

    async def _wait(self, waiting: MoveWaiting) -> None:
        self._report(waiting)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(waiting.seconds):
                await self.interrupt.wait()

    async def _evict_and_wait(self, moves: Sequence[WorkloadMove], view: PodMoves, watch: FollowedPods) -> bool:
        """Evict these pods and wait for their replacements. Return whether any pod was evicted."""
        refs = {move.workload: _ref(view, move.workload) for move in moves}
        await watch.follow(ref.namespace for ref in refs.values())
        known = {pod.uid: pod for pod in watch.pods.values()}
        evicted = []
        for move in moves:
            if self.interrupt.is_set():
                break
            ref = refs[move.workload]
            if ref.uid not in known:
                self._execution.rejected(move.workload, NOT_OBSERVED, self._clock())
            elif await self._evict(move, ref):
                evicted.append(move)
        old = [known[refs[move.workload].uid] for move in evicted]
        replacements = await self._wait_for_replacements(old, frozenset(known), watch)
        self._note_completed(evicted, replacements, view)
        return bool(evicted)

    async def _evict(self, move: WorkloadMove, pod: PodRef) -> bool:
        """Evict a pod. Return whether the API server accepted the eviction."""
        key = move.workload
        total = len(self.outcome.plan.moves)
        self._report(EvictionStarted(move, total - len(self._execution.left) + 1, total))
        try:
            await self._writer.evict(pod)
        except PodGoneError:
            self._execution.drop(key)
            self._drop(MoveDropped(key, GONE))
            return False
        except (RejectedError, UnknownOutcomeError) as error:
            if isinstance(error.__cause__, NOT_AUTHORIZED):
                raise error.__cause__ from None
            self._execution.rejected(key, _reason(error), self._clock())
            self._report(EvictionRejected(key, _reason(error)))
            return False
        self._execution.evicted(key, self._clock())
        return True

    async def _wait_for_replacements(
        self, evicted: Sequence[SeenPod], before: frozenset[str], watch: FollowedPods
    ) -> tuple[Replacement, ...]:
        """Return the replacements of the evicted pods when all are complete, on timeout or on interrupt."""
        deadline = self._clock() + self._settings.timeout
        while True:
            watch.changed.clear()
            found = move_execution.find_replacements(evicted, before, watch.pods.values())
            left = deadline - self._clock()
            if all(one.is_over for one in found) or self.interrupt.is_set() or left <= 0:
                return found
            await wait_for_any(watch.changed, self.interrupt, timeout=left)

    def _note_completed(
        self, moves: Sequence[WorkloadMove], replacements: Sequence[Replacement], view: PodMoves
    ) -> None:
        """Record completed moves, and stop the run if further moves would do harm."""
        completed = [MoveCompleted(move, replacement) for move, replacement in zip(moves, replacements, strict=True)]
        landed = [one for one in completed if one.target]
        gains = view.gains_of([(one.move.workload, one.target) for one in landed])
        gained = dict(zip((one.move.workload for one in landed), gains, strict=True))
        for one in completed:
            known = msgspec.structs.replace(one, gain=gained.get(one.move.workload, 0))
            self.outcome.made.append(known)
            self._report(known)
            if not one.replacement.is_over and not self.interrupt.is_set():
                missing = f"{one.move.workload} was evicted, but {one.replacement.missing}"
                self.outcome.stopped = f"{missing} within {self._settings.timeout:g} s"
            elif one.target and not known.as_planned and known.gain <= 0:
                # Further moves would disrupt pods without a gain.
                self.outcome.stopped = (
                    f"the scheduler put {one.move.workload} elsewhere than planned, and nothing was gained"
                )

    def _drop(self, dropped: MoveDropped) -> None:
        self.outcome.dropped.append(dropped)
        self._report(dropped)


def _ref(view: PodMoves, key: WorkloadKey) -> PodRef:
    return PodRef.of(view.cluster.index.records[key].workload)


def _reason(error: ClusterError) -> str:
    """Return the message of the API server with its causes, which name disruption budgets; else the error itself."""
    cause = error.__cause__
    if not isinstance(cause, ApiError):
        return str(error)
    return " ".join([cause.message, *(one.message for one in cause.details.causes or () if one.message)])
