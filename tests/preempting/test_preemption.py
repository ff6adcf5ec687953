"""What a caller of `preempt` sees, beside who goes: that is in the scenarios."""

import msgspec
import numpy as np
import pytest

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.labels import equals
from bayplan.model.reasons import Reason, StatusCode
from bayplan.model.semantics import DESIGN
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, ZONE, AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.preempting import dry_run, preemption, reprieving
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.preempting.preemption import Preemption
from bayplan.rules import profiles
from bayplan.rules.rule import Rule

RULES = profiles.pod_rules()


def pod(name, cpu=1000, priority=0, affinity=None, **how):
    asked = (("cpu", cpu),)
    needs = Needs(requests=Requests(asked, asked, asked), affinity=affinity or AffinityTerms())
    return Workload(namespace="d", name=name, labels=how.pop("labels", {}), needs=needs, priority=priority, **how)


def cluster(n_nodes, *priorities, cpu=None, semantics=None, labels=None):
    """Nodes n0, n1, … with a pod of one cpu for each priority, and no room besides."""
    index = PlacementIndex(semantics or PlacementIndex().semantics)
    for i in range(n_nodes):
        room = (("cpu", cpu or 1000 * len(priorities)), ("pods", 110))
        index.add_target(Target(name=f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: f"z{i % 2}"}, allocatable=room))
        for j, priority in enumerate(priorities):
            index.add(pod(f"p{i}-{j}", priority=priority, labels=labels or {}), f"n{i}")
    return index


def test_a_pod_that_fits_needs_nobody_to_go():
    assert preemption.preempt(pod("new", priority=5), cluster(1, 0, cpu=2000), RULES) == Preemption()


def test_without_nodes_there_is_nothing_to_say():
    assert preemption.preempt(pod("new", priority=5), PlacementIndex(), RULES) == Preemption()


def test_victims_come_in_order_of_importance():
    found = preemption.preempt(pod("new", cpu=2500, priority=5), cluster(1, 0, 2, 1), RULES)
    assert (found.target, found.victims) == ("n0", ("d/p0-1", "d/p0-2", "d/p0-0"))


def test_broken_budgets_are_counted():
    index = cluster(1, 0, 0, labels={"app": "db"})
    book = DisruptionBudgets([DisruptionBudget(namespace="d", name="b", selector=equals({"app": "db"}), allowed=1)])
    assert preemption.preempt(pod("new", cpu=2000, priority=5), index, RULES, book).n_violations == 1
    assert preemption.preempt(pod("new", cpu=1000, priority=5), index, RULES, book).n_violations == 0


def test_an_earlier_promise_is_taken_back_only_if_nothing_helps():
    nothing_helps = preemption.preempt(pod("new", priority=0), cluster(1, 0), RULES)
    assert nothing_helps.clears_nomination
    never = preemption.preempt(pod("new", priority=5, preempts=False), cluster(1, 0), RULES)
    assert not never.clears_nomination
    assert "preemptionPolicy=Never" in never.message


def test_a_rule_against_every_node_leaves_nothing_to_free():
    found = preemption.preempt(pod("new", priority=5, unplaceable="unreadable"), cluster(2, 0), RULES)
    assert found.message == "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


@pytest.mark.parametrize("leaving, waits", [
    ({"terminating": True, "preempted": True}, True),
    ({"terminating": True}, False),  # it leaves for reasons of its own
    ({"terminating": True, "preempted": True, "priority": 5}, False),
])  # fmt: skip
def test_only_room_that_is_being_made_for_it_keeps_a_pod_waiting(leaving, waits):
    index = cluster(2, 0, 1)
    index.replace(msgspec.structs.replace(index.records["d/p0-0"].workload, **leaving))
    found = preemption.preempt(pod("new", priority=5, nominated_target="n0"), index, RULES)
    assert ("terminating pod" in found.message) == waits


def test_who_was_promised_a_node_is_no_guest_there_once_it_has_come():
    index = cluster(2, 0)
    nominated = pod("promised", priority=9)
    index.remove("d/p0-0")
    index.add(nominated, "n0")
    assert preemption.preempt(pod("new", priority=5), index, RULES, nominated=[(nominated, "n0")]).target == "n1"


def test_promises_to_less_important_pods_and_to_itself_count_for_nothing():
    index, new = cluster(1, 0), pod("new", priority=5)
    nominations = [(pod("low", priority=4), "n0"), (new, "n0"), (pod("lost", priority=9), "gone")]
    assert preemption.preempt(new, index, RULES, nominated=nominations).target == "n0"
    assert not preemption.preempt(new, index, RULES, nominated=[(pod("high", priority=9), "n0")]).target


def test_a_request_beyond_all_bounds_on_an_overcommitted_node():
    index = cluster(1, 0, 0, cpu=1000)
    found = preemption.preempt(pod("new", cpu=2**63 - 1, priority=5), index, RULES)
    assert found.message == "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


# Where the cost lies


def looked_at_closely(monkeypatch):
    """The numbers of workloads that were compared one by one, search by search."""
    numbers = []
    grouped = reprieving.grouped

    def counting(slots, rows, pod_table, budgets):
        numbers.append(len(rows))
        return grouped(slots, rows, pod_table, budgets)

    monkeypatch.setattr(reprieving, "grouped", counting)
    return numbers


def test_only_nodes_that_can_win_are_looked_at_closely(monkeypatch):
    numbers = looked_at_closely(monkeypatch)
    index = cluster(50, 10, 20)
    index.replace(msgspec.structs.replace(index.records["d/p7-0"].workload, priority=1))
    assert preemption.preempt(pod("new", priority=50), index, RULES).target == "n7"
    assert sum(numbers) == 1  # the one less important pod; whoever matters more stays without being asked


def test_where_nothing_helps_nobody_is_looked_at_closely(monkeypatch):
    numbers = looked_at_closely(monkeypatch)
    assert not preemption.preempt(pod("new", cpu=3000, priority=50), cluster(50, 10, 20), RULES).target
    assert sum(numbers) == 0


def test_a_target_that_is_only_short_of_something_is_never_tried_out(monkeypatch):
    monkeypatch.setattr(dry_run, "dry_run", lambda *_: pytest.fail("tried out on the index"))
    apart = AffinityTerms(anti_required=(PodTerm(equals({"app": "db"}), ZONE),))
    for semantics in (PlacementIndex().semantics, DESIGN):
        index = cluster(6, 0, 0, labels={"app": "db"}, semantics=semantics)
        preemption.preempt(pod("new", priority=5, affinity=apart), index, RULES)
        preemption.preempt(pod("other", cpu=1500, priority=5), index, RULES)


# A rule that nobody has described here


class NoThirdWheel(Rule):
    """Refuses targets with exactly three workloads: nothing here knows what it would say with some of them gone."""

    name = id = "third-wheel"

    def part(self, workload, index):
        return "all"

    def reject(self, plan, index, at):
        return (index.capacity.requested[index.capacity.rows["pods"]] == 3).astype(np.int64)[at]

    def touched(self, plan, change, index):
        return change.slots

    def reasons(self, plan, code):
        return (Reason("three", "node(s) have three already", StatusCode.UNSCHEDULABLE),)


def test_rules_unknown_here_are_tried_out():
    index = cluster(1, 0, 1, 2, cpu=9000)
    found = preemption.preempt(pod("new", priority=5), index, (*RULES, NoThirdWheel()))
    assert (found.target, found.victims) == ("n0", ("d/p0-0",))
    nobody = preemption.preempt(pod("new", priority=0), index, (*RULES, NoThirdWheel()))
    assert nobody.message == "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
