"""
Equivalence classes: workloads that no rule distinguishes share one signature and the results of their rules.

The signature of a workload is everything that a rule may read of it: its namespace, the labels that a term in use
selects by, its needs, the target it names and whether it can be placed at all. kube-scheduler calls the same thing the
pod signature. A binding adds all that only a binding has, where it is placed already and its name among them, so it is
equivalent only to itself. Whoever reads more of a workload than the rules do, such as its priority, its scheduler or
its scheduling gates, compares that besides the signature. Knows nothing of how targets are ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from bayplan.engine.evaluations import EvaluationCache, RuleResult
from bayplan.engine.node_order import NodeOrder
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.workloads import Needs, Workload, label_keys
from bayplan.rules.rule import AnyRule

if TYPE_CHECKING:
    from bayplan.engine.ranking import ClassRanking

Signature: TypeAlias = tuple[str, tuple[tuple[str, str], ...], Needs, str, str, Binding | None]


class FitFailure(msgspec.Struct, frozen=True):
    """Why no target is feasible for the workloads of an equivalence class, as of a position in the journal."""

    position: int
    message: str
    reasons: dict[str, int]


class EquivalenceClass:
    """
    Workloads with the same signature, and the results of their rules.

    `ranking` and `fit_failure` are kept here by those who compute them, because all workloads of the class share them.
    """

    __slots__ = (
        "_following",
        "_index",
        "_n_dropped",
        "_needs_all_scores",
        "_prefiltering",
        "_results",
        "_rules",
        "by_peers",
        "fit_failure",
        "n_choices",
        "order",
        "ranking",
        "used",
    )

    def __init__(
        self, rules: Sequence[AnyRule], order: NodeOrder, by_peers: Sequence[RuleResult], index: PlacementIndex
    ) -> None:
        """`order` has the results of the rules that read the template only, `by_peers` those of the others."""
        self._index = index
        self._rules = rules
        self._results: tuple[RuleResult, ...] | None = None
        self.order = order
        order.n_classes += 1
        self.by_peers = tuple(by_peers)
        self._prefiltering = order.prefiltering + [one for one in by_peers if one.prefilters]
        self._following = [one.evaluation for one in by_peers if one.rule.follows_workloads]
        self._needs_all_scores = order.needs_all_scores or any(one.needs_all_scores for one in by_peers)
        self.ranking: ClassRanking | None = None
        self.fit_failure: FitFailure | None = None
        self.n_choices = 0
        self.used = index.journal.end
        self._n_dropped = -1  # to evaluate the last rules, the cache may have dropped results of the first ones

    @property
    def results(self) -> tuple[RuleResult, ...]:
        """The results of all rules, in the order of the rules."""
        if self._results is None:
            result_of = self.order.results | {one.rule: one for one in self.by_peers}
            self._results = tuple([result_of[rule] for rule in self._rules if rule in result_of])
        return self._results

    def refresh(self, evaluations: EvaluationCache) -> bool:
        """Bring the results up to date; False if other rules may apply by now, or a result is no longer cached."""
        if not self.order.refresh(evaluations):
            return False
        if self._n_dropped != evaluations.n_dropped:
            if any(one.evaluation.dropped for one in self.by_peers):
                return False
            self._n_dropped = evaluations.n_dropped
        self.used = self._index.journal.end
        refresh = evaluations.refresh
        for evaluation in self._following:
            refresh(evaluation)
        return True

    def complete(self, evaluations: EvaluationCache) -> None:
        """Evaluate what was left out so far."""
        for one in self.by_peers:
            if not one.evaluation.evaluated:
                evaluations.complete(one.evaluation)

    def is_rankable(self) -> bool:
        """
        Whether the codes and scores of the rules alone decide.

        They do not where a rule rejects or excludes targets beforehand, nor where it scales its scores by all of them.
        """
        if self._needs_all_scores:
            return False
        some = self._prefiltering
        return not some or all(one.pre_filter(self._index) is None for one in some)


def signature(workload: Workload, index: PlacementIndex) -> Signature:
    """
    The one answer to whether a rule can distinguish two workloads: none can if their signatures are equal.

    It changes when a term that mentions other labels comes into use.
    """
    needs = workload.needs
    visible = index.peer_index.visible(workload.labels, label_keys(needs))
    return workload.namespace, visible, needs, workload.requested_target, workload.unplaceable, workload.binding
