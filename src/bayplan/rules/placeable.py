"""A workload whose own rules cannot be read goes nowhere: a broken rule is never ignored."""

from __future__ import annotations

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Rule


class Placeable(Rule):
    name = "Bayplan"
    id = "placeable"
    follows_workloads = False

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        return workload.unplaceable or _without_topology(workload, index) or None

    def refuse(self, state: str, index: PlacementIndex) -> Reason | None:
        del index
        return Reason("unreadable-rule", state, StatusCode.UNRESOLVABLE)


def _without_topology(workload: Workload, index: PlacementIndex) -> str:
    """A term without a topology key, where that means nothing: API servers refuse it, an annotation may hold it."""
    affinity = workload.needs.affinity
    if index.semantics.empty_topology_key_means_any or not affinity:
        return ""
    terms = (*affinity.required, *affinity.anti_required, *affinity.preferred, *affinity.anti_preferred)
    path = next((term.path for term in terms if not term.topology_key), None)
    return "" if path is None else f"{path}.topologyKey: Required value: can not be empty"
