"""Which of those that may have to go would break a budget."""

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


def breaking(budgets, index):
    """The names of those who break a budget if all go."""
    rows = index.pod_table.in_order()
    breaks = budgets.violations(np.zeros(len(rows), np.intp), rows, index.pod_table)
    return [index.pod_table.at(row).workload.name for row in rows[breaks].tolist()]


def budget(name="b", allowed=0, **how):
    return DisruptionBudget(
        **{"namespace": "shop", "name": name, "selector": equals({"app": "db"}), "allowed": allowed, **how}
    )


DB, WEB = {"app": "db"}, {"app": "web"}


@pytest.mark.parametrize("budgets, breaks", [
    ([], ""),
    ([budget(allowed=0)], "db-1 db-2 db-3"),
    ([budget(allowed=1)], "db-2 db-3"),  # the most important one uses it up
    ([budget(allowed=3)], ""),
    ([budget(allowed=1, disrupted=frozenset({"db-1"}))], "db-3"),
    ([budget(namespace="other")], ""),
    ([budget(selector=None)], ""),
    ([budget(selector=EVERYTHING)], ""),  # selects nobody, unlike elsewhere
    ([budget("one", allowed=2), budget("two", allowed=1)], "db-2 db-3"),  # one broken is enough
    ([budget("db", allowed=2), budget("web", selector=equals(WEB))], "web db-3"),
])  # fmt: skip
def test_who_breaks_a_budget(budgets, breaks):
    index = index_of(("db-1", DB), ("web", WEB), ("db-2", DB), ("bare", {}), ("db-3", DB))
    assert breaking(DisruptionBudgets(budgets), index) == breaks.split()


def test_groups_are_charged_apart():
    index = index_of(("db-1", DB), ("db-2", DB), ("db-3", DB))
    rows = index.pod_table.in_order()
    breaks = DisruptionBudgets([budget(allowed=1)]).violations(np.array([0, 1, 1]), rows, index.pod_table)
    assert breaks.tolist() == [False, False, True]


def test_news_of_budgets_count_at_once():
    index = index_of(("db-1", DB), ("web", WEB))
    book = DisruptionBudgets([budget(allowed=0)])
    assert breaking(book, index) == ["db-1"]
    book.put(budget(allowed=1))
    assert breaking(book, index) == []
    book.put(budget(allowed=0, selector=equals(WEB)))
    assert breaking(book, index) == ["web"]
    book.drop("shop", "b")
    book.drop("shop", "b")
    assert breaking(book, index) == []
    assert len(book) == 0


def test_what_is_remembered_of_a_kind_is_not_believed_of_the_next_that_gets_its_number():
    index = index_of(("db-1", DB))
    book = DisruptionBudgets([budget()])
    assert breaking(book, index) == ["db-1"]
    index.remove("shop/db-1")
    index.add(Workload(namespace="shop", name="web", labels=WEB, needs=Needs()), "a")
    assert breaking(book, index) == []
