"""
Schedule a binding: which clusters it is placed on, and with how many replicas.

The terms of `clusterAffinities` are tried in order, beginning with the one observed last. Each attempt has Karmada's
four stages: find clusters that fit, prioritize clusters, select clusters, assign replicas.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.assigning import (
    cluster_ranking,
    divide_replicas,
    failback,
    group_failover,
    select_clusters,
    unknown_labels,
)
from bayplan.assigning.candidates import ClusterCandidate, LabelsNotKnown, NoClusterFit, Unassignable
from bayplan.assigning.cluster_ranking import FittingClusters, FleetEngine
from bayplan.assigning.unknown_labels import Doubt
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import fit_error
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload, WorkloadKey


class FleetDecision(msgspec.Struct, frozen=True):
    """
    The replicas of each cluster, or why there are none.

    `observed` is the name of the affinity term that succeeded. `errors` holds one message per term that failed, also
    where a later one succeeded; `reason` is the class of the first. `verdicts` and `ranked` are those of the term that
    succeeded, else of the first that failed. `in_doubt` are the clusters of which labels that are not known decide
    whether they are feasible, if that is why it failed, and `whose` are the workloads with these labels.
    """

    observed: str = ""
    shares: tuple[tuple[str, int], ...] = ()
    reason: str = ""
    errors: tuple[str, ...] = ()
    verdicts: Verdicts | None = None
    ranked: Sequence[ClusterCandidate] = ()
    in_doubt: Mask | None = None
    whose: tuple[WorkloadKey, ...] = ()

    @property
    def placed(self) -> bool:
        return not self.reason


def listed(shares: Sequence[tuple[str, int]]) -> str:
    """Clusters with their replicas, as karmada-scheduler lists them in events."""
    return ", ".join([f"{name}:{replicas}" for name, replicas in shares])


class AffinityAttempt(msgspec.Struct, frozen=True):
    """The result for one affinity term: the verdicts, and the shares or the failure."""

    verdicts: Verdicts
    ranked: Sequence[ClusterCandidate]
    shares: tuple[tuple[str, int], ...] = ()
    failure: Unassignable | None = None
    in_doubt: Mask | None = None


def schedule(workload: Workload, engine: FleetEngine) -> FleetDecision:
    """Decide which clusters get how many replicas. Reads the index, places nothing."""
    binding = workload.binding
    assert binding is not None
    if workload.unplaceable:
        return FleetDecision(reason=Unassignable.reason, errors=(workload.unplaceable,))
    index = engine.index
    with group_failover.with_leaving_peers(workload, index):
        decision = _try_affinities(workload, engine)
        if binding.may_fail_back and decision.placed:
            fresh = _try_affinities(failback.as_unplaced(workload), engine)
            if fresh.placed and failback.is_better(
                binding, (fresh.observed, fresh.shares), (decision.observed, decision.shares), index
            ):
                return fresh
        return decision


def clusters_in_question(workload: Workload, engine: FleetEngine) -> list[str]:
    """The clusters that pass the rules about clusters alone, for any affinity term: those whose capacity matters."""
    binding, index = workload.binding, engine.index
    assert binding is not None
    found: dict[str, None] = {}
    for group in binding.placement.groups:
        trying = msgspec.structs.replace(workload, binding=msgspec.structs.replace(binding, group=group))
        feasible = engine.ranking_of(trying).filter.verdicts.feasible
        found.update({index.slots.at(slot).name: None for slot in feasible.nonzero()[0].tolist()})
    return list(found)


def _try_affinities(workload: Workload, engine: FleetEngine) -> FleetDecision:
    """Try the affinity terms from the one observed last on; the first that succeeds decides."""
    binding = workload.binding
    assert binding is not None
    groups = binding.placement.groups
    if not groups:  # an empty list: Karmada reports success and changes nothing
        return FleetDecision(shares=binding.previous)
    start = next((i for i, group in enumerate(groups) if binding.observed and group.name == binding.observed), 0)
    failed: list[AffinityAttempt] = []
    for group in groups[start:]:
        trying = workload
        if group is not binding.group:
            trying = msgspec.structs.replace(workload, binding=msgspec.structs.replace(binding, group=group))
        attempt = _try_affinity(trying, engine)
        if attempt.failure is None:
            errors = tuple([str(one.failure) for one in failed])
            return FleetDecision(group.name, attempt.shares, "", errors, attempt.verdicts, attempt.ranked)
        failed.append(attempt)
        if isinstance(attempt.failure, LabelsNotKnown):  # so it is not known whether the next one would be tried
            failed = [attempt]
            break
    first = failed[0]
    assert first.failure is not None
    errors = tuple([str(one.failure) for one in failed])
    whose = first.failure.whose if isinstance(first.failure, LabelsNotKnown) else ()
    return FleetDecision("", (), first.failure.reason, errors, first.verdicts, first.ranked, first.in_doubt, whose)


def _try_affinity(workload: Workload, engine: FleetEngine) -> AffinityAttempt:
    """The four stages for one affinity term (karmada-scheduler: genericScheduler.Schedule)."""
    index = engine.index
    fitting = cluster_ranking.find_clusters_that_fit(workload, engine)
    attempt = _select_and_assign(workload, fitting, index)
    doubts = unknown_labels.doubts_about(workload, index)
    return attempt if not doubts else _without_doubt(attempt, doubts, workload, fitting, index)


def _select_and_assign(workload: Workload, fitting: FittingClusters, index: PlacementIndex) -> AffinityAttempt:
    binding = workload.binding
    assert binding is not None
    ranked = cluster_ranking.prioritize_clusters(workload, fitting, index)
    if not len(ranked):
        message = fit_error.sentence(fitting.verdicts, index, noun="clusters")
        return AffinityAttempt(fitting.verdicts, ranked, failure=NoClusterFit(message))
    step = "failed to select clusters"
    try:
        selected = select_clusters.select_clusters(binding, ranked, index)
        step = "failed to assign replicas"
        shares = divide_replicas.assign_replicas(binding, selected, index)
    except Unassignable as failure:
        return AffinityAttempt(fitting.verdicts, ranked, failure=failure.during(step))
    return AffinityAttempt(fitting.verdicts, ranked, tuple(shares))


def _without_doubt(
    attempt: AffinityAttempt,
    doubts: Sequence[Doubt],
    workload: Workload,
    fitting: FittingClusters,
    index: PlacementIndex,
) -> AffinityAttempt:
    """
    The attempt, or its failure where labels that are not known may change its result.

    The attempt is the answer if no doubtful term selects anything. If the answer is the same without all clusters that
    such a term may reject, the labels do not matter. A term of affinity in doubt may reject any cluster, and allow all
    that only peers reject: then the answer has to be the same with these too.
    """
    binding, feasible = workload.binding, fitting.verdicts.feasible
    assert binding is not None
    held = [slot for name, _ in binding.previous if (slot := index.slots.by_name.get(name)) is not None]
    possible = feasible
    if any(doubt.slots is None for doubt in doubts):
        possible = unknown_labels.feasible_but_for_peers(fitting.verdicts, index)
    in_doubt, relevant = unknown_labels.feasible_in_doubt(doubts, possible, held)
    if not in_doubt.any() or (possible is feasible and attempt.failure is not None):
        return attempt
    cases = [feasible & ~in_doubt] if possible is feasible else [feasible & ~in_doubt, possible]
    for case in cases:
        verdicts = msgspec.structs.replace(fitting.verdicts, feasible=case)
        certain = _select_and_assign(workload, msgspec.structs.replace(fitting, verdicts=verdicts), index)
        if certain.failure is not None or certain.shares != attempt.shares:
            break
    else:
        return attempt
    whose = unknown_labels.whose_labels(relevant)
    failure = LabelsNotKnown(unknown_labels.sentence(unknown_labels.names_of(whose, workload, index)), whose)
    return AffinityAttempt(attempt.verdicts, attempt.ranked, failure=failure, in_doubt=in_doubt)
