"""APIEnablement: the cluster serves the apiVersion and kind of the template."""

from __future__ import annotations

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import CLUSTER_FACTS, At
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_facts import codes_by_value
from bayplan.rules.rule import Failure, LiftedBy, PartRule

NO_API = Reason("api-missing", "cluster(s) did not have the API resource", StatusCode.UNRESOLVABLE)


class ApiEnablementRule(PartRule[tuple[str, str]]):
    name = "APIEnablement"
    id = "api-missing"
    lifted_by = LiftedBy.TARGET
    reasons_by_code = (NO_API,)
    follows_workloads = False
    exempts_assigned = True
    documented = (
        DocumentedReason(
            NO_API,
            means=(
                "The cluster's status.apiEnablements does not list the apiVersion and kind of the template, so the "
                "member cluster cannot create it."
            ),
            to_do=(
                "Install the CustomResourceDefinition in the member cluster, or propagate it first. For input from "
                "files, include the status of the clusters: kubectl get clusters -o yaml."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> tuple[str, str]:
        del index
        assert workload.binding is not None
        version = workload.binding.api_version
        # As Karmada parses it: more than one slash is no version at all.
        return "" if version.count("/") > 1 else version.removeprefix("/"), workload.binding.kind

    def reject(self, state: tuple[str, str], index: PlacementIndex, at: At) -> Codes:
        return codes_by_value(index, CLUSTER_FACTS, at, lambda apis, _: int(state not in apis))

    def evidence(self, state: tuple[str, str], workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload, slot, index
        return [Failure(self.id, NO_API.text, detail=f"{state[0]} {state[1]} is not served there", term=state[1])]
