"""
Enforces execution-time rules on a fleet, through Karmada's graceful eviction.

What is evicted is a copy: the cluster is removed from the binding and becomes a task of graceful eviction, as Karmada's
own evictions do. The copy runs until its replacement is healthy or the time of the task is over, and the binding is
scheduled again. A workload leaves one cluster at a time. Rules that hold during scheduling only are reported.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bayplan.enforcing import copies
from bayplan.enforcing.planning import EnforcementSettings, Eviction, EvictionPlan
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.errors import ClusterError
from bayplan.live.cluster_writer import ObjectRef, PodGoneError, RejectedError
from bayplan.live.enforcement_loop import EnforcementLoop, EnforcementTools, PostponedError, log
from bayplan.live.fleet_results import PRODUCER
from bayplan.live.fleet_scheduler import FleetContext
from bayplan.live.fleet_writer import has_changed, ref_of, template_ref
from bayplan.mapping import bindings
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.wire.fleets import ResourceBinding

RULE_BROKEN = "RuleBroken"
MAX_TASK_MESSAGE = 1024  # characters, by the definition of the task
MAX_ATTEMPTS = 3
BEING_WRITTEN = "it is being scheduled"
BEING_EVICTED = "it is leaving another cluster"


class FleetEnforcement(EnforcementLoop):
    """Evicts copies of workloads that this scheduler places."""

    noun = "workload"

    def __init__(self, context: FleetContext, settings: EnforcementSettings, *, dry_run: bool) -> None:
        index = context.state.index
        tools = EnforcementTools(index, context.events, context.metrics, context.clock, context.names)
        super().__init__(tools, settings, dry_run=dry_run)
        self._state, self._writer, self._engine = context.state, context.writer, context.engine
        self._leaving: dict[WorkloadKey, tuple[str, int]] = {}  # copies, with the uid and the generation of the task
        self._report_at: dict[ViolationId, float] = {}  # of rules that are only reported; infinite once that is done

    # What is violated

    def lasting_violations(self) -> list[Violation]:
        return copies.enforceable(self._tracker.violations(), self._index, self._may_evict)

    def _may_evict(self, key: WorkloadKey) -> bool:
        written = self._state.bindings.get(key)
        return written is not None and self._state.is_ours(written)

    def _precedence(self) -> Mapping[WorkloadKey, Precedence]:
        return copies.precedence_of(self.lasting_violations(), self._tracker.precedence())

    async def plan_evictions(self) -> EvictionPlan:
        plan = await super().plan_evictions()
        if self.on:
            self._report_other_rules(self._clock())
        return plan

    def _next_at(self, plan: EvictionPlan) -> float:
        return min([plan.next_at, *self._report_at.values()])

    def _report_other_rules(self, now: float) -> None:
        """Report each broken rule that holds during scheduling only, once for as long as it stays broken."""
        found = {one.id: one for one in self._tracker.violations() if not one.enforced}
        self._report_at = {known: at for known, at in self._report_at.items() if known in found}
        for known, violation in found.items():
            at = self._report_at.setdefault(known, now + self._enforcer.settings.grace(violation.rule_type))
            if at <= now:
                self._report_at[known] = math.inf
                self._report(violation)

    def _report(self, violation: Violation) -> None:
        facts = {"workload": violation.owner, "cluster": violation.target, "rule": violation.shown}
        log.info("rule broken, not required during execution", extra=facts)
        workload = self._workload(copies.copy_of(violation.owner, violation.target))
        if not self._dry_run and workload is not None and self._may_evict(workload.key):
            rule = self._describe_rule(violation, workload.namespace)
            note = f"broken on {violation.target}, and not enforced: it is not required during execution: {rule}"
            self._tell(workload, RULE_BROKEN, note)

    # Evictions

    def _ended(self) -> Iterable[WorkloadKey]:
        for copy, (uid, generation) in list(self._leaving.items()):
            written = self._state.bindings.get(copies.workload_of(copy))
            is_known = written is not None and written.metadata.uid == uid
            if not is_known or written is None or _has_left(written, copies.cluster_of(copy), generation):
                del self._leaving[copy]
                yield copy

    def _checking_other_targets(self) -> contextlib.AbstractContextManager[Callable[[WorkloadKey], bool]]:
        return copies.checking_other_clusters(self._engine)

    def _workload(self, victim: WorkloadKey) -> Workload | None:
        key = copies.workload_of(victim)
        return self._state.workloads[key] if key in self._index.records and key in self._state.workloads else None

    def _subjects(self, workload: Workload) -> tuple[ObjectRef, ...]:
        written = self._state.bindings.get(workload.key)
        found = () if written is None else (ref_of(written), template_ref(written))
        return tuple(subject for subject in found if subject.name)

    async def _request(self, eviction: Eviction, workload: Workload) -> None:
        key, cluster = workload.key, copies.cluster_of(eviction.victim)
        written = self._state.bindings.get(key)
        if written is None:
            raise PodGoneError(f"{key} is gone")
        if key in self._state.writing:
            raise PostponedError(BEING_WRITTEN)
        if written.spec.graceful_eviction_tasks or self._is_leaving_anywhere(key):
            raise PostponedError(BEING_EVICTED)
        rule = self._describe_rule(eviction.causes[0], workload.namespace)
        task: dict[str, Any] = {
            "fromCluster": cluster,
            "purgeMode": "Gracefully",
            "reason": RULE_BROKEN,
            "message": f"{self._why(eviction)}: {rule}"[:MAX_TASK_MESSAGE],
            "producer": PRODUCER,
        }
        replicas = dict(bindings.shares_of(written)).get(cluster)
        if replicas:
            task |= {"replicas": replicas}
        self._leaving[eviction.victim] = workload.uid, 0  # its other copies wait from now on
        try:
            answer = await self._evicted(ref_of(written), task)
        except ClusterError:
            del self._leaving[eviction.victim]
            raise
        self._leaving[eviction.victim] = workload.uid, answer.metadata.generation

    async def _evicted(self, binding: ObjectRef, task: dict[str, Any]) -> ResourceBinding:
        """Evict; other controllers write to bindings all the time, so it may take several attempts."""
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._writer.evict(binding, task)
            except RejectedError as error:
                if not has_changed(error):
                    raise
        raise PostponedError(BEING_WRITTEN)

    def _began(self, victim: WorkloadKey, workload: Workload) -> None:
        # Where the eviction was not made because the binding is gone, any report of it ends the wait.
        self._leaving.setdefault(victim, (workload.uid, 0))

    def _is_leaving(self, victim: WorkloadKey) -> bool:
        return victim in self._leaving

    def _is_leaving_anywhere(self, key: WorkloadKey) -> bool:
        return any(copies.workload_of(copy) == key for copy in self._leaving)

    # Events

    def _place(self, victim: WorkloadKey) -> str:
        return f" from {copies.cluster_of(victim)}"

    def _why(self, eviction: Eviction) -> str:
        return copies.reason(eviction.why)

    def _owner(self, violation: Violation) -> WorkloadKey:
        return copies.workload_of(violation.owner) if violation.enforced else violation.owner

    def _why_withheld(self, peers: tuple[WorkloadKey, ...]) -> str:
        n = len({copies.workload_of(peer) for peer in peers})
        shown = "1 workload" if n == 1 else f"{n} workloads"
        return f"{shown} of another scheduler or of namespaces without consent would be evicted"


def _has_left(written: ResourceBinding, cluster: str, generation: int) -> bool:
    """Whether the task of an eviction, which this generation of the binding was the first to have, is over."""
    tasks = written.spec.graceful_eviction_tasks or ()
    return written.metadata.generation >= generation and all(task.from_cluster != cluster for task in tasks)
