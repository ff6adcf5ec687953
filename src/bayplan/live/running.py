"""
A scheduler from beginning to end: watch until everything is known, stand for election, schedule, hand over.

Whatever this process knows it has from the API server, so it may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import IO, Any

import msgspec
from aiohttp import web

from bayplan.errors import ClusterError, Fault, InputError
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import NotFoundError
from bayplan.kube_api.leader_election import LeaderElector
from bayplan.kube_api.reflector import Reflector
from bayplan.kube_api.resources import PODS
from bayplan.live import event_loop, serving
from bayplan.live.assembly import SchedulerAssembly, SchedulerSettings
from bayplan.live.cluster_writer import ApiServerWriter, DryRunWriter
from bayplan.live.enforcement import Enforcement
from bayplan.live.metrics import Reading
from bayplan.live.scheduler import Profiles
from bayplan.mapping import pods
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.watching import resources
from bayplan.watching.background_tasks import BackgroundTasks
from bayplan.watching.cluster_state import ClusterState
from bayplan.watching.resources import ResourceHandler
from bayplan.wire.pods import Pod
from bayplan.writing.recordings import Recorder

log = logging.getLogger("bayplan")
SHUTDOWN_TIMEOUT_SECONDS = 5.0  # seconds for binds under way and unsent events when told to stop


class LeadershipLostError(ClusterError):
    """Another replica may write now; whoever started us starts us again."""


class RunningScheduler:
    """
    One scheduler process. `synced` once everything is known, `scheduling` is set while it places pods; `stop` ends it
    in good order.
    """

    def __init__(
        self,
        connection: Connection,
        profiles: Profiles,
        settings: SchedulerSettings,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._connection = connection
        # Renewals of the lease must not queue behind binds that a slow server does not answer.
        self._election_connection = connection.separate()
        self._settings = settings
        self._wall = wall
        self._elector = self._candidate()
        writer = DryRunWriter() if settings.dry_run else ApiServerWriter(connection, self._may_write)
        self._parts = SchedulerAssembly(writer, profiles, settings, clock=time.monotonic, wall=wall)
        followed = resources.scheduling_resources(self._parts.state)
        if settings.quota:
            followed = (resources.quota_resource(self._parts.state), *followed)
        self._reflectors = [self._reflector(one) for one in followed]
        self._stopping = asyncio.Event()
        self.scheduling = asyncio.Event()
        self.synced = False
        self.ports: list[int] = []
        self._add_gauges()

    @property
    def state(self) -> ClusterState:
        """The cluster as it is known, for whoever else serves in this process. To be read on the loop's thread only."""
        return self._parts.state

    @property
    def enforcement(self) -> Enforcement | None:
        return self._parts.enforcement

    def toggle_enforcement(self) -> None:
        """Switch enforcement off, or on again, without a restart."""
        if self.enforcement is not None:
            self.enforcement.switch(on=not self.enforcement.on)

    def add_gauge(self, name: str, text: str, reading: Reading, labels: tuple[str, ...] = ()) -> None:
        """Let whoever else works in this process add a gauge to /metrics."""
        self._parts.metrics.gauge(name, text, reading, labels)

    def observe_review(self, path: str, allowed: bool, seconds: float) -> None:
        """Count a review of the webhook that serves in this process."""
        self._parts.metrics.reviews.labels(path, "allowed" if allowed else "refused").observe(seconds)

    def observe_loop_iteration(self, seconds: float) -> None:
        """Count a turn of the event loop that this process runs in."""
        self._parts.metrics.loop_iterations.observe(seconds)

    async def pod(self, namespace: str, name: str) -> Workload | None:
        """One pod, as the index has it or as the API server tells; None if there is none."""
        record = self.state.index.records.get(WorkloadKey(f"{namespace}/{name}"))
        if record is not None:
            return record.workload
        try:
            answer = await self._connection.get(PODS.path(namespace, name))
        except NotFoundError:
            return None
        return pods.workload_of(msgspec.json.decode(answer, type=Pod), self.state.spread_context.current)

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Until stopped; raises what ended it otherwise."""
        async with contextlib.AsyncExitStack() as stack:
            recording = self._recording(stack)
            version = await self._connection.version()
            log.info("connected", extra={"server": self._connection.server, "version": version})
            for server in self._servers():
                await stack.enter_async_context(server)
                self.ports.append(server.port)
            await stack.enter_async_context(self._election_connection)
            background_tasks = await stack.enter_async_context(BackgroundTasks())
            if not await self._knows_everything(background_tasks):
                return
            if recording is not None:
                self._parts.recorder = Recorder(recording, self.state.index, self._parts.recording_header(), self._wall)
                stack.callback(self._parts.recorder.close)
            await self._lead(background_tasks)

    # Knowing

    async def _knows_everything(self, background_tasks: BackgroundTasks) -> bool:
        """Return when all is known; false if told to stop before."""
        knowing, told = (
            background_tasks.start(self._know_everything(background_tasks)),
            asyncio.ensure_future(self._stopping.wait()),
        )
        try:
            await asyncio.wait({knowing, told}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
        return self.synced

    async def _know_everything(self, background_tasks: BackgroundTasks) -> None:
        """Start watching and return when all is known; pods come last, as they are counted where their nodes are."""
        began = time.monotonic()
        index, queue = self._parts.state.index, self._parts.state.queue
        _ = index.pod_table, index.attachments  # kept from now on: made later, each would take one look at all pods
        with event_loop.without_collection():
            for last in (False, True):
                batch = [one for one in self._reflectors if (one.resource == PODS) is last]
                for reflector in batch:
                    background_tasks.start(reflector.run())
                await asyncio.gather(*(reflector.synced.wait() for reflector in batch))
        background_tasks.start(event_loop.collect_periodically())
        self.synced = True
        facts = {"nodes": len(index.slots), "pods": len(index.records), "pending": len(queue)}
        log.info("synced", extra={**facts, "seconds": round(time.monotonic() - began, 2)})

    def _reflector(self, one: resources.WatchedResource) -> Reflector[Any]:
        unreadable = self._parts.metrics.undecodable_objects
        listener = ResourceHandler(
            one, self._parts.change_handler(one.resource), lambda name: unreadable.labels(name).inc()
        )
        return Reflector(self._connection, one.resource, one.item_type, listener, one.selection, on_trouble=log.warning)

    # Leading

    def _candidate(self) -> LeaderElector | None:
        election = self._settings.election
        if election is None or self._settings.dry_run:
            return None
        return LeaderElector(
            self._election_connection,
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

    def _may_write(self) -> bool:
        return self._elector is None or self._elector.may_write()

    async def _lead(self, background_tasks: BackgroundTasks) -> None:
        """Schedule while we lead. Told to stop, finish what is under way and let the next one lead at once."""
        elector = self._elector
        standing = None if elector is None else background_tasks.start(elector.run())
        if elector is not None:
            await _any_of(elector.leading, self._stopping)
        if not self._stopping.is_set():
            background_tasks.start(self._parts.events.run())
            scheduling = background_tasks.start(self._parts.scheduler.run())
            enforcing = None if self.enforcement is None else background_tasks.start(self.enforcement.run())
            self.scheduling.set()
            log.info("scheduling", extra={"schedulers": ", ".join(sorted(self._parts.profiles))})
            await _any_of(self._stopping, *([] if elector is None else [elector.lost]))
            scheduling.cancel()
            if enforcing is not None:
                enforcing.cancel()
            if not self._stopping.is_set():
                raise LeadershipLostError("leadership was lost: another replica may schedule now")
            await self._finish()
        if standing is not None:
            standing.cancel()
            await asyncio.wait([standing])

    async def _finish(self) -> None:
        log.info("stopping")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHUTDOWN_TIMEOUT_SECONDS):
                await self._parts.scheduler.idle()
                await self._parts.events.flush()

    # Telling

    def _servers(self) -> list[serving.StatusServer]:
        def app() -> web.Application:
            return serving.application(lambda: "", self._unready, self._parts.metrics.text)

        return [serving.StatusServer(app(), address.host, address.port) for address in self._settings.addresses]

    def _unready(self) -> str:
        return "" if self.synced else "not everything is known yet"

    def _recording(self, stack: contextlib.AsyncExitStack) -> IO[bytes] | None:
        """The file to record into, opened before there is anything to record: a mistake is told at once."""
        if not self._settings.record:
            return None
        try:
            return stack.enter_context(pathlib.Path(self._settings.record).open("wb"))
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise InputError(Fault(message, file=self._settings.record)) from None

    def _add_gauges(self) -> None:
        gauge = self._parts.metrics.gauge
        gauge("bayplan_leading", "1 while this replica may write.", lambda: [((), float(self._leads()))])
        counts: tuple[tuple[str, str, Callable[[Reflector[Any]], int]], ...] = (
            ("bayplan_watch_lists", "Lists made, by resource.", lambda one: one.lists),
            ("bayplan_watch_relists", "Lists made because a watch could not go on.", lambda one: one.relists),
            ("bayplan_watch_restarts", "Watches begun again where the last one ended.", lambda one: one.restarts),
            ("bayplan_watch_events", "Events seen, by resource.", lambda one: one.events),
        )
        for name, text, read in counts:
            gauge(name, text, self._by_resource(read), ("resource",))

    def _leads(self) -> bool:
        return self.synced and self._may_write()

    def _by_resource(
        self, read: Callable[[Reflector[Any]], int]
    ) -> Callable[[], Sequence[tuple[tuple[str, ...], float]]]:
        return lambda: [((str(one.resource),), float(read(one))) for one in self._reflectors]


async def _any_of(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
