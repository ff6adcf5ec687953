"""
Where a workload goes in a fleet: the groups of its placement, tried in order from the one observed last.

Each attempt is the same line as for pods: filter, score, then select clusters and divide replicas among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from bayplan.assigning import cluster_ranking, divide_replicas, failback, group_failover, select_clusters
from bayplan.assigning.candidates import ClusterCandidate, NoClusterFit, Unassignable
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import fit_error
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.placements import AffinityGroup
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Rule


class FleetDecision(msgspec.Struct, frozen=True):
    """
    The shares of each cluster, or why there are none.

    `errors` holds one text for each group that failed, also where a later one had room; `reason` is the class of the
    first. `verdicts` and `ranked` are those of the group that was chosen, else of the first that failed.
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


class GroupAttempt(msgspec.Struct, frozen=True):
    """One group tried: what the rules said, and the shares or the failure."""

    verdicts: Verdicts
    ranked: Sequence[ClusterCandidate]
    shares: tuple[tuple[str, int], ...] = ()
    failure: Unassignable | None = None


def schedule(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> FleetDecision:
    """Decide which clusters get how many replicas. Reads the index, places nothing."""
    binding = workload.binding
    assert binding is not None
    if workload.unplaceable:
        return FleetDecision(reason=Unassignable.reason, errors=(workload.unplaceable,))
    with group_failover.with_leaving_peers(workload, index):
        decision = _in_turn(workload, index, rules)
        if not binding.may_fail_back or not decision.placed:
            return decision
        other = _in_turn(failback.as_unplaced(workload), index, rules)
        return other if _is_better(other, decision, binding, index) else decision


def _is_better(new: FleetDecision, old: FleetDecision, binding: Binding, index: PlacementIndex) -> bool:
    if not new.placed:
        return False
    return failback.is_better(binding, (new.observed, new.shares), (old.observed, old.shares), index)


def _in_turn(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> FleetDecision:
    binding = workload.binding
    assert binding is not None
    groups = binding.placement.groups
    if not groups:  # a list of no groups: Karmada reports success and changes nothing
        return FleetDecision(shares=binding.previous)
    failed: list[GroupAttempt] = []
    for group in groups[_starting_with(groups, binding.observed) :]:
        trying = msgspec.structs.replace(workload, binding=msgspec.structs.replace(binding, group=group))
        attempt = _attempt(trying, index, rules)
        errors = tuple(str(one.failure) for one in failed)
        if attempt.failure is None:
            return FleetDecision(group.name, attempt.shares, "", errors, attempt.verdicts, attempt.ranked)
        failed.append(attempt)
    first = failed[0]
    assert first.failure is not None
    errors = tuple(str(one.failure) for one in failed)
    return FleetDecision("", (), first.failure.reason, errors, first.verdicts, first.ranked)


def _starting_with(groups: Sequence[AffinityGroup], observed: str) -> int:
    """Where the group observed last stands; at the start if it is nowhere."""
    return next((i for i, group in enumerate(groups) if observed and group.name == observed), 0)


def _attempt(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> GroupAttempt:
    binding = workload.binding
    assert binding is not None
    standing = cluster_ranking.of(workload, index, rules)
    verdicts = cluster_ranking.verdicts(standing, workload, index, rules)
    ranked = cluster_ranking.ranked(standing, workload, verdicts, index)
    try:
        if not len(ranked):
            raise NoClusterFit(fit_error.sentence(verdicts, index, noun="clusters"))
        with _during("failed to select clusters"):
            selected = select_clusters.select_clusters(binding, ranked, index)
        with _during("failed to assign replicas"):
            shares = divide_replicas.assign_replicas(binding, selected, index)
    except Unassignable as failure:
        return GroupAttempt(verdicts, ranked, failure=failure)
    return GroupAttempt(verdicts, ranked, tuple(shares))


@contextmanager
def _during(step: str) -> Iterator[None]:
    """A failure inside is told as part of this step."""
    try:
        yield
    except Unassignable as failure:
        raise failure.during(step) from None
