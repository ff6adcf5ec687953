"""One attempt with one affinity term: filter, score, select, assign."""

from reference.fleet import (
    api_enablement,
    cluster_affinity,
    component_sets,
    division,
    estimator,
    eviction,
    selection,
    spread_property,
    taint_toleration,
    tiers,
    workload_groups,
    workload_terms,
)
from reference.fleet.failures import Failure, NoClusterFit

# Upstream's order is random in every process; ours is this one.
FILTERS = (
    cluster_affinity.check,
    api_enablement.check,
    taint_toleration.check,
    spread_property.check,
    eviction.check,
    workload_groups.check_affinity,
    workload_terms.check_affinity,
    workload_groups.check_anti_affinity,
    workload_terms.check_anti_affinity,
)
DELETING = {"rule": "ClusterDeletion", "reason": "cluster(s) is being deleted"}


class Attempt:
    def __init__(self, fleet, term, wanted_peers):
        self.fleet = fleet
        self.binding = fleet.binding
        self.term = term
        self.workload_terms = wanted_peers
        self.failures = {cluster.name: self._failures(cluster) for cluster in fleet.clusters}
        self.candidates = sorted(
            (self._candidate(cluster) for cluster in fleet.clusters if not self.failures[cluster.name]),
            key=selection.rank,
        )

    def _failures(self, cluster):
        """All rules that reject the cluster; one that is being deleted is not evaluated."""
        if cluster.deleting:
            return [DELETING]
        return [failure for check in FILTERS for failure in check(self, cluster)]

    def _candidate(self, cluster):
        return selection.Candidate(
            cluster,
            self.term.tier(cluster),
            (100 if self.binding.targets(cluster.name) else 0) + workload_terms.score(self, cluster),
            estimator.allocatable(self.binding, cluster, self.fleet.semantics),
            self.binding.assigned(cluster.name),
        )

    @property
    def counts_sets(self):
        gate = self.fleet.semantics["multiplePodTemplatesScheduling"]
        return gate and component_sets.applicable(self.binding)

    @property
    def _by_design(self):
        """Whether the design document's semantics of tiers apply: duplicated workloads and static weights."""
        by_design = self.term.form == tiers.DESIGN or self.fleet.semantics["firstTierAlone"]
        return by_design and selection.is_copied_whole(self.binding)

    @property
    def first_tier_alone(self):
        return self._by_design and self.term.form != tiers.PLAIN

    @property
    def fills_tiers_in_order(self):
        return self.term.form != tiers.PLAIN and not self._by_design

    def place(self):
        """[(cluster, replicas)]; raises a Failure if the term fails."""
        if not self.candidates:
            raise NoClusterFit(self.sentence())
        try:
            selected = selection.select(self, self.candidates)
        except Failure as failure:
            raise failure.during("failed to select clusters") from None
        try:
            return division.assign(self, selected)
        except Failure as failure:
            raise failure.during("failed to assign replicas") from None

    def sentence(self):
        """The first reason of each cluster, counted."""
        counts = {}
        for failures in self.failures.values():
            if failures[0] is not DELETING:
                counts[failures[0]["reason"]] = counts.get(failures[0]["reason"], 0) + 1
        parts = sorted(f"{count} {reason}" for reason, count in counts.items()) or ["no cluster exists"]
        return f"0/{len(self.fleet.clusters)} clusters are available: {', '.join(parts)}."

    def verdicts(self):
        found = {}
        for cluster in self.fleet.clusters:
            found[cluster.name] = {"fits": not self.failures[cluster.name], "failures": self.failures[cluster.name]}
        for candidate in self.candidates:
            found[candidate.name].update(tier=candidate.tier, score=candidate.score, available=candidate.available)
        return found
