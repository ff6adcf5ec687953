"""A workload whose own rules cannot be read goes nowhere: a broken rule is never ignored."""

from __future__ import annotations

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.decisions import Reason, Status
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Rule


class Placeable(Rule):
    name = "Bayplan"
    id = "placeable"

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return workload.unplaceable or None

    def refuse(self, plan: str, index: PlacementIndex) -> Reason | None:
        del index
        return Reason("unreadable-rule", plan, Status.UNRESOLVABLE)
