"""
One simulation: the parts of the live scheduler and of a cluster on one store, driven through a timeline.

The same settings, objects and timeline give the same result, to the byte.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.controllers.pod_admission import PodAdmission
from bayplan.enforcing.planning import EnforcementSettings
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.live.assembly import SchedulerAssembly, SchedulerSettings
from bayplan.live.cluster_writer import ClusterWriter, DryRunWriter
from bayplan.mapping.pods import controller_of
from bayplan.model.semantics import Semantics
from bayplan.rules.profiles import RulesByScheduler
from bayplan.simulating import timeline_checks
from bayplan.simulating.autoscaling import AutoscalerController
from bayplan.simulating.changes import Changes
from bayplan.simulating.cluster_api import ClusterApi, SimulatedWriter
from bayplan.simulating.disruptions import DisruptionController
from bayplan.simulating.event_log import EventLog, LogRemarks
from bayplan.simulating.judging import Judge
from bayplan.simulating.kubelets import Kubelets
from bayplan.simulating.measuring import Measures
from bayplan.simulating.node_lifecycle import NodeLifecycle
from bayplan.simulating.rebalancer import Rebalancer
from bayplan.simulating.scheduler_feed import SchedulerFeed
from bayplan.simulating.store import NODE, Store, WallClock
from bayplan.simulating.taint_eviction import TaintEviction
from bayplan.simulating.timeline import AppliedObject, Failures, PodTimes, Step, Timeline, TimelineEnforcement
from bayplan.simulating.virtual_time import VirtualLoop
from bayplan.simulating.volumes import VolumeController
from bayplan.simulating.workloads import WorkloadControllers
from bayplan.wire.pods import Pod

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class SimulationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How decisions are made, and what is recorded. `snapshots_at` are times whose state is part of the result."""

    semantics: Semantics
    seed: str = ""
    profiles: RulesByScheduler
    with_routine_events: bool = False
    snapshots_at: tuple[float, ...] = ()


class Simulation:
    """
    A cluster with these objects, nodes before pods, and `applied` at the beginning.

    `progress` is told now and then which time it is.
    """

    def __init__(
        self,
        objects: Iterable[Any],
        admission: PodAdmission,
        timeline: Timeline,
        settings: SimulationSettings,
        *,
        applied: tuple[AppliedObject, ...] = (),
        progress: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._settings, self._progress, self._applied = settings, progress, applied
        self._objects = list(objects)
        self.timeline = self._checked(timeline)  # before there is a loop that would have to be closed
        self.snapshots: list[tuple[float, dict[str, Any]]] = []
        self._snapshots_due: list[float] = []
        self._ending: asyncio.Future[None] | None = None
        self.loop = VirtualLoop()
        self.wall = WallClock(START, self.loop.time)
        self.store = Store(self.wall)
        self.events = EventLog(self.loop.time, is_complete=settings.with_routine_events)
        self._assemble(admission)

    def _checked(self, timeline: Timeline) -> Timeline:
        """Resolve the names of the timeline, in the cluster as it is once the change is applied."""
        known = Store(WallClock(START, lambda: 0.0))
        for one in (*self._objects, *(applied.decoded for applied in self._applied)):
            known.put(one)
        return timeline_checks.resolved(timeline, known)

    def _assemble(self, admission: PodAdmission) -> None:
        loop, store, events, settings = self.loop, self.store, self.events, self._settings
        disruptions = DisruptionController(store, self._scale_of)
        self.api = ClusterApi(store, admission, disruptions, events)
        self.parts = self._assembled(SimulatedWriter(self.api, events))
        self.feed = SchedulerFeed(self.parts, events)
        self.feed.follow(store)
        self.kubelets = Kubelets(self.api, events, loop, self._times_of)
        self.taints = TaintEviction(self.api, events, loop)
        self.volumes = VolumeController(store, events)
        self.workloads = WorkloadControllers(self.api, events, loop, disruptions.recount)
        self.autoscaling = AutoscalerController(store, events, loop)
        self.lifecycle = NodeLifecycle(store, self.kubelets, events, loop)
        granted = frozenset(self.timeline.enforcement.granted) if self.timeline.enforcement else frozenset[str]()
        expectations = [one for step in self.timeline.steps for one in step.expectations]
        self.measures = Measures(
            store,
            ViolationTracker(self.parts.index, granted),
            events,
            loop.time,
            lost=self.kubelets.lost,
            thresholds=[one.longer_than for one in expectations if one.longer_than is not None],
        )
        self.lifecycle.on_machine_changed = self.measures.machine_changed
        self.workloads.on_daemons_counted = self.measures.set_desired
        document = self.timeline.document
        self.judge = Judge(
            self.api,
            self.measures,
            self.lifecycle,
            loop.time,
            rollouts=self.workloads.in_progress,
            line_of=lambda path: document.fault("", path).line,
        )
        self.changes = Changes(self.api, events, loop, self.lifecycle, self.autoscaling)
        rules = settings.profiles[next(iter(settings.profiles))]
        self.rebalancer = Rebalancer(
            self.api, events, loop, tuple(rules), lambda: self._assembled(DryRunWriter(), enforces=False)
        )
        self.changes.rebalance = self.rebalancer.begin
        self._times = {one.key: times for one, times in self.timeline.times_of}

    def _assembled(self, writer: ClusterWriter, *, enforces: bool = True) -> SchedulerAssembly:
        """The parts of a live scheduler."""
        settings = self._settings
        return SchedulerAssembly(
            writer,
            settings.profiles,
            SchedulerSettings(
                identity="simulation",
                election=None,
                semantics=settings.semantics,
                seed=settings.seed,
                enforcement=enforcement_settings(self.timeline.enforcement) if enforces else None,
                events_per_second=math.inf,
            ),
            clock=self.loop.time,
            wall=self.wall.now,
        )

    def _scale_of(self, key: ObjectKey) -> int | None:
        """The replicas that a controller asks for (the finders of the disruption controller)."""
        found = self.store.find(key)
        if found is None or key.kind not in timeline_checks.SCALED:
            return None
        return 1 if found.spec.replicas is None else int(found.spec.replicas)

    def _times_of(self, pod: Pod) -> PodTimes:
        found = self._times.get(self.measures.root_of(pod)) if self._times else None
        times = self.timeline.times if found is None else found
        owner = controller_of(pod.metadata)
        if times.run is not None and (owner is None or owner.kind != "Job"):
            return msgspec.structs.replace(times, run=None)
        return times

    # Running

    def run(self) -> None:
        """Run from the beginning to the end of the timeline."""
        self.loop.when_settled(self._settled)
        try:
            with LogRemarks(self.events).instead_of_others():
                self.loop.run_until_complete(self._run())
        finally:
            self.loop.when_settled(lambda: False)
            rest = asyncio.all_tasks(self.loop)  # some are left if an interrupt or a bug has ended the run
            for task in rest:
                task.cancel()
            if rest:
                self.loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
            self.loop.close()

    async def _run(self) -> None:
        self._begin()
        running = [self.parts.scheduler.run(), self.parts.events.run()]
        if self.parts.enforcement is not None:
            running.append(self.parts.enforcement.run())
        tasks = [asyncio.ensure_future(one) for one in running]
        end = self.loop.create_future()
        self.loop.call_at(self.timeline.lasts, self._end, end)
        try:
            done, _ = await asyncio.wait([end, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()  # raises what ended a part
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.rebalancer.end()

    def _end(self, end: asyncio.Future[None]) -> None:
        """Finish what happens at the last moment, and then stop."""
        self._ending = end

    def _begin(self) -> None:
        for one in self._objects:
            self.store.put(one)
            if one.kind == NODE:
                self.lifecycle.take_over(one)
        self._objects.clear()
        self.feed.begin()
        self.workloads.begin()
        if self._applied:
            self.changes.apply(self._applied)
        for step in self.timeline.steps:
            self.loop.call_at(step.at, self._carry_out, step)
        for number, failures in enumerate(self.timeline.failures):
            self._plan_failures(failures, number)
        for at in self._settings.snapshots_at:
            self.loop.call_at(at, self._snapshots_due.append, at)

    def _carry_out(self, step: Step) -> None:
        for action in step.actions:
            self.changes.carry_out(action)
        is_throughout = step.until is not None and step.every is None
        self.judge.begin(step, step.until if is_throughout else None)
        if is_throughout and step.until is not None:
            self.loop.call_at(step.until, lambda: None)  # so that the last moment is one
        if step.every is not None:
            again = self.loop.time() + step.every
            if again <= (self.timeline.lasts if step.until is None else step.until) + 1e-6:
                self.loop.call_at(again, self._carry_out, step)

    def _plan_failures(self, failures: Failures, number: int) -> None:
        """Draw the failures one after another, from the seed alone."""
        chance = random.Random(f"{self.timeline.seed}/{number}")  # noqa: S311 - to be repeated
        end = self.timeline.lasts if failures.until is None else min(failures.until, self.timeline.lasts)

        def plan(since: float) -> None:
            at = since + chance.expovariate(failures.rate)
            if at <= end:
                self.loop.call_at(at, fail, at)

        def fail(at: float) -> None:
            names = {
                name for choice, _ in failures.nodes for name in timeline_checks.nodes_of(choice, self.store.nodes())
            }
            if not failures.nodes:
                names = {node.metadata.name for node in self.store.nodes()}
            running = sorted(names - self.kubelets.lost)
            if running:
                name = running[chance.randrange(len(running))]
                self.lifecycle.lose(name)
                lasts = chance.uniform(failures.shortest, failures.longest)
                self.loop.call_later(lasts, self.lifecycle.recover, name)
            plan(at)

        plan(failures.since)

    def _settled(self) -> bool:
        """Nothing is left to do at this moment: measure and judge it."""
        self.measures.settled()
        self.judge.settled()
        now = self.loop.time()
        for _ in self._snapshots_due:
            self.snapshots.append((now, self.snapshot()))
        self._snapshots_due.clear()
        self._progress(now)
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(None)
            return True
        return False

    def snapshot(self) -> dict[str, Any]:
        """The state at this moment: the pods of each node, and those that wait."""
        nodes: dict[str, dict[str, Any]] = {}
        for node in self.store.nodes():
            name = node.metadata.name
            pods = sorted(f"{p.metadata.namespace}/{p.metadata.name}" for p in self.store.pods_on(name))
            nodes[name] = {"ready": name not in self.lifecycle.not_ready, "pods": pods}
        pending = sorted(f"{key.namespace}/{key.name}" for key in self.measures.pending.names())
        return {"nodes": dict(sorted(nodes.items())), "pending": pending}


def enforcement_settings(asked: TimelineEnforcement | None) -> EnforcementSettings | None:
    """The settings of the enforcement; None if rules are not enforced."""
    if asked is None:
        return None
    given = {
        name: value
        for name in ("affinity_grace", "anti_affinity_grace", "per_minute", "at_once", "only_if_placeable")
        if (value := getattr(asked, name)) is not None
    }
    return EnforcementSettings(**given, granted=frozenset(asked.granted))
