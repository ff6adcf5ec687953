"""The scheduler process for bindings on the clusters of a Karmada control plane."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from bayplan.explaining.peer_names import PeerNames
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.resources import Resource
from bayplan.live.assembly import SchedulerSettings
from bayplan.live.explain_endpoint import BindingExplainEndpoint, ExplainEndpoint
from bayplan.live.fleet_assembly import FleetAssembly
from bayplan.live.fleet_enforcement import FleetEnforcement
from bayplan.live.fleet_writer import ApiServerFleetWriter, DryRunFleetWriter
from bayplan.live.process import SchedulerProcess
from bayplan.mapping.bindings import ANY_KEY, LabelKeys
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.watching import fleet_resources
from bayplan.watching.background_tasks import BackgroundTasks
from bayplan.watching.fleet_state import FleetState
from bayplan.watching.resources import WatchedResource
from bayplan.watching.template_watches import TemplateWatches


class RunningFleetScheduler(SchedulerProcess[FleetAssembly]):
    """Schedules bindings."""

    workloads = "bindings"

    def __init__(
        self,
        connection: Connection,
        names: Sequence[str],
        settings: SchedulerSettings,
        keys: LabelKeys = ANY_KEY,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`keys` are the label keys that terms of workload affinity may select by."""
        self._scheduler_names = names
        self._keys = keys
        super().__init__(connection, settings, names, wall)
        self._templates = TemplateWatches(connection, self.state, self._parts.scheduler.changed)

    @property
    def state(self) -> FleetState:
        """The known state of the fleet. Read it on the thread of the loop only."""
        return self._parts.state

    def _assemble(self) -> FleetAssembly:
        dry_run = self._settings.dry_run
        writer = DryRunFleetWriter() if dry_run else ApiServerFleetWriter(self._connection, self._may_write)
        return FleetAssembly(
            writer, self._scheduler_names, self._settings, keys=self._keys, clock=time.monotonic, wall=self._wall
        )

    def _watched(self) -> Iterable[WatchedResource]:
        return fleet_resources.fleet_resources(self.state)

    async def _sync_further(self, background_tasks: BackgroundTasks) -> None:
        await self._templates.sync(background_tasks)

    def _after_sync(self, background_tasks: BackgroundTasks) -> None:
        background_tasks.start(self._templates.run(background_tasks))

    @property
    def enforcement(self) -> FleetEnforcement | None:
        return self._parts.enforcement

    def _while_leading(self) -> list[Coroutine[Any, Any, None]]:
        further = (self.enforcement, self._parts.fail_back, self._parts.estimators)
        return [one.run() for one in further if one is not None]

    def _comes_last(self, resource: Resource) -> bool:
        return resource in fleet_resources.BINDINGS

    def explainer(self) -> ExplainEndpoint:
        index, names = self.state.index, PeerNames(self._settings.names_other_namespaces, "workload")
        namespaces = index.peer_index.namespaces
        return BindingExplainEndpoint(index, self._binding, lambda key: key.partition("/")[0] in namespaces, names)

    def _binding(self, key: WorkloadKey) -> Workload | None:
        if not self.synced:
            raise web.HTTPServiceUnavailable(text="the watches are not synced yet\n")
        return self.state.workloads.get(key)

    def _facts(self) -> dict[str, int]:
        state = self.state
        return {"clusters": len(state.index.slots), "bindings": len(state.bindings), "pending": len(state.queue)}
