"""
The victims on one target by a dry run: potential victims are removed from the index and reprieved one by one.

The result is the same as that of `reprieving`, from the rules themselves. All changes of the index are undone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.model.reasons import Reason
from bayplan.model.workloads import WorkloadKey
from bayplan.preempting.preemption_case import PreemptionCase

Reasons = tuple[Reason, ...]


class DryRunResult(msgspec.Struct, frozen=True):
    """`victims` are in order of importance; `reasons` reject the target even without all potential victims."""

    victims: tuple[WorkloadKey, ...] = ()
    reasons: Reasons = ()


def dry_run(case: PreemptionCase, slot: int, potential_victims: Sequence[tuple[WorkloadKey, bool]]) -> DryRunResult:
    """
    The victims among the potential ones.

    `potential_victims` is in order of importance; the flag says that an eviction violates a budget, and those are
    reprieved first.
    """
    index, victims = case.index, set[WorkloadKey]()
    with index.tentatively():
        removed = {key: (index.records[key].workload, index.records[key].shares) for key, _ in potential_victims}
        for key in removed:
            index.remove(key)
        reasons = rejection_reasons(case, slot)
        if reasons:
            return DryRunResult(reasons=reasons)
        for key in sorted(removed, key=dict(potential_victims).__getitem__, reverse=True):
            index.add_shares(*removed[key])
            if rejection_reasons(case, slot):
                index.remove(key)
                victims.add(key)
    return DryRunResult(tuple(key for key in removed if key in victims))


def rejection_reasons(case: PreemptionCase, slot: int) -> Reasons:
    """Why the target is rejected now, with its nominated pods or else without them; empty if it is not."""
    nominated_pods = case.nominated_pods.get(slot)
    if nominated_pods:
        target = case.index.slots.at(slot).name
        with case.index.tentatively():
            for nominated in nominated_pods:
                case.index.add(nominated, target)
            reasons = _reasons_now(case, slot)
        if reasons:
            return reasons
    return _reasons_now(case, slot)


def _reasons_now(case: PreemptionCase, slot: int) -> Reasons:
    for one in case.engine.evaluate(case.workload):
        codes = one.evaluation.codes
        if one.rule.filters and codes is not None and codes[slot]:
            return one.reasons(int(codes[slot]))
    return ()
