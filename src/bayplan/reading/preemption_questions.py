"""Questions of `decide preemption`: those of `decide pods`, with budgets and with pods that were promised a node."""

from __future__ import annotations

import msgspec

from bayplan.errors import InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import moments
from bayplan.model.workloads import Workload
from bayplan.preempting.budgets import Budgets
from bayplan.reading import budgets, pods, questions
from bayplan.reading.questions import PodQuestion
from bayplan.rules.profile import Profile
from bayplan.wire.disruption import PodDisruptionBudget


class PreemptionSituation(msgspec.Struct):
    """A question made ready to be decided; `nominated` are waiting pods with the nodes they were promised."""

    index: PlacementIndex
    workload: Workload
    profile: Profile
    budgets: Budgets
    nominated: list[tuple[Workload, str]]


def situation_of(question: PodQuestion) -> PreemptionSituation:
    """As for `decide pods`; pods without a node count if one was promised to them."""
    _check_times(question)
    situation = questions.situation_of(question)
    written = [msgspec.convert(one, PodDisruptionBudget) for one in question.objects if _is_budget(one)]
    waiting = [pod for pod in question.pods if not pod.spec.node_name and not pods.finished(pod)]
    workloads = [pods.workload_of(pod, situation.surroundings) for pod in waiting]
    return PreemptionSituation(
        situation.index,
        situation.workload,
        situation.profile,
        Budgets(budgets.budget_of(each) for each in written),
        [(workload, workload.nominated_target) for workload in workloads],
    )


def _is_budget(written: dict[str, object]) -> bool:
    return written.get("kind") == "PodDisruptionBudget"


def _check_times(question: PodQuestion) -> None:
    for i, pod in enumerate(question.pods):
        try:
            moments.nanoseconds(pod.status.start_time or "1970-01-01T00:00:00Z")
        except ValueError as error:
            raise InputError(f"pods[{i}].status.startTime: {error}") from None
