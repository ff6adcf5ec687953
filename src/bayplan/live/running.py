"""
The life of a scheduler process: sync all watches, become leader, schedule, and release the lease when stopped.

All state comes from the API server, so the process may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Any

import msgspec
from aiohttp import web

from bayplan.errors import ClusterError, Fault, InputError
from bayplan.explaining.peer_names import PeerNames
from bayplan.kube_api import decoding
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.election_thread import ElectionThread
from bayplan.kube_api.errors import NotFoundError
from bayplan.kube_api.leader_election import LeaderElector
from bayplan.kube_api.reflector import Handler, Reflector
from bayplan.kube_api.resources import PODS
from bayplan.live import event_loop, explain_endpoint, serving
from bayplan.live.assembly import SchedulerAssembly, SchedulerSettings
from bayplan.live.cluster_writer import ApiServerWriter, DryRunWriter
from bayplan.live.enforcement import Enforcement
from bayplan.live.explain_endpoint import ExplainEndpoint
from bayplan.live.metrics import Metrics, Reading
from bayplan.mapping import pods
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.profiles import RulesByScheduler
from bayplan.serving.server_thread import ServerThread
from bayplan.watching import resources
from bayplan.watching.background_tasks import BackgroundTasks, wait_for_any
from bayplan.watching.cluster_state import ClusterState
from bayplan.watching.large_changes import PacedPodHandler
from bayplan.watching.resources import ResourceHandler, WatchedResource
from bayplan.wire.pods import Pod
from bayplan.writing.recordings import Recorder

log = logging.getLogger("bayplan")
_pod = msgspec.json.Decoder(Pod)
SHUTDOWN_TIMEOUT_SECONDS = 5.0  # for binds in progress and unsent events


class LeadershipLostError(ClusterError):
    """Another replica may write now. The process must exit and be started again."""


class RunningScheduler:
    """
    One scheduler process.

    `synced` is true once every watch has listed its objects; `scheduling` is set while pods are scheduled. `stop` ends
    the process in an orderly way.
    """

    def __init__(
        self,
        connection: Connection,
        profiles: RulesByScheduler,
        settings: SchedulerSettings,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._wall = wall
        self._election = self._make_election()
        writer = DryRunWriter() if settings.dry_run else ApiServerWriter(connection, self._may_write)
        self._profiles = profiles
        self._parts = SchedulerAssembly(writer, profiles, settings, clock=time.monotonic, wall=wall)
        watched = resources.scheduling_resources(self._parts.state)
        if settings.quota:
            watched = (resources.quota_resource(self._parts.state), *watched)
        self._reflectors = [self._reflector(one) for one in watched]
        self._stopping = asyncio.Event()
        self.scheduling = asyncio.Event()
        self.synced = False
        self.ports: list[int] = []
        self._add_metrics()

    @property
    def state(self) -> ClusterState:
        """The known state of the cluster, for other parts of this process. Read it on the thread of the loop only."""
        return self._parts.state

    @property
    def enforcement(self) -> Enforcement | None:
        return self._parts.enforcement

    def toggle_enforcement(self) -> None:
        """Switch enforcement off, or on again, without a restart."""
        if self.enforcement is not None:
            self.enforcement.switch(on=not self.enforcement.on)

    @property
    def metrics(self) -> Metrics:
        """The metrics at /metrics, to which other parts of this process add theirs."""
        return self._parts.metrics

    def observe_review(self, path: str, allowed: bool, seconds: float) -> None:
        """Count an admission review that the webhook in this process has answered."""
        self._parts.metrics.reviews.labels(path, "allowed" if allowed else "refused").observe(seconds)

    def observe_loop_iteration(self, seconds: float) -> None:
        """Count an iteration of the event loop of this process."""
        self._parts.metrics.loop_iterations.observe(seconds)

    async def pod(self, namespace: str, name: str) -> Workload | None:
        """Return a pod from the index, else from the API server; None if there is none."""
        record = self.state.index.records.get(WorkloadKey(f"{namespace}/{name}"))
        if record is not None:
            return record.workload
        path = PODS.path(namespace, name)
        try:
            answer = await self._connection.get(path)
        except NotFoundError:
            return None
        found = decoding.decoded(_pod, answer, self._connection.tried("GET", path))
        return pods.workload_of(found, self.state.spread_context.current)

    async def _synced_pod(self, namespace: str, name: str) -> Workload | None:
        if not self.synced:
            raise web.HTTPServiceUnavailable(text="the watches are not synced yet\n")
        return await self.pod(namespace, name)

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Run until stopped; raise whatever else ends the run."""
        async with contextlib.AsyncExitStack() as stack:
            recording = self._open_recording(stack)
            version = await self._connection.version()
            log.info("connected", extra={"server": self._connection.server, "version": version})
            await self._serve(stack)
            background_tasks = await stack.enter_async_context(BackgroundTasks())
            if not await self._sync_unless_stopped(background_tasks):
                return
            if recording is not None:
                self._parts.recorder = Recorder(recording, self.state.index, self._parts.recording_header(), self._wall)
                stack.callback(self._parts.recorder.close)
            await self._lead(background_tasks)

    async def _serve(self, stack: contextlib.AsyncExitStack) -> None:
        """Serve health, metrics and explanations until the stack is closed, in a thread that cannot hold this loop."""
        if not self._settings.addresses:
            return
        thread = await stack.enter_async_context(ServerThread(serving.PROCESSOR_SHARE))
        for address in self._settings.addresses:
            app = serving.application(thread, self._unready, self._parts.metrics.text)
            if address == self._settings.explain_address:
                endpoint = ExplainEndpoint(
                    self.state.index,
                    self._profiles,
                    self._synced_pod,
                    self.state.spread_context.current,
                    self.state.queue.nominations.competing_with,
                    names=PeerNames(self._settings.names_other_namespaces),
                    budgets=self.state.budgets,
                )
                app.router.add_get(explain_endpoint.PATH, serving.on_owner(thread, endpoint.respond))
            port = await stack.enter_async_context(serving.served(thread, app, address.host, address.port))
            self.ports.append(port)

    # Watching

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
        """Start all watches and return when they are synced. Pods come last: they are counted on known nodes."""
        began = time.monotonic()
        index, queue = self._parts.state.index, self._parts.state.queue
        _ = index.pod_table, index.attachments  # maintained from the start: built later, each would scan all pods
        with event_loop.without_collection():
            for last in (False, True):
                batch = [one for one in self._reflectors if (one.resource == PODS) is last]
                for reflector in batch:
                    background_tasks.start(reflector.run())
                await asyncio.gather(*(reflector.synced.wait() for reflector in batch))
        background_tasks.start(event_loop.collect_periodically())
        background_tasks.start(self._pods.run())
        self.synced = True
        facts = {"nodes": len(index.slots), "pods": len(index.records), "pending": len(queue)}
        log.info("synced", extra={**facts, "seconds": round(time.monotonic() - began, 2)})

    def _reflector(self, watched: WatchedResource) -> Reflector[Any]:
        undecodable = self._parts.metrics.undecodable_objects
        on_change = self._parts.change_handler(watched.resource)
        handler: Handler[Any] = ResourceHandler(watched, on_change, lambda name: undecodable.labels(name).inc())
        if watched.resource == PODS:
            handler = self._pods = PacedPodHandler(handler, self.state.size_of_large_change)
        return Reflector(
            self._connection, watched.resource, watched.item_type, handler, watched.selection, on_trouble=log.warning
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
            scheduling = background_tasks.start(self._parts.scheduler.run())
            enforcing = None if self.enforcement is None else background_tasks.start(self.enforcement.run())
            self.scheduling.set()
            log.info("scheduling", extra={"schedulers": ", ".join(sorted(self._profiles))})
            await wait_for_any(self._stopping, *([] if election is None else [election.lost]))
            scheduling.cancel()
            if enforcing is not None:
                enforcing.cancel()
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
        return "" if self.synced else "not all watches are synced yet"

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
        self.metrics.gauge(
            "bayplan_nodes_set_aside",
            "Number of nodes on which nothing is placed, because they or a pod on them cannot be read.",
            lambda: [((), float(len(self.state.nodes_set_aside)))],
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
