"""
Place everything that waits in the best way: the most pods by priority, then the fewest moves of running pods.

First everything is placed as a scheduler does; that is where the search for a better plan begins, and what remains if
none is found. Then pods that wait are put on nodes with better scores, one after the other. A plan with moves counts
only if its steps have a safe order. Knows nothing of files or terminals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from bayplan import schedule_pod
from bayplan.engine import filtering, scoring
from bayplan.engine.engine import EngineOf
from bayplan.grouping import optimum, pending_groups
from bayplan.grouping.optimum import Optimum, PriorityLevel, RunningPods
from bayplan.grouping.pending_groups import PendingGroup
from bayplan.grouping.problem import GroupPlan, GroupProblem
from bayplan.indexing.classes import PlacedWorkload
from bayplan.model.workloads import Workload, WorkloadKey, belongs_to_node
from bayplan.placing import place_cluster, recreating
from bayplan.placing.place_cluster import ClusterPlacement, ClusterToPlace, Optimisation, PlacingOptions
from bayplan.placing.place_pods import PodPlacement
from bayplan.placing.safe_steps import PlanStep, SafeSteps
from bayplan.preempting.disruption_budgets import DisruptionBudgets

MAX_IMPROVED = 300  # pods whose scores are improved
NO_ORDER = "the moves that were found have no safe order"
IN_TURN = "the best plan in which all rules hold at once places fewer pods"
Place = Callable[[ClusterToPlace, EngineOf, PlacingOptions], ClusterPlacement]


class _Question(msgspec.Struct, frozen=True):
    """
    What is to be placed: pods, of which some are in groups, and running pods that may move, as recreated.

    `n_left_out` pods are placed as usual, because a plan does not know which volumes their claims get.
    """

    pods: tuple[Workload, ...]
    groups: tuple[PendingGroup, ...]
    movable: tuple[Workload, ...]
    nodes: Mapping[WorkloadKey, str]
    n_left_out: int = 0


def place(cluster: ClusterToPlace, engine_of: EngineOf, options: PlacingOptions, as_usual: Place) -> ClusterPlacement:
    """Place everything that waits; `as_usual` places it as a scheduler does."""
    simple = msgspec.structs.replace(options, preempts=False, optimises=False)
    with cluster.index.tentatively():
        baseline = as_usual(cluster, engine_of, simple)
    usual = {one.workload.key: one.target for one in baseline.placements if one.target}
    mark = cluster.index.mark()
    answer = _place_best(cluster, engine_of, options, as_usual, usual)
    if _merit(answer) >= _merit(baseline):
        cluster.index.forget(mark)
        return answer
    cluster.index.undo_to(mark)
    return msgspec.structs.replace(as_usual(cluster, engine_of, simple), optimisation=Optimisation(undecided=IN_TURN))


def _merit(answer: ClusterPlacement) -> list[tuple[int, int]]:
    """How many pods of each priority are placed, the highest first."""
    placed = Counter({one.workload.priority: 0 for one in answer.placements})
    placed.update(one.workload.priority for one in answer.placements if one.target)
    return sorted(placed.items(), reverse=True)


def _place_best(
    cluster: ClusterToPlace,
    engine_of: EngineOf,
    options: PlacingOptions,
    as_usual: Place,
    usual: Mapping[WorkloadKey, str],
) -> ClusterPlacement:
    """Place everything by the best plan that is found, and what it leaves out as usual."""
    found, steps, question = _best(cluster, engine_of, options, usual)
    simple = msgspec.structs.replace(options, preempts=False, optimises=False)
    # What the plan leaves out, and what is no part of it, is told as usual why it fits nowhere.
    placed = {pod.key for step in steps for pod in step.pods}
    everything = cluster.pending
    cluster.pending = [one for one in everything if one.key not in placed]
    rest = as_usual(cluster, engine_of, simple)
    cluster.pending = everything
    pending = {pod.key for pod in question.pods}
    if isinstance(found, Optimum):
        extra = Counter(one.workload.priority for one in rest.placements if one.target and one.workload.key in pending)
        levels = tuple(_with_extra(level, extra[level.priority]) for level in found.levels)
        optimisation = Optimisation(
            levels, found.n_moves, found.least_moves, tuple(steps), n_left_out=question.n_left_out
        )
    else:
        optimisation = Optimisation(undecided=found)
    planned = [
        place_cluster.judged(PodPlacement(pod, node, _total(pod, engine_of)), cluster.not_judged.get(pod.key, ""))
        for step in steps
        for pod, node in zip(step.pods, step.nodes, strict=True)
        if pod.key in pending
    ]
    turn = {pod.key: number for number, pod in enumerate(everything)}
    placements = sorted([*planned, *rest.placements], key=lambda one: turn.get(one.workload.key, len(turn)))
    return msgspec.structs.replace(rest, placements=placements, optimisation=optimisation)


def _with_extra(level: PriorityLevel, n: int) -> PriorityLevel:
    """
    A level with pods that were placed beyond the plan: the bound does not hold for these.

    They are placed after a pod that was the first of a set and needs no peer, which it does not meet beside them.
    """
    return msgspec.structs.replace(level, n_placed=level.n_placed + n, most=level.n_pods) if n else level


def _best(
    cluster: ClusterToPlace, engine_of: EngineOf, options: PlacingOptions, usual: Mapping[WorkloadKey, str]
) -> tuple[Optimum | str, list[PlanStep], _Question]:
    """The best plan whose steps have a safe order, with these steps, which are carried out on the index."""
    question = _question(cluster, engine_of, options)
    found = _solved(question, cluster, engine_of, options.max_moves, usual)
    steps = _carried_out(found, question, cluster, engine_of)
    if steps is None and question.movable:
        question = msgspec.structs.replace(question, movable=(), nodes={})
        found = _solved(question, cluster, engine_of, 0, usual)
        steps = _carried_out(found, question, cluster, engine_of)
        if steps is not None and isinstance(found, Optimum):
            # A plan with moves may be better, so the bounds of the one without do not hold.
            levels = [msgspec.structs.replace(one, most=one.n_pods) for one in found.levels]
            found = Optimum(found.plan, tuple(levels))
    return (found, steps, question) if steps is not None else (NO_ORDER, [], question)


def _question(cluster: ClusterToPlace, engine_of: EngineOf, options: PlacingOptions) -> _Question:
    by_group: dict[str, list[Workload]] = {}
    single: list[Workload] = []
    for pod in cluster.pending:
        group = pending_groups.group_of(pod, by_owner=options.group_by_owner)
        if group:
            by_group.setdefault(group, []).append(pod)
        elif not pod.gates and not pod.terminating:
            single.append(pod)
    placed, declared = pending_groups.placed_members(cluster.index), cluster.spread_context.pod_groups
    groups = [pending_groups.pending_group(key, pods, placed.get(key, ()), declared) for key, pods in by_group.items()]
    groups = [one for one in groups if not one.problem and not pending_groups.missing_key(one, cluster.index)]
    movable, nodes = _movable(cluster, engine_of, options.may_move) if options.max_moves else ([], {})
    # A pod of a group that has claims is left out with its group.
    n_before = len(single) + sum(len(group.pods) for group in groups)
    single = [pod for pod in single if not pod.needs.claims.names]
    groups = [group for group in groups if not any(pod.needs.claims.names for pod in group.pods)]
    pods = (*single, *(pod for group in groups for pod in group.pods))
    return _Question(pods, tuple(groups), tuple(movable), nodes, n_before - len(pods))


def _movable(
    cluster: ClusterToPlace, engine_of: EngineOf, may_move: Callable[[Workload], bool]
) -> tuple[list[Workload], dict[WorkloadKey, str]]:
    """The running pods that may move, as their controllers recreate them, and their nodes."""
    index, budgets = cluster.index, DisruptionBudgets(cluster.disruption_budgets)
    found: list[Workload] = []
    nodes: dict[WorkloadKey, str] = {}
    for record in list(index.records.values()):
        if not _may_move(record, budgets) or not may_move(record.workload):
            continue
        pod, slot = recreating.as_recreated(record, index, cluster.spread_context), record.slots[0]
        with index.without(record.key):
            # A pod that breaks a rule where it is stays: the model demands that all rules of what it may move hold.
            if filtering.run(pod, engine_of(pod)).feasible[slot]:
                found.append(pod)
                nodes[pod.key] = index.slots.at(slot).name
    return found, nodes


def _may_move(record: PlacedWorkload, budgets: DisruptionBudgets) -> bool:
    pod = record.workload
    is_recreated = pod.controller is not None and not belongs_to_node(pod)
    is_alone = pod.group is None and len(record.slots) == 1 and not pod.needs.claims.names
    return is_recreated and is_alone and not pod.terminating and not budgets.forbidding(pod)


def _solved(
    question: _Question,
    cluster: ClusterToPlace,
    engine_of: EngineOf,
    max_moves: int,
    usual: Mapping[WorkloadKey, str],
) -> Optimum | str:
    """The best plan, on an index without the pods that may move."""
    if not question.pods:
        return Optimum(GroupPlan(question.nodes), ())
    members = {pod.key for group in question.groups for pod in group.pods}
    groups = [msgspec.structs.replace(group.to_place(), is_optional=True) for group in question.groups]
    problem = GroupProblem(
        pods=(*question.pods, *question.movable),
        groups=tuple(groups),
        index=cluster.index,
        engine_of=engine_of,
        optional=frozenset(pod.key for pod in question.pods if pod.key not in members),
    )
    waiting = {pod.key for pod in question.pods}
    hint = {**{key: node for key, node in usual.items() if key in waiting}, **question.nodes}
    with cluster.index.tentatively():
        for key in question.nodes:
            cluster.index.remove(key)
        found = optimum.solve(problem, RunningPods(question.nodes, max_moves), GroupPlan(hint))
        if isinstance(found, Optimum):
            plan = _with_better_scores(found.plan, question, cluster, engine_of)
            return msgspec.structs.replace(found, plan=plan)
        return found


def _with_better_scores(
    plan: GroupPlan, question: _Question, cluster: ClusterToPlace, engine_of: EngineOf
) -> GroupPlan:
    """The plan with pods that wait on better nodes, one after the other, as long as all rules hold."""
    index, nodes = cluster.index, dict(plan.nodes)
    for pod in (*question.pods, *question.movable):
        if pod.key in nodes:
            schedule_pod.assume(index, pod, index.slots.by_name[nodes[pod.key]])
    safe = SafeSteps(index, engine_of, ())
    for pod in [one for one in question.pods if one.key in nodes][:MAX_IMPROVED]:
        slot = index.slots.by_name[nodes[pod.key]]
        with index.without(pod.key):
            verdicts = filtering.run(pod, engine_of(pod))
            if not verdicts.feasible[slot]:
                continue
            ranking = scoring.run(verdicts, index)
            best = int(ranking.best(verdicts.feasible, index)[0])
            is_better = ranking.totals[best] > ranking.totals[slot]
        step = PlanStep((pod,), (index.slots.at(best).name,), nodes[pod.key])
        if is_better and safe.carry_out(step):
            nodes[pod.key] = step.nodes[0]
    return GroupPlan(nodes)


def _carried_out(
    found: Optimum | str, question: _Question, cluster: ClusterToPlace, engine_of: EngineOf
) -> list[PlanStep] | None:
    """The steps of a plan in a safe order, which are carried out; None if there is none, and nothing is changed."""
    if isinstance(found, str):
        return []
    nodes = found.plan.nodes
    members = {pod.key for group in question.groups for pod in group.pods}
    steps = [
        PlanStep((pod,), (nodes[pod.key],), question.nodes[pod.key])
        for pod in question.movable
        if nodes[pod.key] != question.nodes[pod.key]
    ]
    of_groups = [tuple(pod for pod in group.pods if pod.key in nodes) for group in question.groups]
    steps += [PlanStep(pods, tuple(nodes[pod.key] for pod in pods)) for pods in of_groups if pods]
    steps += [
        PlanStep((pod,), (nodes[pod.key],)) for pod in question.pods if pod.key in nodes and pod.key not in members
    ]
    mark = cluster.index.mark()
    ordered = SafeSteps(cluster.index, engine_of, cluster.disruption_budgets).in_order(steps)
    if ordered is None:
        cluster.index.undo_to(mark)
    else:
        cluster.index.forget(mark)
    return ordered


def _total(pod: Workload, engine_of: EngineOf) -> int:
    """The score of the node where a pod is, beside all others."""
    engine = engine_of(pod)
    index = engine.index
    slot = index.records[pod.key].slots[0]
    with index.without(pod.key):
        verdicts = filtering.run(pod, engine)
        return int(scoring.run(verdicts, index).totals[slot]) if verdicts.feasible[slot] else 0
