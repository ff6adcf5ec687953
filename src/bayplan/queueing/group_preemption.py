"""
Preemption for a group as one unit: the pods of lower priority that leave so that all members that must run fit.

The victims are those of least importance, in one domain if the group must be in one: as few of the least important as a
plan needs, and of these the ones are spared beside which the plan holds. No PodDisruptionBudget is exceeded, not even
where nothing else helps: a group takes many pods at once. The index is left as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from bayplan.grouping import plan_check, search
from bayplan.grouping.attempts import BudgetSpentError
from bayplan.grouping.pending_groups import PendingGroup
from bayplan.grouping.problem import GroupPlan, GroupProblem, Solved
from bayplan.grouping.search import SearchLimits
from bayplan.indexing.classes import PlacedWorkload
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload, WorkloadKey, belongs_to_node
from bayplan.preempting.disruption_budgets import DisruptionBudgets

MAX_DOMAINS = 16  # that are searched for victims, those with the most room first


class GroupPreemption(msgspec.Struct, frozen=True):
    """The nodes of the members once the victims have left."""

    nodes: Mapping[WorkloadKey, str]
    victims: tuple[Workload, ...]

    @property
    def cost(self) -> tuple[int, int, int]:
        """Less is better: the highest priority of a victim, then the sum of priorities, then the number."""
        priorities = [victim.priority for victim in self.victims]
        return max(priorities), sum(priorities), len(priorities)


def find(
    problem: GroupProblem, group: PendingGroup, budgets: Iterable[DisruptionBudget], out_of_time: Callable[[], bool]
) -> GroupPreemption | None:
    """The cheapest preemption found; None if none makes room for the group."""
    priority = min(pod.priority for pod in group.pods)
    evictable = [
        record
        for record in problem.index.records.values()
        if record.workload.priority < priority and len(record.slots) == 1 and not belongs_to_node(record.workload)
    ]
    best: GroupPreemption | None = None
    for mask in _domains(problem, group, evictable) if evictable else ():
        there = [record for record in evictable if mask[record.slots[0]]]
        found = _in_domain(problem, _allowed(there, budgets), out_of_time)
        if found is not None and (best is None or found.cost < best.cost):
            best = found
        if out_of_time():
            break
    return best


def _domains(problem: GroupProblem, group: PendingGroup, evictable: Sequence[PlacedWorkload]) -> list[Mask]:
    """The domains of the required key with evictable pods, those with most of them first; else all targets."""
    index = problem.index
    if not group.topology_key:
        return [index.slots.alive]
    column = index.column(group.topology_key)
    n_evictable = np.bincount([one.slots[0] for one in evictable], minlength=index.slots.capacity)
    counted = []
    for value, domain in column.by_value.items():
        slots = column.slots_in(domain)
        counted.append((-int(n_evictable[slots].sum()), str(value), domain))
    found = []
    for n, _, domain in sorted(counted)[:MAX_DOMAINS]:
        if n:
            mask = np.zeros(index.slots.capacity, np.bool_)
            mask[column.slots_in(domain)] = True
            found.append(mask)
    return found


def _allowed(there: Iterable[PlacedWorkload], budgets: Iterable[DisruptionBudget]) -> list[PlacedWorkload]:
    """The pods that the budgets let go together, the least important first. What leaves anyway costs nothing."""
    left, found = DisruptionBudgets(budgets), []
    for record in sorted(there, key=_importance):
        if not record.workload.terminating:
            if left.forbidding(record.workload):
                continue
            left.charge(record.workload, 1)
        found.append(record)
    return found


def _importance(record: PlacedWorkload) -> tuple[bool, int, str, WorkloadKey]:
    """Terminating pods first, then by priority; of equal ones the youngest."""
    workload = record.workload
    age = "".join(chr(0x10FFFF - ord(character)) for character in workload.started)
    return not workload.terminating, workload.priority, age, workload.key


def _in_domain(
    problem: GroupProblem, candidates: Sequence[PlacedWorkload], out_of_time: Callable[[], bool]
) -> GroupPreemption | None:
    """The least important candidates that make room, found by halving; None if not even all of them do."""
    most, plan = len(candidates), _plan_without(problem, candidates, out_of_time)
    if plan is None:
        return None
    least = 0  # too few, as the group does not fit now
    while most - least > 1:
        middle = (least + most) // 2
        found = _plan_without(problem, candidates[:middle], out_of_time)
        least, most, plan = (middle, most, plan) if found is None else (least, middle, found)
    victims = _spared(problem, candidates[:most], plan, out_of_time)
    if not victims:
        return None
    return GroupPreemption(plan.nodes, tuple(one.workload for one in victims))


def _plan_without(
    problem: GroupProblem, gone: Sequence[PlacedWorkload], out_of_time: Callable[[], bool]
) -> GroupPlan | None:
    with problem.index.tentatively():
        for record in gone:
            problem.index.remove(record.key)
        try:
            answer = search.solve(problem, SearchLimits(repairs=False, out_of_time=out_of_time))
        except BudgetSpentError:
            return None
    return answer.plan if isinstance(answer, Solved) and answer.plan.nodes else None


def _spared(
    problem: GroupProblem, gone: Sequence[PlacedWorkload], plan: GroupPlan, out_of_time: Callable[[], bool]
) -> list[PlacedWorkload]:
    """Those that have to leave: the most important ones are spared first, as long as the plan holds beside them."""
    used = set(plan.nodes.values())
    victims = [one for one in gone if one.shares[0][0] in used]
    if not _holds(problem, plan, victims):
        victims = list(gone)
    for one in victims[::-1]:
        others = [victim for victim in victims if victim is not one]
        if out_of_time():
            break
        if _holds(problem, plan, others):
            victims = others
    return victims


def _holds(problem: GroupProblem, plan: GroupPlan, gone: Iterable[PlacedWorkload]) -> bool:
    with problem.index.tentatively():
        for record in gone:
            problem.index.remove(record.key)
        return not plan_check.faults(problem, plan)
