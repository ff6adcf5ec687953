"""
Equivalence classes: workloads that no rule distinguishes share one signature and the results of their rules.

The signature of a workload is everything that a rule may read of it: its namespace, the labels that a term in use
selects by, its needs, the target it names and whether it can be placed at all. kube-scheduler calls the same thing the
pod signature. Knows nothing of how targets are ranked.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from bayplan.engine import filtering
from bayplan.engine.filtering import RuleResult
from bayplan.indexing.evaluations import BoundedCache
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, label_keys
from bayplan.rules.rule import Rule, Scaling

MAX_EQUIVALENCE_CLASSES = 512  # for each index; the least recently used are dropped first


class EquivalenceClass:
    """
    Workloads with the same signature, and the results of their rules.

    `ranking` belongs to `engine.ranking` and `fit_failure` to `placing`, which keep here what all workloads of the
    class share.
    """

    __slots__ = (
        "_following",
        "_n_dropped",
        "_needs_all_scores",
        "_prefiltering",
        "_rules",
        "_targets_generation",
        "fit_failure",
        "ranking",
        "results",
        "used",
    )

    def __init__(self, rules: Sequence[Rule], results: Sequence[RuleResult], index: PlacementIndex) -> None:
        self._rules = rules  # a reference, so that their id is not reused
        self.results = tuple(results)
        self._prefiltering = [
            one for one in results if one.rule.filters and type(one.rule).pre_filter is not Rule.pre_filter
        ]
        self._following = [(one.evaluation, one.rule) for one in results if one.rule.follows_workloads]
        self._needs_all_scores = any(
            one.rule.scaling is Scaling.BY_ALL and one.evaluation.raw_by_place is not None for one in results
        )
        self.ranking: Any = None
        self.fit_failure: Any = None
        self.used = index.journal.end
        self._targets_generation = index.targets_generation
        self._n_dropped = index.evaluations.n_dropped

    def refresh(self, index: PlacementIndex) -> bool:
        """Bring the results up to date; False if other rules may apply by now, or a result is no longer cached."""
        if self._targets_generation != index.targets_generation:
            return False
        if self._n_dropped != index.evaluations.n_dropped:
            self._n_dropped = index.evaluations.n_dropped
            if any(one.evaluation.dropped for one in self.results):
                return False
        self.used = index.journal.end
        refresh = index.evaluations.refresh
        for evaluation, rule in self._following:
            refresh(evaluation, rule, index)
        return True

    def is_rankable(self, index: PlacementIndex) -> bool:
        """
        Whether the codes and scores of the rules alone decide.

        They do not where a rule rejects or excludes targets beforehand, nor where it scales its scores by all of them.
        """
        if self._needs_all_scores:
            return False
        some = self._prefiltering
        return not some or all(one.rule.pre_filter(one.state, index) is None for one in some)


def equivalence_class_of(rules: Sequence[Rule], workload: Workload, index: PlacementIndex) -> EquivalenceClass:
    """The equivalence class of a workload, with the results of its rules up to date."""
    key = (id(rules), signature_of(workload, index))
    classes: BoundedCache[Hashable, EquivalenceClass] = index.equivalence_classes
    found = classes.get(key)
    if found is None or not found.refresh(index):
        found = EquivalenceClass(rules, filtering.evaluate_rules(rules, workload, index), index)
        classes.put(key, found, MAX_EQUIVALENCE_CLASSES)
    return found


def signature_of(workload: Workload, index: PlacementIndex) -> Hashable:
    """The signature of a workload; it changes when a term that mentions other labels comes into use."""
    needs = workload.needs
    visible = index.peer_index.visible(workload.labels, label_keys(needs))
    return workload.namespace, visible, needs, workload.requested_target, workload.unplaceable
