"""How many targets were rejected for which reason, and the message `0/N nodes are available: …` (Go: FitError)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Reason


def reasons_at(verdicts: Verdicts, slot: int) -> tuple[str, tuple[Reason, ...]]:
    """The name of the first rule that rejects a target and its reasons; an empty name if none does."""
    if slot in verdicts.taken:
        return verdicts.taken[slot]
    for one in verdicts.results:
        rejected, codes = one.rejected(), one.evaluation.codes
        if rejected is not None and codes is not None and rejected[slot]:
            return one.rule.name, one.reasons(int(codes[slot]))
    return "", ()


def count(verdicts: Verdicts, index: PlacementIndex) -> Counter[str]:
    """Reason text → how many targets the first rejecting rule rejects for it; a rule may give several per target."""
    tally: Counter[str] = Counter()
    uncounted = index.slots.alive & ~verdicts.feasible
    if verdicts.excluded is not None:
        uncounted &= ~verdicts.excluded
        tally[verdicts.exclusion] = int(verdicts.excluded.sum())
    for slot, (_, reasons) in verdicts.taken.items():
        uncounted[slot] = False
        tally.update(reason.text for reason in reasons)
    for one in verdicts.results:
        rejected, every_code = one.rejected(), one.evaluation.codes
        if rejected is None or every_code is None:
            continue
        here = uncounted & rejected
        uncounted &= ~rejected
        if one.rule.silent or not here.any():
            continue
        codes, counts = np.unique(every_code[here], return_counts=True)
        for code, n in zip(codes.tolist(), counts.tolist(), strict=True):
            for reason in one.reasons(code):
                tally[reason.text] += n
    return +tally


def sentence(
    verdicts: Verdicts, index: PlacementIndex, noun: str = "nodes", counts: Mapping[str, int] | None = None
) -> str:
    """
    `0/N nodes are available: …` as kube-scheduler reports it, or `clusters` as Karmada does.

    `counts` are those of `count`, if they are known.
    """
    n = len(index.slots)
    if n == 0 and noun == "nodes":
        return "no nodes available to schedule pods"
    if verdicts.pre_filter_rejection is not None:
        return f"0/{n} {noun} are available: {verdicts.pre_filter_rejection[1].text}."
    counts = count(verdicts, index) if counts is None else counts
    counted = sorted(f"{times} {text}" for text, times in counts.items())
    return f"0/{n} {noun} are available: {', '.join(counted) or 'no cluster exists'}."
