"""
What tiers mean to a workload: filled in order, or the first one alone.

Workloads that clusters take by their room fill tiers in order, whatever the form. Those that are copied whole or split
by fixed weights fill Karmada's own form too, although its webhook refuses that; by the seed they take the first tier
that can hold them alone.
"""

from __future__ import annotations

from bayplan.model.bindings import Binding
from bayplan.model.placements import AGGREGATED, DYNAMIC_WEIGHT, PLAIN, SEED
from bayplan.model.semantics import Semantics


def filled_in_order(binding: Binding, semantics: Semantics) -> bool:
    return binding.group.form != PLAIN and not _by_the_seed(binding, semantics)


def first_alone(binding: Binding, semantics: Semantics) -> bool:
    return binding.group.form != PLAIN and _by_the_seed(binding, semantics)


def _by_the_seed(binding: Binding, semantics: Semantics) -> bool:
    copied = not binding.is_divisible or binding.placement.division.strategy not in (DYNAMIC_WEIGHT, AGGREGATED)
    return copied and (binding.group.form == SEED or semantics.first_tier_alone)
