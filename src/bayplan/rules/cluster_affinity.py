"""ClusterAffinity: the clusters that the current affinity group of the placement selects, in any of its tiers."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.model.labels import Requirement
from bayplan.model.node_selectors import NodeRequirement
from bayplan.model.placements import ClusterAffinity
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, StatusCode
from bayplan.model.targets import FIELD_KEYS
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure, LiftedBy, PartRule

NOT_MATCHED = Reason(
    "cluster-affinity",
    "cluster(s) did not match the placement cluster affinity constraint",
    StatusCode.UNSCHEDULABLE,
)
NO_TIER = 1000  # the tier of a cluster that no affinity selects: it sorts last


class ClusterAffinityPart(msgspec.Struct, frozen=True):
    tiers: tuple[ClusterAffinity, ...]


class ClusterAffinityRule(PartRule[ClusterAffinityPart]):
    name = "ClusterAffinity"
    id = "cluster-affinity"
    lifted_by = LiftedBy.TARGET
    reasons_by_code = (NOT_MATCHED,)
    follows_workloads = False
    documented = (
        DocumentedReason(
            NOT_MATCHED,
            means=(
                "The cluster is in no tier of the placement's clusterAffinity, or of the group of clusterAffinities "
                "that is tried. All conditions of one affinity must hold: labelSelector, fieldSelector, clusterNames, "
                "and not being in exclude. Overflow tiers apply to workloads only, not to a ConfigMap or a Service."
            ),
            to_do=(
                "Compare the affinity with the cluster's labels, provider, region and zones. The next group is tried "
                "only if the whole group fails, and a later attempt starts with the group of the last success."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> ClusterAffinityPart | None:
        del index
        assert workload.binding is not None
        group = workload.binding.group
        everything = workload.binding.is_workload or not group.first_only
        return ClusterAffinityPart(group.tiers if everything else group.tiers[:1])

    def reject(self, state: ClusterAffinityPart, index: PlacementIndex, at: At) -> Codes:
        rejected: Mask = tier_by_target(state.tiers, index)[at] == NO_TIER
        return rejected.astype(np.int64)

    def evidence(
        self, state: ClusterAffinityPart, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Failure]:
        del state, slot, index
        assert workload.binding is not None
        group = workload.binding.group.name
        return [Failure(self.id, NOT_MATCHED.text, term=f"affinity {group}" if group else "clusterAffinity")]


def tier_by_target(tiers: tuple[ClusterAffinity, ...], index: PlacementIndex) -> NDArray[np.int64]:
    """The first tier that selects each cluster, `NO_TIER` if none does; shape (capacity,)."""
    found = np.full(index.slots.capacity, NO_TIER, np.int64)
    for number in reversed(range(len(tiers))):
        found[matching(tiers[number], index)] = number
    return found


def matching(affinity: ClusterAffinity, index: PlacementIndex) -> Mask:
    """The clusters that meet all conditions, shape (capacity,); an empty affinity selects every cluster."""
    if affinity.impossible:
        return np.zeros(index.slots.capacity, np.bool_)
    mask = _named(affinity.names, index) if affinity.names else np.ones(index.slots.capacity, np.bool_)
    if affinity.exclude:
        mask &= ~_named(affinity.exclude, index)
    for requirement in affinity.labels.requirements if affinity.labels else ():
        mask &= _holds(requirement, requirement.key, index)
    for field in affinity.fields:
        mask &= _holds(field, FIELD_KEYS.get(field.key, field.key), index)
    return mask


def _named(names: tuple[str, ...], index: PlacementIndex) -> Mask:
    mask = np.zeros(index.slots.capacity, np.bool_)
    mask[[index.slots.by_name[name] for name in names if name in index.slots.by_name]] = True
    return mask


def _holds(requirement: Requirement | NodeRequirement, key: str, index: PlacementIndex) -> Mask:
    """Which clusters meet the requirement. Of several values of a key, NotIn requires that none is listed."""
    column = index.column(key)
    if requirement.operator == "Exists":
        return column.present(ALL)
    if requirement.operator == "DoesNotExist":
        return ~column.present(ALL)
    by_value = np.zeros(column.n_domains, np.int64)
    if requirement.operator in ("In", "NotIn"):
        by_value[[column.by_value[value] for value in requirement.values if value in column.by_value]] = 1
    else:
        compared = NodeRequirement(key, requirement.operator, requirement.values)
        by_value[:] = [isinstance(value, str) and compared.matches(value) for value in column.values]
    found: Mask = column.gather(by_value, ALL) > 0
    return ~found if requirement.operator == "NotIn" else found
