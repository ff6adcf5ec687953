"""TaintToleration: hard taints keep pods off, soft ones make a node less liked."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, TAINTS, At, Value
from bayplan.model.reasons import Codes, Mask, Reason, Scores, StatusCode
from bayplan.model.taints import HARD_EFFECTS, PREFER_NO_SCHEDULE, Taint, Toleration, tolerated
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure, Rule, Scaling, short_of_highest

UNTOLERATED = Reason("taint", "node(s) had untolerated taint(s)", StatusCode.UNRESOLVABLE)

Tolerations = tuple[Toleration, ...]


class TaintToleration(Rule):
    name = "TaintToleration"
    id = "taint"
    follows_workloads = False
    scaling = Scaling.BY_EXTREMES

    def part(self, workload: Workload, index: PlacementIndex) -> Tolerations:
        del index
        return workload.needs.tolerations

    def reject(self, state: Tolerations, index: PlacementIndex, at: At) -> Codes:
        column = index.column(TAINTS)
        kept_off = np.fromiter(
            (first_untolerated(_taints(value), state) is not None for value in column.values), np.int64
        )
        return column.gather(kept_off, at)

    def score(self, state: Tolerations, index: PlacementIndex, at: At) -> Scores:
        column = index.column(TAINTS)
        soft = tuple(toleration for toleration in state if toleration.effect in ("", PREFER_NO_SCHEDULE))
        disliked = (
            sum(t.effect == PREFER_NO_SCHEDULE and not tolerated(t, soft) for t in _taints(value))
            for value in column.values
        )
        return column.gather(np.fromiter(disliked, np.int64), at)

    def scaled(self, raw: Any, lowest: int, highest: int) -> Any:
        del lowest
        return short_of_highest(raw, highest)

    def reasons(self, state: Tolerations, code: int) -> tuple[Reason, ...]:
        del state, code
        return (UNTOLERATED,)

    def evidence(self, state: Tolerations, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        hard = [t for t in index.slots.at(slot).taints if t.effect in HARD_EFFECTS and not tolerated(t, state)]
        return [
            Failure(self.id, UNTOLERATED.text, detail=f"{taint} is not tolerated", term=str(taint)) for taint in hard
        ]


def _taints(value: Value) -> tuple[Taint, ...]:
    return value[1] if isinstance(value, tuple) else ()


def first_untolerated(taints: tuple[Taint, ...], tolerations: Tolerations) -> Taint | None:
    """The first taint that keeps the pod off, if any."""
    return next((t for t in taints if t.effect in HARD_EFFECTS and not tolerated(t, tolerations)), None)


def tolerated_mask(tolerations: Tolerations, index: PlacementIndex) -> Mask:
    """Which targets have no hard taint that these tolerations leave, shape (capacity,)."""
    mask: Mask = TaintToleration().reject(tolerations, index, ALL) == 0
    return mask
