"""
One attempt to place a group as a whole, on a copy of the index: a plan, victims that make room for one, or why neither.

Changes nothing but for the time of the attempt. Who carries it out, and when, is up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from bayplan.engine.engine import EngineOf
from bayplan.explaining import group_wait
from bayplan.grouping import pending_groups, plan_check, search, waiting
from bayplan.grouping.attempts import BudgetSpentError
from bayplan.grouping.pending_groups import PendingGroup
from bayplan.grouping.problem import Answer, GroupPlan, GroupProblem, Solved, Undecided
from bayplan.grouping.search import SearchLimits
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing import group_preemption, nominations

NOMINATED = "nominated"  # the stage that found the plan: it is that of an earlier preemption
WAITS_FOR_VICTIMS = "It waits for {n} pods that are evicted for it."


class GroupRequest(msgspec.Struct, frozen=True, kw_only=True):
    """
    A group to be placed. `nominated` are other pods that it leaves room for, with their nodes.

    `own` are the nominated nodes of its members, for which the pods with the uids `victims` are evicted.
    """

    group: PendingGroup
    nominated: tuple[tuple[Workload, str], ...] = ()
    own: Mapping[WorkloadKey, str] = {}
    victims: frozenset[str] = frozenset()
    budgets: tuple[DisruptionBudget, ...] = ()


class GroupAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """
    The `nodes` of the members that can be placed, none if too few can; then `message` says why.

    With `victims`, the members are to be nominated to the nodes of `nominate`; where these are empty and
    `clears_nominations`, the earlier ones no longer help.
    """

    nodes: Mapping[WorkloadKey, str] = {}
    message: str = ""
    victims: tuple[Workload, ...] = ()
    nominate: Mapping[WorkloadKey, str] = {}
    clears_nominations: bool = False


def attempt(
    request: GroupRequest, index: PlacementIndex, engine_of: EngineOf, out_of_time: Callable[[], bool]
) -> GroupAttempt:
    """Try to place a group; the index is as before in the end."""
    group = request.group
    problem = GroupProblem(pods=group.pods, groups=(group.to_place(),), index=index, engine_of=engine_of)
    if pending_groups.missing_key(group, index):
        return GroupAttempt(message=group_wait.sentence(waiting.briefly(group, problem, None)))
    with nominations.with_nominated_pods(request.nominated, index):
        answer = _answer(request, problem, out_of_time)
        if isinstance(answer, Solved) and answer.plan.nodes:
            if not request.nominated:
                return GroupAttempt(nodes=answer.plan.nodes)
        else:
            return _not_placed(request, problem, answer, out_of_time)
    # Nominated pods may never run there, so what a plan requires of them does not hold.
    broken = plan_check.faults(problem, answer.plan)
    if not broken:
        return GroupAttempt(nodes=answer.plan.nodes)
    return GroupAttempt(message=f"group {group.key} waits for pods that are nominated to nodes: {broken[0]}")


def _answer(request: GroupRequest, problem: GroupProblem, out_of_time: Callable[[], bool]) -> Answer:
    if all(pod.key in request.own for pod in problem.pods):
        plan = GroupPlan({pod.key: request.own[pod.key] for pod in problem.pods})
        if not plan_check.faults(problem, plan):
            return Solved(plan, NOMINATED)
    return search.solve(problem, SearchLimits(out_of_time=out_of_time))


def _not_placed(
    request: GroupRequest, problem: GroupProblem, answer: Answer, out_of_time: Callable[[], bool]
) -> GroupAttempt:
    group, index = request.group, problem.index
    wait = waiting.briefly(group, problem, answer if isinstance(answer, Undecided) else None)
    message = group_wait.sentence(wait)
    leaving = [one for one in index.records.values() if one.workload.uid in request.victims] if request.victims else []
    if leaving:
        return GroupAttempt(message=f"{message} {WAITS_FOR_VICTIMS.format(n=len(leaving))}")
    if not group.min_members:
        # Members of a group that demands none are placed like single pods, and so one at a time preempts.
        group = msgspec.structs.replace(group, pods=group.pods[:1], min_members=group.n_placed + 1)
        problem = msgspec.structs.replace(problem, pods=group.pods, groups=(group.to_place(),))
    elif wait.is_growing:
        return GroupAttempt(message=message, clears_nominations=bool(request.own))
    if not all(pod.preempts for pod in group.pods):
        return GroupAttempt(message=message, clears_nominations=bool(request.own))
    try:
        found = group_preemption.find(problem, group, request.budgets, out_of_time)
    except BudgetSpentError:
        found = None
    if found is None:
        return GroupAttempt(message=message, clears_nominations=bool(request.own))
    return GroupAttempt(message=message, victims=found.victims, nominate=found.nodes, clears_nominations=True)
