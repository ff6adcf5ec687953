"""Why a workload goes where it goes: every target, every rule against it, and what would help."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan import schedule
from bayplan.explaining import tally
from bayplan.explaining.what_would_fit import Fix, fixes
from bayplan.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.rule import Failure, Rule


class TargetVerdict(msgspec.Struct, frozen=True):
    """What all rules say of one target."""

    name: str
    fits: bool
    chosen: bool = False
    score: int = 0
    scores: dict[str, int] = {}
    failures: list[Failure] = []


class Explanation(msgspec.Struct, frozen=True):
    """`target` is where the workload goes, empty if nowhere; `message` is then kube-scheduler's sentence."""

    workload: WorkloadKey
    target: str
    message: str
    targets: list[TargetVerdict]
    fixes: list[Fix]


def explain(
    workload: Workload, index: PlacementIndex, rules: Sequence[Rule], *, with_fixes: bool = True
) -> Explanation:
    """
    The decision for one workload with all its reasons.

    A workload that is placed already is explained as if it were to be placed anew, not standing in its own way.
    """
    with index.without(workload.key):
        decision = schedule.schedule(workload, index, rules)
        targets = [
            _verdict(decision, workload, name, slot, index) for name, slot in sorted(index.slots.by_name.items())
        ]
        message = "" if decision.placed else tally.sentence(decision.verdicts, index)
        target = index.slots.at(decision.slot).name if decision.placed else ""
        found = fixes(workload, index, rules) if with_fixes and not decision.placed else []
    return Explanation(workload.key, target, message, targets, found)


def _verdict(
    decision: schedule.Decision, workload: Workload, name: str, slot: int, index: PlacementIndex
) -> TargetVerdict:
    verdicts, ranking = decision.verdicts, decision.ranking
    if verdicts.feasible[slot] and ranking is not None:
        scores = {rule: int(weighted[slot]) for rule, weighted in ranking.by_rule.items()}
        return TargetVerdict(name, True, slot == decision.slot, int(ranking.totals[slot]), scores)
    return TargetVerdict(name, False, failures=failures_at(verdicts, workload, slot, index))


def failures_at(verdicts: Verdicts, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
    """Everything against a target: all rules that fail there, not only the first."""
    found = []
    if verdicts.refusal is not None:
        rule, reason = verdicts.refusal
        found.append(Failure(rule.id, reason.text, detail="refused before any node was looked at"))
    for one in verdicts.judged:
        refused = one.refused()
        if refused is not None and refused[slot]:
            found.extend(one.rule.evidence(one.plan, workload, slot, index))
    if not found and verdicts.excluded is not None and verdicts.excluded[slot]:
        names = " ".join(sorted(verdicts.excluded_by))
        found.append(Failure("node-affinity", f"node(s) didn't satisfy plugin(s) [{names}]", detail="pinned to others"))
    return found
