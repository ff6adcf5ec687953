"""Enforces execution-time rules on running pods, through the Eviction API and within its limits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

from bayplan.enforcing import enforcer
from bayplan.enforcing.planning import EnforcementSettings, Eviction
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation, ViolationId, involved
from bayplan.engine.engine import Engine
from bayplan.live.cluster_writer import ObjectRef, PodRef
from bayplan.live.context import SchedulerContext
from bayplan.live.enforcement_loop import EnforcementLoop, EnforcementTools
from bayplan.model.workloads import Workload, WorkloadKey

MAX_PEERS_JUDGED = 200_000  # of all violations that are judged at once: 440 pods of which each excludes the others


class Enforcement(EnforcementLoop):
    """Evicts pods."""

    def __init__(
        self,
        context: SchedulerContext,
        engine: Engine,
        settings: EnforcementSettings,
        *,
        dry_run: bool,
    ) -> None:
        index = context.state.index
        tools = EnforcementTools(index, context.events, context.metrics, context.clock, context.names)
        super().__init__(tools, settings, dry_run=dry_run)
        self._state, self._writer, self._engine = context.state, context.writer, engine
        self._terminating: dict[WorkloadKey, str] = {}  # with the uid: a later pod may have the same name

    def lasting_violations(self) -> list[Violation]:
        records = self._index.records
        violations, _ = self._tracker.judged_violations(MAX_PEERS_JUDGED)
        terminating = {key for key in involved(violations) if key in records and records[key].workload.terminating}
        return [violation for violation in violations if not violation.resolved_without(terminating)]

    def _judged_later(self) -> Iterable[ViolationId]:
        return self._tracker.judged_violations(MAX_PEERS_JUDGED)[1]

    def _precedence(self) -> Mapping[WorkloadKey, Precedence]:
        return self._tracker.precedence(self._tracker.judged_violations(MAX_PEERS_JUDGED)[0])

    def _ended(self) -> Iterable[WorkloadKey]:
        records = self._index.records
        for key, uid in list(self._terminating.items()):
            if key not in records or records[key].workload.uid != uid:
                del self._terminating[key]
                yield key

    def _checking_other_targets(self) -> contextlib.AbstractContextManager[Callable[[WorkloadKey], bool]]:
        # The profile does not matter: whether a pod fits is the same for all, only their scores differ.
        return enforcer.checking_other_targets(self._engine, self._state.spread_context.current)

    def _subjects(self, workload: Workload) -> tuple[ObjectRef, ...]:
        return (PodRef.of(workload),)

    async def _request(self, eviction: Eviction, workload: Workload) -> None:
        del eviction
        await self._writer.evict(PodRef.of(workload))

    def _began(self, victim: WorkloadKey, workload: Workload) -> None:
        self._terminating[victim] = workload.uid

    def _is_leaving(self, victim: WorkloadKey) -> bool:
        return victim in self._terminating
