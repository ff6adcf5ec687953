"""Which potential victims would violate a budget."""

import numpy as np
import pytest

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.labels import EVERYTHING, equals
from bayplan.model.targets import Target
from bayplan.model.workloads import Needs, Workload
from bayplan.preempting.disruption_budgets import DisruptionBudgets


def index_of(*pods):
    """One node with the pods, given as (name, labels), the most important first."""
    index = PlacementIndex()
    index.add_target(Target(name="a", labels={}))
    for i, (name, labels) in enumerate(pods):
        index.add(Workload(namespace="shop", name=name, labels=labels, needs=Needs(), priority=-i), "a")
    return index


def violating_pods(budgets, index):
    """The names of the pods that violate a budget if all are evicted."""
    rows = index.pod_table.in_order()
    violating = budgets.violations(np.zeros(len(rows), np.intp), rows, index.pod_table)
    return [index.pod_table.at(row).workload.name for row in rows[violating].tolist()]


def budget(name="b", allowed=0, **how):
    return DisruptionBudget(
        **{"namespace": "shop", "name": name, "selector": equals({"app": "db"}), "allowed": allowed, **how}
    )


DB, WEB = {"app": "db"}, {"app": "web"}


@pytest.mark.parametrize("budgets, violating", [
    ([], ""),
    ([budget(allowed=0)], "db-1 db-2 db-3"),
    ([budget(allowed=1)], "db-2 db-3"),  # the most important one uses it up
    ([budget(allowed=3)], ""),
    ([budget(allowed=1, disrupted=frozenset({"db-1"}))], "db-3"),
    ([budget(namespace="other")], ""),
    ([budget(selector=None)], ""),
    ([budget(selector=EVERYTHING)], ""),  # selects no pod, unlike elsewhere
    ([budget("one", allowed=2), budget("two", allowed=1)], "db-2 db-3"),  # one violated budget is enough
    ([budget("db", allowed=2), budget("web", selector=equals(WEB))], "web db-3"),
])  # fmt: skip
def test_pods_that_violate_a_budget(budgets, violating):
    index = index_of(("db-1", DB), ("web", WEB), ("db-2", DB), ("bare", {}), ("db-3", DB))
    assert violating_pods(DisruptionBudgets(budgets), index) == violating.split()


def test_groups_are_charged_separately():
    index = index_of(("db-1", DB), ("db-2", DB), ("db-3", DB))
    rows = index.pod_table.in_order()
    violating = DisruptionBudgets([budget(allowed=1)]).violations(np.array([0, 1, 1]), rows, index.pod_table)
    assert violating.tolist() == [False, False, True]


def test_changed_budgets_count_at_once():
    index = index_of(("db-1", DB), ("web", WEB))
    budgets = DisruptionBudgets([budget(allowed=0)])
    assert violating_pods(budgets, index) == ["db-1"]
    budgets.put(budget(allowed=1))
    assert violating_pods(budgets, index) == []
    budgets.put(budget(allowed=0, selector=equals(WEB)))
    assert violating_pods(budgets, index) == ["web"]
    budgets.drop("shop", "b")
    budgets.drop("shop", "b")
    assert violating_pods(budgets, index) == []
    assert len(budgets) == 0


def test_a_reused_labelling_id_does_not_inherit_cached_budgets():
    index = index_of(("db-1", DB))
    budgets = DisruptionBudgets([budget()])
    assert violating_pods(budgets, index) == ["db-1"]
    index.remove("shop/db-1")
    index.add(Workload(namespace="shop", name="web", labels=WEB, needs=Needs()), "a")
    assert violating_pods(budgets, index) == []
