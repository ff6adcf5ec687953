"""
Making room: which target to free for a workload that fits nowhere, and who has to go.

Decides as kube-scheduler's DefaultPreemption does (pkg/scheduler/framework/preemption), but looks at all targets where
that takes a sample. Reads the index and leaves it as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from bayplan.engine import filtering
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.model.reasons import Mask, StatusCode
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting import dry_run
from bayplan.preempting.candidate_search import CandidateSearch, SearchResult
from bayplan.preempting.constraints import PlacementConstraints, constraints_of
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.preempting.preemption_case import PreemptionCase, nominated_pods_of
from bayplan.rules.rule import Rule

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING = "not eligible due to a terminating pod on the nominated node."


class Preemption(msgspec.Struct, frozen=True):
    """
    Whom to ask to go, and for which target; without a target `message` says why there is none.

    `victims` are in order of importance; the going of `n_violations` of them breaks a budget. `clears_nomination`:
    whatever target was promised to the workload before, it is of no use any more.
    """

    target: str = ""
    victims: tuple[WorkloadKey, ...] = ()
    n_violations: int = 0
    message: str = ""
    clears_nomination: bool = False


NOTHING = Preemption()  # to do: the workload fits, or there is no target at all


def preempt(
    workload: Workload,
    index: PlacementIndex,
    rules: Sequence[Rule],
    budgets: DisruptionBudgets | None = None,
    nominated: Iterable[tuple[Workload, str]] = (),
) -> Preemption:
    """What to do for a workload that fits nowhere; `nominated` are others with the targets they were promised."""
    verdicts = filtering.run(rules, workload, index)
    limits = constraints_of(
        PreemptionCase(workload, index, rules, verdicts.results, nominated_pods_of(workload, nominated, index))
    )
    curable, fits = _standing(limits, verdicts)
    if fits.any() or not len(index.slots):
        return NOTHING
    not_eligible = _not_eligible(workload, index, curable)
    if not_eligible:
        return Preemption(message=f"preemption: {not_eligible}")
    budgets = budgets or DisruptionBudgets()
    found = _search(limits.renewed(), curable, budgets, across=False)
    best = found.best
    if best is None and index.semantics.preempt_across_nodes:
        best = _search(limits.renewed(), curable, budgets, across=True).best
    if best is None:
        return Preemption(message=f"preemption: {_sentence(found, limits, curable)}", clears_nomination=True)
    return Preemption(index.slots.at(best.slot).name, best.victims, best.cost.n_violations)


def _standing(limits: PlacementConstraints, verdicts: Verdicts) -> tuple[Mask, Mask]:
    """Where somebody's going may help, and where the workload fits as it is, guests included."""
    index = limits.case.index
    if verdicts.refusal is not None:
        return np.zeros_like(index.slots.alive), np.zeros_like(index.slots.alive)
    now = limits.outcome([allowance.left for allowance in limits.capacity_constraints], limits.near_now())
    curable, fits = limits.resolvable(now), now.first == -1
    for slot in limits.case.nominated_pods:
        if limits.entangled[slot]:
            against = dry_run.rejection_reasons(limits.case, slot)
            fits[slot] = not against
            curable[slot] = bool(against) and against[0].status is StatusCode.UNSCHEDULABLE
    allowed = index.slots.alive if verdicts.excluded is None else index.slots.alive & ~verdicts.excluded
    return curable & allowed, fits & allowed


def _not_eligible(workload: Workload, index: PlacementIndex, curable: Mask) -> str:
    """Why the workload may not ask anybody to go; empty if it may."""
    if not workload.preempts:
        return POLICY_NEVER
    slot = index.slots.by_name.get(workload.nominated_target)
    if slot is not None and curable[slot]:
        here = (index.records[key].workload for key in index.workloads_on(slot))
        if any(other.preempted and other.priority < workload.priority for other in here):
            return STILL_TERMINATING
    return ""


def _search(limits: PlacementConstraints, curable: Mask, budgets: DisruptionBudgets, *, across: bool) -> SearchResult:
    """Who is cheapest to free; `across` lets workloads on other targets go too."""
    workload, index = limits.case.workload, limits.case.index
    pod_table = index.pod_table
    lower = (pod_table.slot != FREE_ROW) & (pod_table.priority < workload.priority)
    if limits.nearness is not None and index.semantics.spare_affinity_partners:
        lower &= ~limits.nearness.partners()
    return CandidateSearch(limits, curable, lower, across=across).run(budgets)


def _sentence(found: SearchResult, limits: PlacementConstraints, curable: Mask) -> str:
    """`0/N nodes are available: …`, as kube-scheduler would say it of what freeing each target comes to."""
    case = limits.case
    n = len(case.index.slots)
    tally = Counter({NOT_HELPFUL: n - int(curable.sum()), NO_VICTIMS: int((curable & ~found.has_victims).sum())})
    for against in found.tried.values():
        tally.update(reason.text for reason in against)
    summed = curable & found.has_victims
    summed[list(found.tried)] = False
    tally.update(found.outcome.tally(summed, case.judged))
    counted = sorted(f"{times} {text}" for text, times in tally.items() if times)
    return f"0/{n} nodes are available: {', '.join(counted)}."
