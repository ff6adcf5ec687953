"""
Tells of pods whose required affinity no longer holds soon after they were bound.

The first pod of a set that requires affinity to itself needs no peer. If another scheduler places a pod of the set at
the same moment, both are first, and from then on the rule is broken: neither scheduler could know. It is told, and not
mended here; rules that are required during execution are. One pod of a set is looked at, and only once for a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bayplan.caching import BoundedCache
from bayplan.engine import filtering
from bayplan.explaining import fit_error
from bayplan.live.cluster_writer import PodRef
from bayplan.live.context import Engines, SchedulerContext
from bayplan.model.terms import AffinityTerms
from bayplan.model.workloads import Workload

LOOK_AFTER_SECONDS = 3.0  # the other pod has been reported by then
SAME_SET_SECONDS = 60.0  # within which one pod of a set is looked at
MAX_SETS = 10_000
BROKEN = "BrokenAfterBinding"
NOTE = (
    "{pod} was placed on {node} by its affinity, and now it is rejected there: {why}. Another scheduler, or a change "
    "of labels, came in between"
)


class FirstPods:
    """The pods that were just bound, one of each set, and when to look at them."""

    def __init__(self, context: SchedulerContext, engines: Engines, clock: Callable[[], float]) -> None:
        self._index, self._events = context.state.index, context.events
        self._engines, self._clock = engines, clock
        self._noted: BoundedCache[tuple[str, AffinityTerms], float] = BoundedCache()
        self._due: deque[tuple[float, Workload, str]] = deque()

    def note(self, workload: Workload, node: str) -> None:
        """Look at a pod that was bound, unless one of its set was bound a short time before."""
        affinity = workload.needs.affinity
        if not affinity.required and not affinity.group_required:
            return
        known, now = (workload.namespace, affinity), self._clock()
        if now - self._noted.get(known, -SAME_SET_SECONDS) >= SAME_SET_SECONDS:
            self._noted.put(known, now, MAX_SETS)
            self._due.append((now + LOOK_AFTER_SECONDS, workload, node))

    def next_at(self) -> float | None:
        """When the next pod is looked at."""
        return self._due[0][0] if self._due else None

    def step(self) -> None:
        """Look at one pod, if it is time: what it takes is the evaluation of one pod."""
        if self._due and self._due[0][0] <= self._clock():
            _, workload, node = self._due.popleft()
            self._look_at(workload, node)

    def _look_at(self, workload: Workload, node: str) -> None:
        record, slot = self._index.records.get(workload.key), self._index.slots.by_name.get(node)
        if record is None or record.workload.uid != workload.uid or slot is None or slot not in record.slots:
            return
        with self._index.without(workload.key):
            verdicts = filtering.run(record.workload, self._engines[workload.scheduler_name])
            rule, reasons = fit_error.reasons_at(verdicts, slot)
        if rule == "InterPodAffinity":
            why = ", ".join(reason.text for reason in reasons)
            note = NOTE.format(pod=workload.key, node=node, why=why)
            self._events.record(PodRef.of(workload), BROKEN, note, action="Binding", warning=True)
