"""The parts of the scheduler of bindings, built once: against an API server, or against a FleetWriter of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bayplan import schedule_binding
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.kube_api.resources import Resource
from bayplan.live.assembly import RecordedAssembly, SchedulerSettings
from bayplan.live.events import EventRecorder
from bayplan.live.fail_back import FailBack
from bayplan.live.fleet_enforcement import FleetEnforcement
from bayplan.live.fleet_metrics import FleetMetrics
from bayplan.live.fleet_scheduler import FleetContext, FleetScheduler
from bayplan.live.fleet_writer import FleetWriter
from bayplan.live.loop import InFlightBinds, LoopSettings
from bayplan.mapping.bindings import ANY_KEY, BindingContext, LabelKeys
from bayplan.model.semantics import for_fleets
from bayplan.model.workloads import Workload
from bayplan.queueing.binding_evaluator import BindingEvaluator, PendingBinding
from bayplan.queueing.scheduling_queue import SchedulingQueue
from bayplan.rules import fleet_profile
from bayplan.watching.fleet_state import FleetState

if TYPE_CHECKING:  # it needs the extra `estimator`
    from bayplan.live.estimators import Estimators


class FleetAssembly(RecordedAssembly):
    """Builds the parts. Bindings whose schedulerName is not in `names` are counted, and left to their scheduler."""

    def __init__(
        self,
        writer: FleetWriter,
        names: Sequence[str],
        settings: SchedulerSettings,
        *,
        keys: LabelKeys = ANY_KEY,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self.settings = settings
        self.metrics = FleetMetrics()
        semantics = for_fleets(settings.semantics)
        self.index = PlacementIndex(semantics, settings.seed, lost_targets_count=True)
        self.engine = FleetEngine(self.index, fleet_profile.fleet_rules())
        evaluator = BindingEvaluator(self.engine, clock)
        activity = asyncio.Event()
        queue: SchedulingQueue[PendingBinding] = SchedulingQueue(
            self.index,
            evaluator,
            clock,
            initial_backoff=settings.initial_backoff,
            max_backoff=settings.max_backoff,
            on_pending=activity.set,
        )
        context = BindingContext(
            settings.semantics,
            keys,
            assumes_no_labels=False,
            max_constraints=settings.max_binding_constraints,
            asks_estimators=settings.estimator is not None,
        )
        self.state = FleetState(self.index, queue, context, names, self.metrics.count_incoming, clock=clock)
        self.events = EventRecorder(
            writer, settings.identity, clock=clock, wall=wall, per_second=settings.events_per_second
        )
        peer_names = PeerNames(settings.names_other_namespaces, "workload")
        parts = FleetContext(self.state, self.engine, writer, self.events, self.metrics, clock, wall, peer_names)
        self.estimators: Estimators | None = None
        if settings.estimator is not None:
            from bayplan.live.estimators import Estimators

            self.estimators = Estimators(settings.estimator, self.engine, self.state.capacity, self.metrics, clock)
        self.scheduler = FleetScheduler(
            parts,
            evaluator,
            LoopSettings(clock, activity, InFlightBinds(on_free=activity.set), self._record_changes),
            self._record_decision,
            self.estimators,
        )
        self.enforcement: FleetEnforcement | None = None
        if settings.enforcement is not None:
            dry_run = settings.enforcement_dry_run or settings.dry_run
            self.enforcement = FleetEnforcement(parts, settings.enforcement, dry_run=dry_run)
        self.fail_back: FailBack | None = None
        if semantics.fail_back_after:
            self.fail_back = FailBack(parts, semantics.fail_back_after, settings.fail_back_per_minute)
        self._add_metrics()

    def change_handler(self, resource: Resource) -> Callable[[], None]:
        """Return what to call after an object of this resource has changed."""
        del resource
        scheduler, enforcement = self.scheduler, self.enforcement
        if enforcement is None:
            return scheduler.changed

        def changed() -> None:
            scheduler.changed()
            enforcement.changed()

        return changed

    def recording_header(self) -> dict[str, Any]:
        """Return the settings that a recording repeats."""
        settings = {"semantics": self.index.semantics, "seed": self.settings.seed, "identity": self.settings.identity}
        return {**settings, "fleet": True}

    def _record_decision(self, workload: Workload, shares: Sequence[tuple[str, int]], message: str) -> None:
        if self.recorder is not None:
            self.recorder.changed()
            self.recorder.decided(workload, schedule_binding.listed(shares), message, ())

    def _add_metrics(self) -> None:
        state = self.state
        self.metrics.count_dropped_events(self.events)
        self.metrics.observe_queue(state.queue, "binding")
        self.metrics.gauge(
            "bayplan_fleet_size",
            "Number of clusters and bindings that are known.",
            lambda: [
                (("clusters",), float(len(state.index.slots))),
                (("bindings",), float(len(state.bindings))),
                (("assumed_bindings",), float(len(state.assumed))),
                (("deducted_bindings",), float(state.capacity.n_loads)),
            ],
            ("type",),
        )
        self.metrics.gauge(
            "bayplan_clusters_set_aside",
            "Number of clusters on which nothing more is placed, because they cannot be read.",
            lambda: [((), float(len(state.unreadable)))],
        )
