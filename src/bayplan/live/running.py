"""The scheduler process for pods on nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web

from bayplan.explaining.peer_names import PeerNames
from bayplan.kube_api import decoding
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import NotFoundError
from bayplan.kube_api.reflector import Handler
from bayplan.kube_api.resources import PODS, Resource
from bayplan.live.assembly import SchedulerAssembly, SchedulerSettings
from bayplan.live.cluster_writer import ApiServerWriter, DryRunWriter
from bayplan.live.enforcement import Enforcement
from bayplan.live.explain_endpoint import ExplainEndpoint, PodExplainEndpoint
from bayplan.live.process import SchedulerProcess
from bayplan.mapping import pods
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.profiles import RulesByScheduler
from bayplan.watching import resources
from bayplan.watching.background_tasks import BackgroundTasks
from bayplan.watching.cluster_state import ClusterState
from bayplan.watching.large_changes import PacedPodHandler
from bayplan.watching.pod_group_watches import PodGroupWatches
from bayplan.watching.resources import WatchedResource
from bayplan.wire.pods import Pod

_pod = msgspec.json.Decoder(Pod)


class RunningScheduler(SchedulerProcess[SchedulerAssembly]):
    """Schedules pods."""

    workloads = "pods"

    def __init__(
        self,
        connection: Connection,
        profiles: RulesByScheduler,
        settings: SchedulerSettings,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._profiles = profiles
        super().__init__(connection, settings, profiles, wall)
        self.metrics.gauge(
            "bayplan_nodes_set_aside",
            "Number of nodes on which nothing is placed, because they or a pod on them cannot be read.",
            lambda: [((), float(len(self.state.nodes_set_aside)))],
        )

    @property
    def state(self) -> ClusterState:
        """The known state of the cluster, for other parts of this process. Read it on the thread of the loop only."""
        return self._parts.state

    @property
    def enforcement(self) -> Enforcement | None:
        return self._parts.enforcement

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

    def _assemble(self) -> SchedulerAssembly:
        writer = DryRunWriter() if self._settings.dry_run else ApiServerWriter(self._connection, self._may_write)
        return SchedulerAssembly(writer, self._profiles, self._settings, clock=time.monotonic, wall=self._wall)

    def _watched(self) -> Iterable[WatchedResource]:
        watched = resources.scheduling_resources(self.state)
        return (resources.quota_resource(self.state), *watched) if self._settings.quota else watched

    def _comes_last(self, resource: Resource) -> bool:
        return resource == PODS

    def _handler(self, watched: WatchedResource) -> Handler[Any]:
        handler = super()._handler(watched)
        if watched.resource != PODS:
            return handler
        self._pods = PacedPodHandler(handler, self.state.size_of_large_pod, self.state.is_counted)
        return self._pods

    def _before_sync(self) -> None:
        index = self.state.index
        _ = index.pod_table, index.attachments  # maintained from the start: built later, each would scan all pods

    async def _sync_further(self, background_tasks: BackgroundTasks) -> None:
        if not self._settings.places_group_members:
            await PodGroupWatches(self._connection, self.state, self._handler).sync(background_tasks)

    def _after_sync(self, background_tasks: BackgroundTasks) -> None:
        background_tasks.start(self._pods.run())

    async def _before_leading(self) -> None:
        await self._pods.catch_up()

    def _while_leading(self) -> list[Coroutine[Any, Any, None]]:
        return [] if self.enforcement is None else [self.enforcement.run()]

    def explainer(self) -> ExplainEndpoint:
        return PodExplainEndpoint(
            self.state.index,
            self._profiles,
            self._synced_pod,
            self.state.spread_context.current,
            self.state.queue.nominations.competing_with,
            names=PeerNames(self._settings.names_other_namespaces),
            budgets=self.state.budgets,
            group_of=lambda pod: None if self._parts.groups is None else self._parts.groups.of_pending(pod),
        )

    def _facts(self) -> dict[str, int]:
        index = self.state.index
        return {"nodes": len(index.slots), "pods": len(index.records), "pending": len(self.state.queue)}
