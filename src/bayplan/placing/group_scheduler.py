"""
Place groups of pods among others: a group takes its turn in the queue, and all that it needs is placed or nothing.

A group that does not fit leaves no trace, so it neither holds room nor keeps others waiting; it is tried again when
something has been placed or has left since. What fits beyond the members that it needs is placed with them or later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan import schedule_pod
from bayplan.engine import scoring
from bayplan.engine.engine import EngineOf
from bayplan.explaining.group_wait import GroupWait
from bayplan.grouping import pending_groups, search, waiting
from bayplan.grouping.pending_groups import PendingGroup
from bayplan.grouping.problem import Answer, ExactSolver, GroupProblem, Solved
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.groups import GroupDeclaration
from bayplan.model.workloads import Workload, WorkloadKey, queue_order
from bayplan.placing.place_pods import PodPlacement


class GroupOptions(msgspec.Struct, frozen=True):
    """Which pods are groups: those of `declarations` and annotations, and those of one controller `by_owner`."""

    declarations: Mapping[str, GroupDeclaration] = {}
    by_owner: bool = False
    exact: ExactSolver | None = None


class GroupScheduler:
    """The pending members of groups by group, and for each group when it was tried last."""

    def __init__(self, index: PlacementIndex, engine_of: EngineOf, options: GroupOptions) -> None:
        self._index, self._engine_of, self._options = index, engine_of, options
        self._pods: dict[str, dict[WorkloadKey, Workload]] = {}
        self._group_of: dict[WorkloadKey, str] = {}
        self._tried: dict[str, int] = {}
        self._answers: dict[str, Answer] = {}
        self.n_changes = 0  # of the cluster by the scheduler: a group is tried again only after one

    def add(self, pod: Workload) -> bool:
        """Let a pod wait with its group; False if it is in none."""
        group = pending_groups.group_of(pod, by_owner=self._options.by_owner)
        if group:
            self._pods.setdefault(group, {})[pod.key] = pod
            self._group_of[pod.key] = group
            self._tried.pop(group, None)
        return bool(group)

    def remove(self, key: WorkloadKey) -> bool:
        """Forget a pending member; False if it is none."""
        group = self._group_of.pop(key, "")
        if not group:
            return False
        pods = self._pods[group]
        del pods[key]
        self._tried.pop(group, None)
        if not pods:
            del self._pods[group]
        return True

    def attempt(self, before: Workload | None = None) -> list[PodPlacement]:
        """
        Try the groups that may fit by now, in the order of the queue; returns what was placed.

        With `before`, only those that were not tried yet and whose turn comes before that of a pod.
        """
        placed: list[PodPlacement] = []
        due = [name for name in self._pods if self._tried.get(name, -1) != self.n_changes]
        if before is not None:
            due = [name for name in due if name not in self._tried]
        if not due:
            return placed
        groups = sorted(self._pending(due), key=lambda group: group.order)
        for group in groups:
            if before is not None and group.order > queue_order(before):
                break
            placed += self._place(group)
            self._tried[group.key] = self.n_changes
        return placed

    def waits(self) -> dict[WorkloadKey, GroupWait]:
        """For each member that is still pending, and is not held back, why."""
        found: dict[WorkloadKey, GroupWait] = {}
        for group in self._pending(list(self._pods)):
            wait = waiting.why(group, self._problem(group), self._answers.get(group.key))
            found.update((pod.key, wait) for pod in group.pods)
        return found

    def workload(self, key: WorkloadKey) -> Workload:
        return self._pods[self._group_of[key]][key]

    def _pending(self, names: Sequence[str]) -> list[PendingGroup]:
        placed = pending_groups.placed_members(self._index)
        return [
            pending_groups.pending_group(
                name, list(self._pods[name].values()), placed.get(name, ()), self._options.declarations
            )
            for name in names
        ]

    def _problem(self, group: PendingGroup) -> GroupProblem:
        return GroupProblem(pods=group.pods, groups=(group.to_place(),), index=self._index, engine_of=self._engine_of)

    def _place(self, group: PendingGroup) -> list[PodPlacement]:
        if group.problem or not group.pods or pending_groups.missing_key(group, self._index):
            return []
        problem = self._problem(group)
        answer = search.solve(problem, exact=self._options.exact)
        self._answers[group.key] = answer
        if not isinstance(answer, Solved):
            return []
        found = []
        for key, node in answer.plan.nodes.items():
            pod = self._pods[group.key][key]
            total = self._total(pod, self._index.slots.by_name[node])
            schedule_pod.assume(self._index, pod, self._index.slots.by_name[node])
            found.append(PodPlacement(pod, node, total))
        for one in found:
            self.remove(one.workload.key)
        if found:
            self.n_changes += 1
        return found

    def _total(self, pod: Workload, slot: int) -> int:
        """The score of the target; 0 where the pod is feasible only with the members after it."""
        decision = schedule_pod.schedule(pod, self._engine_of(pod))
        ranking: scoring.Ranking | None = decision.ranking
        return int(ranking.totals[slot]) if ranking is not None and decision.verdicts.feasible[slot] else 0
