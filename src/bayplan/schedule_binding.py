"""
Schedule a binding: which clusters it is placed on, and with how many replicas.

The terms of `clusterAffinities` are tried in order, beginning with the one observed last. Each attempt has Karmada's
four stages: find clusters that fit, prioritize clusters, select clusters, assign replicas.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.assigning import cluster_ranking, divide_replicas, failback, group_failover, select_clusters
from bayplan.assigning.candidates import ClusterCandidate, NoClusterFit, Unassignable
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import fit_error
from bayplan.model.workloads import Workload


class FleetDecision(msgspec.Struct, frozen=True):
    """
    The replicas of each cluster, or why there are none.

    `observed` is the name of the affinity term that succeeded. `errors` holds one message per term that failed, also
    where a later one succeeded; `reason` is the class of the first. `verdicts` and `ranked` are those of the term that
    succeeded, else of the first that failed.
    """

    observed: str = ""
    shares: tuple[tuple[str, int], ...] = ()
    reason: str = ""
    errors: tuple[str, ...] = ()
    verdicts: Verdicts | None = None
    ranked: Sequence[ClusterCandidate] = ()

    @property
    def placed(self) -> bool:
        return not self.reason


class AffinityAttempt(msgspec.Struct, frozen=True):
    """The result for one affinity term: the verdicts, and the shares or the failure."""

    verdicts: Verdicts
    ranked: Sequence[ClusterCandidate]
    shares: tuple[tuple[str, int], ...] = ()
    failure: Unassignable | None = None


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
        trying = msgspec.structs.replace(workload, binding=msgspec.structs.replace(binding, group=group))
        attempt = _try_affinity(trying, engine)
        if attempt.failure is None:
            errors = tuple([str(one.failure) for one in failed])
            return FleetDecision(group.name, attempt.shares, "", errors, attempt.verdicts, attempt.ranked)
        failed.append(attempt)
    first = failed[0]
    assert first.failure is not None
    errors = tuple([str(one.failure) for one in failed])
    return FleetDecision("", (), first.failure.reason, errors, first.verdicts, first.ranked)


def _try_affinity(workload: Workload, engine: FleetEngine) -> AffinityAttempt:
    """The four stages for one affinity term (karmada-scheduler: genericScheduler.Schedule)."""
    binding = workload.binding
    assert binding is not None
    index = engine.index
    fitting = cluster_ranking.find_clusters_that_fit(workload, engine)
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
