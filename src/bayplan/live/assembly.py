"""The settings of a scheduler and the parts it is built from: the same against an API server and in simulations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from bayplan.enforcing.planning import EnforcementSettings
from bayplan.engine.engine import Engine
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.kube_api.resources import Resource
from bayplan.live.binding import VolumeBinder, VolumeWaits
from bayplan.live.cluster_writer import CLAIMS, VOLUMES, ClusterWriter
from bayplan.live.context import SchedulerContext
from bayplan.live.enforcement import Enforcement
from bayplan.live.events import EventRecorder
from bayplan.live.known_groups import GroupLimits, KnownGroups
from bayplan.live.loop import InFlightBinds, LoopSettings
from bayplan.live.metrics import Metrics
from bayplan.live.preemption import PreemptionEvaluator
from bayplan.live.scheduler import Scheduler
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.workloads import Workload
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.pod_evaluator import PodEvaluator
from bayplan.queueing.scheduling_queue import SchedulingQueue
from bayplan.queueing.waiting_groups import WaitingGroups
from bayplan.rules.profiles import RulesByScheduler
from bayplan.watching.cluster_state import MAX_CONSTRAINTS, ClusterState
from bayplan.writing.recordings import Recorder

VOLUME_RESOURCES = (CLAIMS, VOLUMES)


class ServerAddress(msgspec.Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Election(msgspec.Struct, frozen=True, kw_only=True):
    """The lease by which the replicas of one scheduler elect their leader; times in seconds."""

    namespace: str = "kube-system"
    name: str = "bayplan"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class EstimatorSettings(msgspec.Struct, frozen=True):
    """
    How the accurate estimators of clusters are reached: `address` has {cluster} where the name of the cluster goes.

    `authority`, `certificate` and `key` are files, the last two empty without a client certificate.
    """

    address: str
    authority: str
    certificate: str = ""
    key: str = ""
    timeout: float = 3.0


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    The options of `bayplan run`, parsed.

    `explain_address`, if set, is the one of `addresses` that also serves the explain endpoint.

    `election` is None for a single replica without leader election; `record` is the file to record into, empty for
    none. `scheduler` is the KubeSchedulerConfiguration of the rules, which recordings repeat. `enforcement` is None if
    execution-time rules are not enforced. With `quota`, the limits of the quota are watched. With
    `names_other_namespaces`, events and explanations about a pod name pods of other namespaces. `reserve_after` is how
    long a pod must have been unschedulable before a node is reserved for it, 0 for never.
    """

    identity: str
    semantics: Semantics = UPSTREAM
    seed: str = ""
    election: Election | None = Election()
    addresses: tuple[ServerAddress, ...] = (ServerAddress("127.0.0.1", 10351),)
    explain_address: ServerAddress | None = None
    dry_run: bool = False
    record: str = ""
    enforcement: EnforcementSettings | None = None
    enforcement_dry_run: bool = False
    quota: bool = False
    names_other_namespaces: bool = False
    scheduler: dict[str, Any] | None = None
    events_per_second: float = 1000.0
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    max_pod_constraints: int = MAX_CONSTRAINTS
    places_group_members: bool = False
    groups: GroupLimits = GroupLimits()
    max_binding_constraints: int = MAX_CONSTRAINTS
    fail_back_per_minute: int = 10
    estimator: EstimatorSettings | None = None
    reserve_after: float = 0.0
    max_reservations: int = 1


class RecordedAssembly:
    """What every assembly has for the recording, if there is one: a `recorder` that reads every change of the index."""

    recorder: Recorder | None = None

    def _record_changes(self) -> None:
        if self.recorder is not None:
            self.recorder.changed()


class SchedulerAssembly(RecordedAssembly):
    """Builds the parts of one scheduler. `profiles` has the rules by scheduler name; other pods are ignored."""

    def __init__(
        self,
        writer: ClusterWriter,
        profiles: RulesByScheduler,
        settings: SchedulerSettings,
        *,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self.settings = settings
        self.metrics = Metrics()
        index = PlacementIndex(settings.semantics, settings.seed)
        self.engines = {name: Engine(index, rules) for name, rules in profiles.items()}
        budgets = DisruptionBudgets()
        activity = asyncio.Event()
        # Members that are placed one by one are like other pods.
        groups: WaitingGroups[PendingPod] | None = None if settings.places_group_members else WaitingGroups()
        self.evaluator = PodEvaluator(lambda workload: self.engines[workload.scheduler_name], budgets)
        queue: SchedulingQueue[PendingPod] = SchedulingQueue(
            index,
            self.evaluator,
            clock,
            initial_backoff=settings.initial_backoff,
            max_backoff=settings.max_backoff,
            reserve_after=settings.reserve_after,
            max_reservations=settings.max_reservations,
            groups=groups,
            on_pending=activity.set,
        )
        self._volume_waits = VolumeWaits(index.journal)
        self.state = ClusterState(
            index,
            queue,
            budgets,
            is_responsible=profiles.__contains__,
            max_constraints=settings.max_pod_constraints,
            on_binding_pod_removed=self._volume_waits.pod_removed,
        )
        binds_in_flight = InFlightBinds(on_free=activity.set)
        self.events = EventRecorder(
            writer, settings.identity, clock=clock, wall=wall, per_second=settings.events_per_second
        )
        names = PeerNames(settings.names_other_namespaces)
        context = SchedulerContext(self.state, writer, self.events, self.metrics, clock, wall, names)
        self.volumes = VolumeBinder(context, self._volume_waits, binds_in_flight)
        self.groups = None if groups is None else self._known_groups(groups, clock)
        self.scheduler = Scheduler(
            context,
            self.engines,
            LoopSettings(clock, activity, binds_in_flight, self._record_changes),
            volumes=self.volumes,
            preemptor=PreemptionEvaluator(context),
            on_decision=self._record_decision,
            groups=self.groups,
        )
        self.enforcement: Enforcement | None = None
        if settings.enforcement is not None:
            dry_run = settings.enforcement_dry_run or settings.dry_run
            self.enforcement = Enforcement(
                context, next(iter(self.engines.values())), settings.enforcement, dry_run=dry_run
            )
        self._add_metrics()

    def _known_groups(self, waiting: WaitingGroups[PendingPod], clock: Callable[[], float]) -> KnownGroups:
        settings = self.settings

        def backoff(attempts: int) -> float:
            return min(settings.initial_backoff * 2.0 ** min(max(attempts - 1, 0), 30), settings.max_backoff)

        return KnownGroups(self.state, waiting, settings.groups, clock, backoff)

    @property
    def index(self) -> PlacementIndex:
        return self.state.index

    def change_handler(self, resource: Resource) -> Callable[[], None]:
        """Return what to call after an object of this resource has changed."""
        handlers = [self.scheduler.changed]
        if resource in VOLUME_RESOURCES:
            handlers.append(self._volume_waits.changed)
        if self.enforcement is not None:
            handlers.append(self.enforcement.changed)

        def changed() -> None:
            for handler in handlers:
                handler()

        return handlers[0] if len(handlers) == 1 else changed

    def recording_header(self) -> dict[str, Any]:
        """Return the settings that a recording repeats."""
        return {
            "semantics": self.settings.semantics,
            "seed": self.settings.seed,
            "identity": self.settings.identity,
            "scheduler": self.settings.scheduler,
        }

    # Recording and metrics

    def _record_decision(self, workload: Workload, node: str, message: str) -> None:
        if self.recorder is not None:
            self.recorder.changed()
            nominations = self.state.queue.nominations
            own = nominations.target_of(workload.key)
            nominated = [*nominations.competing_with(workload), *([(workload, own)] if own else [])]
            self.recorder.decided(workload, node, message, nominated)

    def _add_metrics(self) -> None:
        state = self.state
        self.metrics.count_dropped_events(self.events)
        self.metrics.observe_queue(state.queue, "pod")
        self.metrics.gauge(
            "scheduler_cache_size",
            "Number of nodes, pods and assumed pods in the scheduler cache.",
            lambda: [
                (("nodes",), float(len(state.index.slots))),
                (("pods",), float(len(state.index.records))),
                (("assumed_pods",), float(len(state.assumed))),
            ],
            ("type",),
        )
        groups = self.groups
        if groups is not None:
            self.metrics.gauge(
                "bayplan_waiting_groups",
                "Number of groups of pods that wait to be placed as a whole.",
                lambda: [((), float(groups.n_waiting))],
            )
        self.metrics.gauge(
            "bayplan_reservations",
            "Number of nodes that are reserved for pods which have been unschedulable for long.",
            lambda: [((), float(len(state.queue.reservations)))],
        )
