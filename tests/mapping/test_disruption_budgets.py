"""PodDisruptionBudgets from files and from questions."""

import msgspec
import pytest

from bayplan.mapping.disruption_budgets import budget_of
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.labels import EVERYTHING, equals
from bayplan.wire.controllers import PodDisruptionBudget

WRITTEN = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "db", "namespace": "shop"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": "30%"},
    "status": {"disruptionsAllowed": 2, "expectedPods": 7, "disruptedPods": {"db-1": "2026-01-01T00:00:00Z"}},
}


def read(**changes):
    return budget_of(msgspec.convert({**WRITTEN, **changes}, PodDisruptionBudget))


def test_all_fields_of_a_budget_are_mapped():
    assert read() == DisruptionBudget(
        namespace="shop",
        name="db",
        selector=equals({"app": "db"}),
        max_unavailable="30%",
        expected=7,
        allowed=2,
        disrupted=frozenset({"db-1"}),
    )


def test_a_budget_without_status_allows_no_disruption():
    budget = read(status={}, spec={"minAvailable": 1}, metadata={"name": "db"})
    assert (budget.namespace, budget.allowed, budget.min_available, budget.selector) == ("default", 0, 1, None)


@pytest.mark.parametrize("selector, labels, selected", [
    (equals({"app": "db"}), {"app": "db", "tier": "x"}, True),
    (equals({"app": "db"}), {"app": "web"}, False),
    (equals({"app": "db"}), {}, False),
    (EVERYTHING, {"app": "db"}, False),  # as in kube-scheduler, not as in the disruption controller
    (None, {"app": "db"}, False),
])  # fmt: skip
def test_which_pods_a_budget_selects(selector, labels, selected):
    assert DisruptionBudget(namespace="shop", name="b", selector=selector).selects(labels) == selected
