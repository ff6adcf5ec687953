"""
Who must go from a target where only trying tells: workloads are taken off the index, put back one by one, and undone.

The same choice as `reprieving`, for one target, by asking the rules themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bayplan.engine import filtering
from bayplan.model.reasons import Reason
from bayplan.model.workloads import WorkloadKey
from bayplan.preempting.preemption_case import PreemptionCase

Reasons = tuple[Reason, ...]


class DryRunResult(msgspec.Struct, frozen=True):
    """`victims` are in the order of `may_go`; `against` says why the target is refused even with all of them gone."""

    victims: tuple[WorkloadKey, ...] = ()
    against: Reasons = ()


def dry_run(case: PreemptionCase, slot: int, may_go: Sequence[tuple[WorkloadKey, bool]]) -> DryRunResult:
    """
    Who of those that may go must.

    `may_go` is in order of importance; the flag says that going breaks a budget, and those are spared first.
    """
    index, must = case.index, set[WorkloadKey]()
    with index.tentatively():
        gone = {key: (index.records[key].workload, index.records[key].shares) for key, _ in may_go}
        for key in gone:
            index.remove(key)
        against = rejection_reasons(case, slot)
        if against:
            return DryRunResult(against=against)
        for key in sorted(gone, key=dict(may_go).__getitem__, reverse=True):
            index.add_shares(*gone[key])
            if rejection_reasons(case, slot):
                index.remove(key)
                must.add(key)
    return DryRunResult(tuple(key for key in gone if key in must))


def rejection_reasons(case: PreemptionCase, slot: int) -> Reasons:
    """Why the target is refused as the index is now, with the guests that were promised it or without; empty if not."""
    nominated_pods = case.nominated_pods.get(slot)
    if nominated_pods:
        target = case.index.slots.at(slot).name
        with case.index.tentatively():
            for nominated in nominated_pods:
                case.index.add(nominated, target)
            against = _refused(case, slot)
        if against:
            return against
    return _refused(case, slot)


def _refused(case: PreemptionCase, slot: int) -> Reasons:
    judged: Iterable[filtering.RuleResult] = filtering.evaluate_rules(case.rules, case.workload, case.index)
    for one in judged:
        codes = one.evaluation.codes
        if one.rule.filters and codes is not None and codes[slot]:
            return one.rule.reasons(one.state, int(codes[slot]))
    return ()
