"""`bayplan rebalance --apply` in a simulation: the live mover on the simulated cluster, one rebalancing at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from bayplan.controllers.desired_state import ObjectKey
from bayplan.enforcing.move_execution import MoveEvent, MoveSettings, SeenPod
from bayplan.enforcing.rebalancing import DisruptionLimits
from bayplan.kube_api.decoding import Key
from bayplan.live.assembly import SchedulerAssembly
from bayplan.live.moving import Mover, MoveTools
from bayplan.live.pod_moves import PodMoves
from bayplan.mapping import disruption_budgets
from bayplan.mapping.pods import FINISHED, controller_of
from bayplan.model.workloads import WorkloadKey
from bayplan.reading.cluster import LoadedCluster
from bayplan.rules.rule import AnyRule
from bayplan.simulating.cluster_api import MOVED, ClusterApi, SimulatedWriter
from bayplan.simulating.disruptions import BUDGET
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.scheduler_feed import SchedulerFeed
from bayplan.simulating.store import POD, Store
from bayplan.wire.pods import Pod
from bayplan.writing import rebalance_report

_SUBJECT = "Rebalancing"


class Rebalancer:
    """Moves pods. `assemble` builds parts of a scheduler, of which a view of the cluster uses the state only."""

    def __init__(
        self,
        api: ClusterApi,
        events: EventLog,
        loop: asyncio.AbstractEventLoop,
        rules: tuple[AnyRule, ...],
        assemble: Callable[[], SchedulerAssembly],
    ) -> None:
        self._api, self._store, self._events, self._loop = api, api.store, events, loop
        self._rules, self._assemble = rules, assemble
        self._running: asyncio.Task[None] | None = None

    def begin(self, max_moves: int) -> None:
        """Start to move pods, unless that is still in progress."""
        if self._running is not None and not self._running.done():
            self._events.record(_SUBJECT, "StillRunning", "the rebalancing before is not over")
            return
        self._running = self._loop.create_task(self._run(max_moves))
        self._running.add_done_callback(lambda task: task.cancelled() or task.result())

    async def end(self) -> None:
        """Stop, because the simulation ends."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self, max_moves: int) -> None:
        view = self._view()
        plan = view.plan(
            DisruptionLimits(max_moves=max_moves, movable=lambda one: view.is_recreated(one.key), budgets=view.budgets)
        )
        if not plan.moves:
            self._events.record(_SUBJECT, "NothingToGain", rebalance_report.summary(plan))
            return
        followed = _FollowedPods(self._store)
        tools = MoveTools(SimulatedWriter(self._api, self._events, MOVED), lambda _: followed)
        mover = Mover(
            tools,
            plan,
            view,
            read_cluster=self._view,
            report=self._report,
            settings=MoveSettings(),
            clock=self._loop.time,
        )
        try:
            outcome = await mover.run()
        finally:
            followed.release()
        self._events.record(_SUBJECT, "Rebalanced", rebalance_report.applied_summary(outcome))

    def _report(self, event: MoveEvent) -> None:
        self._events.record(_SUBJECT, type(event).__name__, rebalance_report.event_line(event))

    def _view(self) -> PodMoves:
        """The cluster as it is now, in an index of its own."""
        parts = self._assemble()
        feed = SchedulerFeed(parts, self._events)
        for one in self._store.all():
            feed.tell(one)
        budgets = [disruption_budgets.budget_of(one) for one in self._store.of_kind(BUDGET)]
        state = parts.state
        cluster = LoadedCluster(
            index=state.index,
            pending=[],
            spread_context=state.spread_context.current,
            disruption_budgets=budgets,
        )
        return PodMoves(cluster, self._rules)


class _FollowedPods:
    """All pods of the store, as a mover sees them."""

    def __init__(self, store: Store) -> None:
        self.pods: dict[Key, SeenPod] = {}
        self.changed = asyncio.Event()
        self._store = store

    async def follow(self, namespaces: Iterable[str]) -> None:
        """Every namespace is known."""
        del namespaces
        if self.pods:
            return
        for pod in self._store.pods():
            self._put(pod)
        self._store.listen(self._changed)

    def release(self) -> None:
        self._store.ignore(self._changed)

    def _changed(self, key: ObjectKey, _: Any, after: Any) -> None:
        if key.kind != POD:
            return
        if after is None:
            self.pods.pop(Key(key.namespace, key.name), None)
        else:
            self._put(after)
        self.changed.set()

    def _put(self, pod: Pod) -> None:
        meta, owner = pod.metadata, controller_of(pod.metadata)
        is_inactive = meta.deletion_timestamp is not None or pod.status.phase in FINISHED
        key = Key(meta.namespace, meta.name)
        uid = "" if owner is None else owner.uid
        self.pods[key] = SeenPod(WorkloadKey(str(key)), meta.uid, uid, pod.spec.node_name, is_inactive)
