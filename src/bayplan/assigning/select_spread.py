"""
Spread by every field and label that is constrained (switch `spreadByEveryField`), which Karmada declares but ignores.

The chosen clusters span at least `minGroups` and at most `maxGroups` (unset: any number of) values of each. Of all such
sets the smallest is taken, of equal ones the one whose clusters come first; it is then topped up in order with every
cluster that keeps within all maxima. Room plays no part, as in Karmada's choice of regions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import numpy as np

from bayplan.assigning.candidates import Candidates
from bayplan.assigning.failing import Unassignable
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.clusters import CLUSTER, FIELD_KEYS, PROVIDER, ZONE
from bayplan.model.placements import Placement
from bayplan.model.terms import TARGET


class Limit(msgspec.Struct, frozen=True):
    """How many values of one key the chosen clusters may span, and which each candidate has."""

    least: int
    most: float
    values: tuple[frozenset[int], ...]


def concerns(placement: Placement) -> bool:
    """Whether there is anything that Karmada does not spread by."""
    return any(constraint.label or constraint.field in (ZONE, PROVIDER) for constraint in placement.spread)


def select(placement: Placement, candidates: Candidates, index: PlacementIndex) -> Candidates:
    limits = _limits(placement, candidates, index)
    for size in range(1, len(candidates) + 1):
        chosen = next(_sets(size, (), 0, limits, len(candidates)), None)
        if chosen is not None:
            return candidates.only(np.array(_topped_up(chosen, limits, len(candidates)), np.intp))
    raise Unassignable("no set of feasible clusters meets the spread constraints")


def _limits(placement: Placement, candidates: Candidates, index: PlacementIndex) -> list[Limit]:
    by_key = {constraint.field or constraint.label or CLUSTER: constraint for constraint in placement.spread}
    found = []
    for key, constraint in by_key.items():
        column = index.column(TARGET if key == CLUSTER else FIELD_KEYS.get(key, key))
        values = tuple(frozenset(column.domains(slot)) for slot in candidates.rows.slots.tolist())
        found.append(Limit(constraint.min_groups, constraint.max_groups or math.inf, values))
    return found


def _sets(
    size: int, chosen: tuple[int, ...], begin: int, limits: list[Limit], n_candidates: int
) -> Iterator[tuple[int, ...]]:
    """Sets of so many candidates that meet every limit, the first in order first."""
    if not _within(chosen, limits):
        return
    if len(chosen) == size:
        if all(len(_span(chosen, limit)) >= limit.least for limit in limits):
            yield chosen
        return
    tried = set()
    for i in range(begin, n_candidates - (size - len(chosen)) + 1):
        # Candidates with the same values are interchangeable: if the first of them leads nowhere, so do the others.
        alike = tuple(limit.values[i] for limit in limits)
        if alike not in tried:
            tried.add(alike)
            yield from _sets(size, (*chosen, i), i + 1, limits, n_candidates)


def _topped_up(chosen: tuple[int, ...], limits: list[Limit], n_candidates: int) -> list[int]:
    for i in range(n_candidates):
        if i not in chosen and _within((*chosen, i), limits):
            chosen = (*chosen, i)
    return sorted(chosen)


def _within(chosen: tuple[int, ...], limits: list[Limit]) -> bool:
    return all(len(_span(chosen, limit)) <= limit.most for limit in limits)


def _span(chosen: tuple[int, ...], limit: Limit) -> frozenset[int]:
    return frozenset().union(*(limit.values[i] for i in chosen))
