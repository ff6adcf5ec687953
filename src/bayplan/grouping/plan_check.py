"""
Whether a plan keeps every rule: asked of the engine, for each pod in the presence of all others.

Knows nothing of how a plan is found.
"""

from __future__ import annotations

import msgspec

from bayplan import schedule_pod
from bayplan.engine import filtering
from bayplan.grouping.problem import GroupPlan, GroupProblem, GroupToPlace
from bayplan.model.groups import MEMBER_OF
from bayplan.model.workloads import WorkloadKey


class PlanFault(msgspec.Struct, frozen=True):
    """The id of a rule that a plan breaks, for a pod or a group, and on which node."""

    rule: str
    name: str
    node: str = ""

    def __str__(self) -> str:
        return f"{self.name} on {self.node}: {self.rule}" if self.node else f"{self.name}: {self.rule}"


def faults(problem: GroupProblem, plan: GroupPlan) -> list[PlanFault]:
    """What a plan breaks; nothing if it may be carried out. The index is as before in the end."""
    index, slot_of = problem.index, problem.index.slots.by_name
    unknown = [PlanFault("node-name", key, node) for key, node in plan.nodes.items() if node not in slot_of]
    if unknown:
        return unknown
    found = _missing(problem, plan)
    with index.tentatively():
        placed = [pod for pod in problem.pods if pod.key in plan.nodes]
        for pod in placed:
            schedule_pod.assume(index, pod, slot_of[plan.nodes[pod.key]])
        for group in problem.groups:
            found += _several_domains(problem, group)
        for pod in placed:
            node = plan.nodes[pod.key]
            with index.without(pod.key):
                verdicts = filtering.run(pod, problem.engine_of(pod))
                if not verdicts.feasible[slot_of[node]]:
                    found += [PlanFault(rule, pod.key, node) for rule in _rejecting(verdicts, slot_of[node])]
    return found


def _rejecting(verdicts: filtering.Verdicts, slot: int) -> list[str]:
    if verdicts.pre_filter_rejection is not None:
        rule, reason = verdicts.pre_filter_rejection
        return [reason.text if rule is None else rule.id]
    rejecting = []
    for result in verdicts.results:
        rejected = result.rejected()
        if rejected is not None and rejected[slot]:
            rejecting.append(result.rule.id)
    return rejecting or [rule.id for rule in verdicts.excluded_by]


def _missing(problem: GroupProblem, plan: GroupPlan) -> list[PlanFault]:
    """Pods that must be placed, and groups of which too few are."""
    in_groups = {key for group in problem.groups for key in group.pods}
    found = [
        PlanFault("not placed", pod.key)
        for pod in problem.pods
        if pod.key not in in_groups and pod.key not in plan.nodes and pod.key not in problem.optional
    ]
    for group in problem.groups:
        n_planned = sum(key in plan.nodes for key in group.pods)
        n_running = group.n_placed + n_planned
        if n_running < group.min_members and (n_planned or not group.is_optional):
            found.append(PlanFault(f"{n_running} of {group.min_members} members run", group.key))
    return found


def _several_domains(problem: GroupProblem, group: GroupToPlace) -> list[PlanFault]:
    """A group whose members, placed and planned, are in more than one domain of its key."""
    if not group.topology_key:
        return []
    index, own = problem.index, set(group.pods)
    column = index.column(group.topology_key)
    slots = {
        slot
        for key, record in index.records.items()
        if key in own or record.workload.labels.get(MEMBER_OF) == group.key
        for slot in record.slots
    }
    common = set.intersection(*[set(column.domains(slot)) for slot in slots]) if slots else {-1}
    return [] if common else [PlanFault(f"several domains of {group.topology_key}", WorkloadKey(group.key))]
