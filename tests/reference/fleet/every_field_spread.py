"""
Spread constraints by zone, provider and label (switch `spreadByEveryField`), which Karmada ignores.

The chosen clusters span at least `minGroups` and at most `maxGroups` (unset: any number of) values of every field and
label that is constrained. Of all such sets the smallest is taken, of equal ones the one whose clusters come first in
the order of candidates; then every further cluster is added, in that order, that exceeds no maximum. Capacity does not
matter, as in Karmada's choice of regions.
"""

import math
from itertools import combinations

from reference.fleet import domains
from reference.fleet.failures import SchedulerError


def concerns(constraints):
    """Whether there is a constraint that Karmada ignores."""
    return any(
        constraint.get("spreadByLabel") or constraint.get("spreadByField") in ("zone", "provider")
        for constraint in constraints
    )


def choose(constraints, candidates):
    limits = {}
    for constraint in constraints:
        key = constraint.get("spreadByField") or constraint.get("spreadByLabel") or "cluster"
        limits[key] = (constraint.get("minGroups") or 0, constraint.get("maxGroups") or math.inf)
    for size in range(1, len(candidates) + 1):
        for chosen in combinations(candidates, size):
            if all(least <= len(span(chosen, key)) <= most for key, (least, most) in limits.items()):
                return topped_up(list(chosen), candidates, limits)
    raise SchedulerError("no set of feasible clusters meets the spread constraints")


def span(chosen, key):
    return set().union(*(domains.values(candidate.cluster, key) for candidate in chosen))


def topped_up(chosen, candidates, limits):
    for candidate in candidates:
        if candidate in chosen:
            continue
        if all(len(span([*chosen, candidate], key)) <= most for key, (_, most) in limits.items()):
            chosen.append(candidate)
    return [candidate for candidate in candidates if candidate in chosen]
