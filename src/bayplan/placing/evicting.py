"""Which pods a fix may move: those whose budgets allow it, recreated as their controllers recreate them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.explaining.fixes import EvictionPolicy
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT, SpreadContext
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.placing import recreating, what_if
from bayplan.placing.remaking import PodRemaker
from bayplan.preempting.disruption_budgets import DisruptionBudgets


def policy(
    budgets: Iterable[DisruptionBudget],
    index: PlacementIndex,
    context: SpreadContext = EMPTY_SPREAD_CONTEXT,
    remaker: PodRemaker | None = None,
) -> EvictionPolicy:
    """
    The policy under these budgets; one that no controller has counted is counted with every pod healthy.

    `remaker` makes pods of revised manifests.
    """
    counted = DisruptionBudgets(what_if.with_status(one, index) for one in budgets)
    found = EvictionPolicy(counted.allow, lambda placed: recreating.as_recreated(placed, index, context))
    return found if remaker is None else msgspec.structs.replace(found, revised=remaker.revised)
