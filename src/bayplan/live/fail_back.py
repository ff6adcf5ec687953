"""
Lets bindings return to an earlier group or tier of clusters (switch `failBackAfter`); Karmada does on request only.

A binding returns once the better place has been there for the whole hold-down, so a cluster that flaps draws nothing,
and once the binding itself was scheduled as long ago. A budget limits how many return in a minute. How it is moved is
up to the scheduler: the clusters that it leaves keep their copies until the new ones are healthy.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator

from bayplan import schedule_binding
from bayplan.assigning import failback, group_failover
from bayplan.controllers import binding_triggers
from bayplan.live.fleet_scheduler import FleetContext
from bayplan.mapping import bindings
from bayplan.model.workloads import WorkloadKey
from bayplan.wire.fleets import ResourceBinding

MAX_INTERVAL_SECONDS = 10.0  # between two passes over the bindings that could be better placed
MAX_SLICE_SECONDS = 0.004  # of a pass, before other tasks run
REST_FACTOR = 9  # passes take a tenth of the time at most
BUDGET_SECONDS = 60.0
log = logging.getLogger("bayplan.fail_back")


class FailBack:
    """Finds the bindings that may return. `hold_down` is in seconds; `per_minute` may return in a minute."""

    def __init__(self, context: FleetContext, hold_down: int, per_minute: int) -> None:
        self._state, self._engine, self._metrics = context.state, context.engine, context.metrics
        self._clock, self._wall = context.clock, context.wall
        self._hold_down, self._per_minute = hold_down, per_minute
        self._better_since: dict[WorkloadKey, float] = {}
        self._returned: deque[float] = deque()

    async def run(self) -> None:
        """Look for bindings that may return until cancelled."""
        pause = min(MAX_INTERVAL_SECONDS, max(self._hold_down / 4, 1.0))
        while True:
            spent = 0.0
            steps = self.look()
            while True:
                began = self._clock()
                is_over = next(steps, None) is None
                spent += self._clock() - began
                if is_over:
                    break
                await asyncio.sleep(0)
            await asyncio.sleep(max(pause, spent * REST_FACTOR))

    def look(self) -> Iterator[bool]:
        """Look at every binding once, a slice with each step of the iterator."""
        found, began = set[WorkloadKey](), self._clock()
        for key in list(self._state.bindings):
            if self._is_better_placed_elsewhere(key):
                found.add(key)
                since = self._better_since.setdefault(key, self._clock())
                is_held = self._clock() - since < self._hold_down or self._was_just_scheduled(key)
                if not is_held and self._has_budget():
                    self._let_return(key)
            if self._clock() - began >= MAX_SLICE_SECONDS:
                yield True
                began = self._clock()
        for key in self._better_since.keys() - found:
            del self._better_since[key]

    def _let_return(self, key: WorkloadKey) -> None:
        del self._better_since[key]
        self._returned.append(self._clock())
        self._metrics.failed_back.inc()
        log.info("fails back", extra={"binding": key})
        self._state.let_fail_back(key)

    def _has_budget(self) -> bool:
        while self._returned and self._clock() - self._returned[0] >= BUDGET_SECONDS:
            self._returned.popleft()
        return len(self._returned) < self._per_minute

    def _is_better_placed_elsewhere(self, key: WorkloadKey) -> bool:
        """Whether a binding may return, and would be placed in an earlier group or tier."""
        state, index = self._state, self._engine.index
        written = state.bindings.get(key)
        if written is None or not self._may_return(key, written):
            return False
        workload = state.workloads[key]
        assert workload.binding is not None
        now = workload.binding.observed, tuple(bindings.shares_of(written))
        if failback.is_at_best(workload.binding, *now, index):
            return False
        with group_failover.without_workload(workload, index):
            decision = schedule_binding.schedule(failback.permitted(workload), self._engine)
        new = decision.observed, decision.shares
        return decision.placed and failback.is_better(workload.binding, new, now, index)

    def _may_return(self, key: WorkloadKey, written: ResourceBinding) -> bool:
        """Whether it is settled where it is: what is being scheduled or evicted is left alone."""
        state = self._state
        is_scheduled = key not in state.writing and key not in state.queue.pods and bool(written.spec.clusters)
        return is_scheduled and not written.spec.graceful_eviction_tasks and state.is_ours(written)

    def _was_just_scheduled(self, key: WorkloadKey) -> bool:
        return not binding_triggers.hold_down_is_over(self._state.bindings[key], self._hold_down, self._wall())
