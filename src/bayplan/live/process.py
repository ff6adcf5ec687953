"""
The life of a scheduler process: sync all watches, become leader, schedule, and release the lease when stopped.

All state comes from the API server, so the process may be killed at any moment. What is watched and scheduled is up to
the subclass.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import random
import time
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from typing import IO, Any, Generic, Protocol, TypeVar

from bayplan.errors import ClusterError, Fault, InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.election_thread import ElectionThread
from bayplan.kube_api.errors import KubeError, UnreachableError
from bayplan.kube_api.leader_election import LeaderElector
from bayplan.kube_api.pacing import Backoff
from bayplan.kube_api.reflector import Handler, Reflector
from bayplan.kube_api.resources import Resource
from bayplan.live import event_loop, explain_endpoint, serving
from bayplan.live.assembly import SchedulerSettings
from bayplan.live.enforcement_loop import EnforcementLoop
from bayplan.live.events import EventRecorder
from bayplan.live.explain_endpoint import ExplainEndpoint
from bayplan.live.loop import SchedulingLoop
from bayplan.live.metrics import CommonMetrics, Reading, text_of_several
from bayplan.serving.server_thread import ServerThread
from bayplan.watching.background_tasks import BackgroundTasks, wait_for_any
from bayplan.watching.resources import ResourceHandler, WatchedResource
from bayplan.writing.recordings import Recorder

log = logging.getLogger("bayplan")
SHUTDOWN_TIMEOUT_SECONDS = 5.0  # for writes in progress and unsent events


class LeadershipLostError(ClusterError):
    """Another replica may write now. The process must exit and be started again."""


class Assembly(Protocol):
    """The parts of one scheduler that every process has."""

    recorder: Recorder | None

    @property
    def index(self) -> PlacementIndex: ...

    @property
    def metrics(self) -> CommonMetrics: ...

    @property
    def events(self) -> EventRecorder: ...

    @property
    def scheduler(self) -> SchedulingLoop[Any]: ...

    def change_handler(self, resource: Resource) -> Callable[[], None]:
        """Return what to call after an object of this resource has changed."""

    def recording_header(self) -> dict[str, Any]:
        """Return the settings that a recording repeats."""


Parts = TypeVar("Parts", bound=Assembly)


class SchedulerProcess(Generic[Parts]):
    """
    One scheduler process.

    `synced` is true once every watch has listed its objects; `scheduling` is set while something is scheduled. `stop`
    ends the process in an orderly way. `workloads` says what is scheduled.
    """

    workloads = ""

    def __init__(
        self, connection: Connection, settings: SchedulerSettings, names: Iterable[str], wall: Callable[[], datetime]
    ) -> None:
        """`names` are those of the schedulers, for the log."""
        self._connection = connection
        self._settings = settings
        self._names = ", ".join(sorted(names))
        self._wall = wall
        self._election = self._make_election()
        self._parts = self._assemble()
        self._reflectors = [self._reflector(one) for one in self._watched()]
        self._stopping = asyncio.Event()
        self.scheduling = asyncio.Event()
        self.synced = False
        self._waits_for_server = False
        self._served: list[SchedulerProcess[Any]] = [self]
        self.ports: list[int] = []
        self._add_metrics()

    # For subclasses

    def _assemble(self) -> Parts:
        """Build the parts; their writer writes only while `_may_write`."""
        raise NotImplementedError

    def _watched(self) -> Iterable[WatchedResource]:
        raise NotImplementedError

    def _comes_last(self, resource: Resource) -> bool:
        """Whether the objects of this resource are counted on those of the others, which are listed before."""
        raise NotImplementedError

    def _handler(self, watched: WatchedResource) -> Handler[Any]:
        """What the reports about a resource are given to."""
        unreadable = self._parts.metrics.undecodable_objects
        on_change = self._parts.change_handler(watched.resource)
        return ResourceHandler(watched, on_change, lambda name: unreadable.labels(name).inc())

    def _before_sync(self) -> None:
        """What is to be done before the first list."""

    async def _sync_further(self, background_tasks: BackgroundTasks) -> None:
        """Watch what only the objects listed so far tell of."""

    def _after_sync(self, background_tasks: BackgroundTasks) -> None:
        """Start what runs whether this replica leads or not."""

    async def _before_leading(self) -> None:
        """What is to be done before the first decision of a leader."""

    def _while_leading(self) -> list[Coroutine[Any, Any, None]]:
        """What runs beside the scheduler while this replica leads."""
        return []

    @property
    def enforcement(self) -> EnforcementLoop | None:
        """What enforces execution-time rules while this replica leads; None if nothing does."""
        return None

    def toggle_enforcement(self) -> None:
        """Switch enforcement off, or on again, without a restart."""
        if self.enforcement is not None:
            self.enforcement.switch(on=not self.enforcement.on)

    def explainer(self) -> ExplainEndpoint:
        """Build what explains the workloads of this process."""
        raise NotImplementedError

    def _facts(self) -> dict[str, int]:
        """What is logged once the watches are synced."""
        return {}

    # Metrics

    @property
    def metrics(self) -> CommonMetrics:
        """The metrics at /metrics, to which other parts of this process add theirs."""
        return self._parts.metrics

    def observe_review(self, path: str, allowed: bool, seconds: float) -> None:
        """Count an admission review that the webhook in this process has answered."""
        self._parts.metrics.reviews.labels(path, "allowed" if allowed else "refused").observe(seconds)

    def observe_loop_iteration(self, seconds: float) -> None:
        """Count an iteration of the event loop of this process."""
        self._parts.metrics.loop_iterations.observe(seconds)

    # Life

    def serve_for(self, other: SchedulerProcess[Any]) -> None:
        """
        Serve health, metrics and explanations of another scheduler in this process, which has no addresses, too.

        If its API server cannot be reached at the start, it waits, so that this one need not.
        """
        self._served.append(other)
        other._waits_for_server = True

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Run until stopped; raise whatever else ends the run."""
        async with contextlib.AsyncExitStack() as stack:
            recording = self._open_recording(stack)
            if not await self._connect_unless_stopped():
                return
            await self._serve(stack)
            background_tasks = await stack.enter_async_context(BackgroundTasks())
            if not await self._sync_unless_stopped(background_tasks):
                return
            if recording is not None:
                self._parts.recorder = Recorder(
                    recording, self._parts.index, self._parts.recording_header(), self._wall
                )
                stack.callback(self._parts.recorder.close)
            await self._lead(background_tasks)

    async def _serve(self, stack: contextlib.AsyncExitStack) -> None:
        """Serve health, metrics and explanations until the stack is closed, in a thread that cannot hold this loop."""
        if not self._settings.addresses:
            return
        thread = await stack.enter_async_context(ServerThread(serving.PROCESSOR_SHARE))
        by_workloads = {one.workloads: one.metrics for one in self._served}
        metrics = self.metrics.text if len(by_workloads) == 1 else lambda: text_of_several(by_workloads)
        for address in self._settings.addresses:
            app = serving.application(thread, self._unready, metrics)
            if address == self._settings.explain_address:
                explain = explain_endpoint.by_parameter([one.explainer() for one in self._served])
                app.router.add_get(explain_endpoint.PATH, serving.on_owner(thread, explain))
            port = await stack.enter_async_context(serving.served(thread, app, address.host, address.port))
            self.ports.append(port)

    # Watching

    async def _connect_unless_stopped(self) -> bool:
        """Return true when the API server has answered, false if stopped before."""
        backoff, told = Backoff(random.Random()), False  # noqa: S311
        while not self._stopping.is_set():
            try:
                version = await self._connection.version()
            except KubeError as error:
                if not (self._waits_for_server and (error.retriable or isinstance(error, UnreachableError))):
                    raise
                if not told:
                    log.warning("waiting for the API server", extra={"error": str(error)})
                told = True
                await wait_for_any(self._stopping, timeout=backoff.next())
            else:
                log.info("connected", extra={"server": self._connection.server, "version": version})
                return True
        return False

    async def _sync_unless_stopped(self, background_tasks: BackgroundTasks) -> bool:
        """Return true when all watches are synced, false if stopped before."""
        syncing = background_tasks.start(self._sync(background_tasks))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({syncing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        return self.synced

    async def _sync(self, background_tasks: BackgroundTasks) -> None:
        """Start all watches and return when they are synced."""
        began = time.monotonic()
        self._before_sync()
        with event_loop.without_collection():
            for last in (False, True):
                batch = [one for one in self._reflectors if self._comes_last(one.resource) is last]
                for reflector in batch:
                    background_tasks.start(reflector.run())
                await asyncio.gather(*(reflector.synced.wait() for reflector in batch))
            await self._sync_further(background_tasks)
        background_tasks.start(event_loop.collect_periodically())
        self._after_sync(background_tasks)
        self.synced = True
        log.info("synced", extra={**self._facts(), "seconds": round(time.monotonic() - began, 2)})

    def _reflector(self, watched: WatchedResource) -> Reflector[Any]:
        handler = self._handler(watched)
        return Reflector(
            self._connection,
            watched.resource,
            watched.item_type,
            handler,
            watched.selection,
            may_be_missing=watched.may_be_missing,
            on_trouble=log.warning,
        )

    # Leader election

    def _make_election(self) -> ElectionThread | None:
        """Lease renewals wait neither for scheduling nor for binds that a slow server does not answer."""
        election = self._settings.election
        if election is None or self._settings.dry_run:
            return None

        def elector(connection: Connection) -> LeaderElector:
            return LeaderElector(
                connection,
                election.namespace,
                election.name,
                self._settings.identity,
                lease_duration=election.lease_duration,
                renew_deadline=election.renew_deadline,
                retry_period=election.retry_period,
                on_new_leader=lambda leader: log.info("leader", extra={"leader": leader}),
                on_trouble=log.warning,
                now=self._wall,
            )

        return ElectionThread(self._connection.separate(), elector)

    def _may_write(self) -> bool:
        return self._election is None or self._election.may_write()

    async def _lead(self, background_tasks: BackgroundTasks) -> None:
        """Schedule while this replica leads. When stopped, finish the writes in progress and release the lease."""
        election = self._election
        electing = None if election is None else background_tasks.start(election.run())
        if election is not None:
            await wait_for_any(election.leading, self._stopping)
        if not self._stopping.is_set():
            background_tasks.start(self._parts.events.run())
            await self._before_leading()
            leading = [background_tasks.start(one) for one in (self._parts.scheduler.run(), *self._while_leading())]
            self.scheduling.set()
            log.info("scheduling", extra={"schedulers": self._names})
            await wait_for_any(self._stopping, *([] if election is None else [election.lost]))
            for task in leading:
                task.cancel()
            if not self._stopping.is_set():
                raise LeadershipLostError("leadership was lost: another replica may schedule now")
            log.info("stopping")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SHUTDOWN_TIMEOUT_SECONDS):
                    await self._parts.scheduler.idle()
                    await self._parts.events.flush()
        if electing is not None:
            electing.cancel()
            await asyncio.wait([electing])

    # Status, metrics and recording

    def _unready(self) -> str:
        return "" if all(one.synced for one in self._served) else "not all watches are synced yet"

    def _open_recording(self, stack: contextlib.AsyncExitStack) -> IO[bytes] | None:
        """Open the file to record into, before anything else, so that a wrong path is reported at once."""
        if not self._settings.record:
            return None
        try:
            return stack.enter_context(pathlib.Path(self._settings.record).open("wb"))
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise InputError(Fault(message, file=self._settings.record)) from None

    def _add_metrics(self) -> None:
        self.metrics.gauge(
            "bayplan_leading",
            "1 while this replica is the leader and may write, else 0.",
            lambda: [((), float(self.synced and self._may_write()))],
        )
        counts: tuple[tuple[str, str, Callable[[Reflector[Any]], int]], ...] = (
            ("bayplan_watch_lists", "Number of LIST requests, by resource.", lambda one: one.lists),
            ("bayplan_watch_relists", "Number of LIST requests after a watch expired.", lambda one: one.relists),
            ("bayplan_watch_restarts", "Number of watches resumed from the last version.", lambda one: one.restarts),
            ("bayplan_watch_events", "Number of watch events received, by resource.", lambda one: one.events),
            (
                "bayplan_watch_stale_events",
                "Number of watch events ignored because they told of the past, by resource.",
                lambda one: one.stale_events,
            ),
        )
        for name, text, read in counts:
            self.metrics.counter(name, text, self._by_resource(read), ("resource",))

    def _by_resource(self, read: Callable[[Reflector[Any]], int]) -> Reading:
        return lambda: [((str(one.resource),), float(read(one))) for one in self._reflectors]


async def run_together(*processes: SchedulerProcess[Any]) -> None:
    """Run several schedulers until one of them ends; stop the others in an orderly way, and raise what ended it."""
    running = [asyncio.create_task(one.run()) for one in processes]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in processes:
            one.stop()
        ended = await asyncio.gather(*running, return_exceptions=True)
    for failure in ended:
        if isinstance(failure, BaseException):
            raise failure
