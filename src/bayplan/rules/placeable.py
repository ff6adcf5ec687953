"""A workload whose own rules cannot be read is rejected everywhere: a malformed rule is never ignored."""

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
        """The fault, if there is one: API servers reject a term without a topology key, an annotation may hold it."""
        affinity = workload.needs.affinity
        if workload.unplaceable or index.semantics.empty_topology_key_means_any or not affinity:
            return workload.unplaceable or None
        terms = (*affinity.required, *affinity.anti_required, *affinity.preferred, *affinity.anti_preferred)
        path = next((term.path for term in terms if not term.topology_key), None)
        return None if path is None else f"{path}.topologyKey: Required value: can not be empty"

    def pre_filter(self, state: str, index: PlacementIndex) -> Reason:
        del index
        return Reason("unreadable-rule", state, StatusCode.UNRESOLVABLE)
