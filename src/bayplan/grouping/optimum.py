"""
The best plan for pods of which not all may fit: the most by priority, then the fewest running pods that move.

The exact model is asked once for each priority, the highest first; what was reached is kept from then on. Each answer
comes with a proven bound, so it is known how much better a plan could be. Knows nothing of the order in which a plan
is carried out. Needs the package `ortools`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.grouping import exact, plan_check
from bayplan.grouping.linear_model import Term
from bayplan.grouping.plan_model import ModelTooLargeError, PendingClass, PlanModel
from bayplan.grouping.problem import GroupPlan, GroupProblem
from bayplan.indexing.slots import rank_of
from bayplan.model.workloads import Workload, WorkloadKey

MAX_STEPS = 20.0  # of all searches together, in CP-SAT's deterministic time: each takes a processor about a second
NOT_FOUND = "no plan was found in the steps of the search"


class PriorityLevel(msgspec.Struct, frozen=True):
    """Of the `n_pods` pods of a priority, `n_placed` are placed; it is proven that no plan places more than `most`."""

    priority: int
    n_pods: int
    n_placed: int
    most: int


class Optimum(msgspec.Struct, frozen=True):
    """
    The nodes of the pods that are placed, with the `levels` from the highest priority down.

    Of the running pods, `n_moves` are on another node than before; no plan with as many pods has fewer than
    `least_moves`. A bound of a level holds for plans that are as good at the levels before it.
    """

    plan: GroupPlan
    levels: tuple[PriorityLevel, ...]
    n_moves: int = 0
    least_moves: int = 0

    @property
    def is_proven(self) -> bool:
        """Whether no plan is better."""
        return self.n_moves == self.least_moves and all(level.n_placed == level.most for level in self.levels)


class RunningPods(msgspec.Struct, frozen=True):
    """The nodes of running pods that may move, and how many of them may."""

    nodes: Mapping[WorkloadKey, str] = {}
    max_moves: int = 0


def solve(problem: GroupProblem, running: RunningPods, hint: GroupPlan, steps: float | None = None) -> Optimum | str:
    """
    The best plan that is found, or why none is. The index is as before in the end.

    The pods of the problem are those that wait and those that run, and the index has none of them. `hint` is a plan.
    """
    from bayplan.grouping import cp_sat  # needs a package that is optional

    seed = rank_of(problem.index.slots.seed, "optimum") % 2**30
    try:
        model = exact.model_of(problem, apart=lambda pod: (pod.priority, pod.key in running.nodes))
    except ModelTooLargeError:
        return exact.TOO_LARGE
    stays = _add_stays(model, running)
    priorities = sorted({pod.priority for pod in problem.pods if pod.key not in running.nodes}, reverse=True)
    values: Sequence[int] | None = None
    hints = model.values_of(hint)
    levels: list[PriorityLevel] = []
    least_moves = 0
    n_searches = len(priorities) + bool(stays)
    for turn in range(n_searches):
        budget = cp_sat.SolverBudget((MAX_STEPS if steps is None else steps) / n_searches)
        waiting = [] if turn == len(priorities) else _of_priority(model, running, priorities[turn])
        terms = [(variable, 1) for one in waiting for variable in one.counts.values()] if waiting else stays
        model.linear.objective = terms
        found = cp_sat.maximise(model.linear, hints, seed, budget)
        if found.values is not None:
            values, hints = found.values, dict(enumerate(found.values))
        if values is None:
            return NOT_FOUND
        reached = _sum(terms, values)
        bound = max(reached, found.bound) if found.bound is not None else sum(model.linear.upper[v] for v, _ in terms)
        if waiting:
            n_pods = sum(len(one.pods) for one in waiting)
            levels.append(PriorityLevel(priorities[turn], n_pods, reached, min(bound, n_pods)))
        else:
            least_moves = max(0, len(running.nodes) - bound)
        model.linear.at_least(terms, reached)
    assert values is not None
    plan = _plan(model, values, running)
    if broken := plan_check.faults(problem, plan):
        return exact.NOT_COVERED.format(broken[0])
    n_moves = sum(plan.nodes[key] != node for key, node in running.nodes.items())
    return Optimum(plan, tuple(levels), n_moves, least_moves)


def _of_priority(model: PlanModel, running: RunningPods, priority: int) -> list[PendingClass]:
    return [one for one in model.classes if one.first.priority == priority and one.first.key not in running.nodes]


def _sum(terms: Sequence[Term], values: Sequence[int]) -> int:
    return sum(factor * values[variable] for variable, factor in terms)


def _add_stays(model: PlanModel, running: RunningPods) -> list[Term]:
    """A variable for each class of running pods and node: how many of them stay there. As many as may not move do."""
    stays: list[Term] = []
    by_name = model.index.slots.by_name
    for one in model.classes:
        if one.first.key not in running.nodes:
            continue
        before: dict[int, int] = {}
        for pod in one.pods:
            slot = by_name[running.nodes[pod.key]]
            before[slot] = before.get(slot, 0) + 1
        for slot, n in sorted(before.items()):
            if slot in one.counts:
                stay = model.linear.variable(n)
                model.linear.at_most([(stay, 1), (one.counts[slot], -1)], 0)
                stays.append((stay, 1))
    if stays:
        model.linear.at_least(stays, len(running.nodes) - running.max_moves)
    return stays


def _plan(model: PlanModel, values: Sequence[int], running: RunningPods) -> GroupPlan:
    """The plan that a solution stands for. Running pods of a class stay where they are as far as possible."""
    nodes: dict[WorkloadKey, str] = {}
    for one in model.classes:
        left: list[Workload] = list(one.pods)
        room: dict[str, int] = {}
        for slot, variable in one.counts.items():
            room[model.index.slots.at(slot).name] = values[variable]
        for pod in one.pods:
            node = running.nodes.get(pod.key, "")
            if room.get(node, 0) > 0:
                room[node] -= 1
                nodes[pod.key] = node
                left.remove(pod)
        waiting = iter(left)
        for node, n in room.items():
            nodes.update((next(waiting).key, node) for _ in range(n))
    return GroupPlan(nodes)
