"""
Preemption for a workload that fits nowhere: the node to nominate and the victims to evict.

Decides as kube-scheduler's DefaultPreemption does (pkg/scheduler/framework/preemption), but considers all targets where
that considers a sample. Leaves the index unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.model.reasons import Mask, StatusCode
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting import dry_run
from bayplan.preempting.candidate_search import CandidateSearch, SearchResult
from bayplan.preempting.constraints import PlacementConstraints
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.preempting.preemption_case import PreemptionCase, preemptor_of

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING = "not eligible due to a terminating pod on the nominated node."


class Preemption(msgspec.Struct, frozen=True):
    """
    The target to nominate and the victims; without a target `message` gives the reason.

    `victims` are in order of importance; evicting `n_violations` of them violates a budget. `clears_nomination`: an
    earlier nomination of the workload no longer helps.
    """

    target: str = ""
    victims: tuple[WorkloadKey, ...] = ()
    n_violations: int = 0
    message: str = ""
    clears_nomination: bool = False


NOTHING = Preemption()  # the workload fits, or there is no target at all


def preempt(
    workload: Workload,
    engine: Engine,
    budgets: DisruptionBudgets | None = None,
    nominated: Iterable[tuple[Workload, str]] = (),
) -> Preemption:
    """The preemption for a workload that fits nowhere; `nominated` are other workloads with their nominated targets."""
    index, verdicts = engine.index, filtering.run(workload, engine)
    case = PreemptionCase(preemptor_of(workload, nominated, index), engine, verdicts.results)
    constraints = PlacementConstraints(case)
    resolvable, fits = _resolvable_and_fitting(constraints, verdicts)
    if fits.any() or not len(index.slots):
        return NOTHING
    not_eligible = _not_eligible(workload, index, resolvable)
    if not_eligible:
        return Preemption(message=f"preemption: {not_eligible}")
    budgets = budgets or DisruptionBudgets()
    found = _search(constraints.current(), resolvable, budgets, across_nodes=False)
    best = found.best
    if best is None and index.semantics.preempt_across_nodes:
        best = _search(constraints.current(), resolvable, budgets, across_nodes=True).best
    if best is None:
        return Preemption(message=f"preemption: {_message(found, constraints, resolvable)}", clears_nomination=True)
    return Preemption(index.slots.at(best.slot).name, best.victims, best.cost.n_violations)


def _resolvable_and_fitting(constraints: PlacementConstraints, verdicts: Verdicts) -> tuple[Mask, Mask]:
    """The targets where evictions may help, and those where the workload fits now, nominated pods included."""
    index = constraints.case.index
    if verdicts.pre_filter_rejection is not None:
        return np.zeros_like(index.slots.alive), np.zeros_like(index.slots.alive)
    now = constraints.outcome()
    resolvable, fits = constraints.resolvable(now), now.first == -1
    for slot in constraints.case.nominated_pods:
        if constraints.needs_dry_run[slot]:
            reasons = dry_run.rejection_reasons(constraints.case, slot)
            fits[slot] = not reasons
            resolvable[slot] = bool(reasons) and reasons[0].status is StatusCode.UNSCHEDULABLE
    allowed = index.slots.alive if verdicts.excluded is None else index.slots.alive & ~verdicts.excluded
    return resolvable & allowed, fits & allowed


def _not_eligible(workload: Workload, index: PlacementIndex, resolvable: Mask) -> str:
    """Why the workload is not eligible for preemption; empty if it is."""
    if not workload.preempts:
        return POLICY_NEVER
    slot = index.slots.by_name.get(workload.nominated_target)
    if slot is not None and resolvable[slot]:
        here = (index.records[key].workload for key in index.workloads_on(slot))
        if any(other.preempted and other.priority < workload.priority for other in here):
            return STILL_TERMINATING
    return ""


def _search(
    constraints: PlacementConstraints, resolvable: Mask, budgets: DisruptionBudgets, *, across_nodes: bool
) -> SearchResult:
    """The search over the resolvable targets; with `across_nodes` victims may be on other targets too."""
    workload, index = constraints.case.workload, constraints.case.index
    pod_table = index.pod_table
    evictable = (pod_table.slot != FREE_ROW) & (pod_table.priority < workload.priority)
    if index.semantics.spare_affinity_partners:
        for requirement in constraints.requirements:
            evictable &= ~requirement.partners()
    return CandidateSearch(constraints, resolvable, evictable, across_nodes=across_nodes).run(budgets)


def _message(found: SearchResult, constraints: PlacementConstraints, resolvable: Mask) -> str:
    """`0/N nodes are available: …` as kube-scheduler reports it for preemption."""
    case = constraints.case
    n = len(case.index.slots)
    counts = Counter({NOT_HELPFUL: n - int(resolvable.sum()), NO_VICTIMS: int((resolvable & ~found.has_victims).sum())})
    for reasons in found.dry_runs.values():
        counts.update(reason.text for reason in reasons)
    without_dry_run = resolvable & found.has_victims
    without_dry_run[list(found.dry_runs)] = False
    counts.update(found.outcome.count(without_dry_run, case.results))
    counted = sorted(f"{times} {text}" for text, times in counts.items() if times)
    return f"0/{n} nodes are available: {', '.join(counted)}."
