"""
The victims on one target by a dry run: potential victims are removed from the index and reprieved one by one.

The result is the same as that of `reprieving`, from the rules themselves. All changes of the index are undone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from bayplan.model.reasons import Reason
from bayplan.model.workloads import WorkloadKey
from bayplan.preempting.preemption_case import PreemptionCase

Reasons = tuple[Reason, ...]


class DryRunResult(msgspec.Struct, frozen=True):
    """`victims` are in order of importance; `reasons` reject the target even without all potential victims."""

    victims: tuple[WorkloadKey, ...] = ()
    reasons: Reasons = ()


class Forgetting:
    """
    A constraint that kube-scheduler forgets takers of, on one target: what is left of it while victims are gone.

    It is that of the rule at `position`.
    """

    def __init__(self, position: int, remaining: int, takes: Mapping[WorkloadKey, int]) -> None:
        self.position = position
        self._remaining, self._takes = remaining, takes

    def holds_without(self, victims: Collection[WorkloadKey]) -> bool:
        return self._remaining + sum(self._takes[key] for key in victims) >= 0


def dry_run(
    case: PreemptionCase,
    slot: int,
    potential_victims: Sequence[tuple[WorkloadKey, bool]],
    forgetting: Sequence[Forgetting] = (),
) -> DryRunResult:
    """
    The victims among the potential ones.

    `potential_victims` is in order of importance; the flag says that an eviction violates a budget, and those are
    reprieved first. `forgetting` are constraints that hold more often than their rules say.
    """
    index, victims = case.index, set[WorkloadKey]()
    with index.tentatively():
        removed = {key: (index.records[key].workload, index.records[key].shares) for key, _ in potential_victims}
        for key in removed:
            index.remove(key)
        gone = set(removed)
        reasons = rejection_reasons(case, slot, _held(forgetting, gone))
        if reasons:
            return DryRunResult(reasons=reasons)
        for key in sorted(removed, key=dict(potential_victims).__getitem__, reverse=True):
            index.add_shares(*removed[key])
            gone.remove(key)
            if rejection_reasons(case, slot, _held(forgetting, gone)):
                index.remove(key)
                gone.add(key)
                victims.add(key)
    return DryRunResult(tuple(key for key in removed if key in victims))


def _held(forgetting: Sequence[Forgetting], gone: Collection[WorkloadKey]) -> tuple[int, ...]:
    """The positions of the rules that reject nothing any more, whatever they say."""
    return tuple(one.position for one in forgetting if one.holds_without(gone))


def rejection_reasons(case: PreemptionCase, slot: int, held: Collection[int] = ()) -> Reasons:
    """Why the target is rejected now, with its nominated pods or else without them; empty if it is not."""
    nominated_pods = case.nominated_pods.get(slot)
    if nominated_pods:
        target = case.index.slots.at(slot).name
        with case.index.tentatively():
            for nominated in nominated_pods:
                case.index.add(nominated, target)
            reasons = _reasons_now(case, slot, held)
        if reasons:
            return reasons
    return _reasons_now(case, slot, held)


def _reasons_now(case: PreemptionCase, slot: int, held: Collection[int]) -> Reasons:
    for position, one in enumerate(case.engine.evaluate(case.workload)):
        codes = one.evaluation.codes
        if one.rule.filters and codes is not None and codes[slot] and position not in held:
            return one.reasons(int(codes[slot]))
    return ()
