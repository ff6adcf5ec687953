"""The results of `preempt` beside the choice of victims, which the scenarios cover."""

import msgspec
import pytest

from asking import preemption_engine_answer
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.labels import equals
from bayplan.model.semantics import DESIGN
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, ZONE, AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.preempting import dry_run, preemption, reprieving
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.preempting.preemption import Preemption
from bayplan.rules import profiles
from rules import shorthand

RULES = profiles.pod_rules()


def pod(name, cpu=1000, priority=0, affinity=None, **how):
    asked = (("cpu", cpu),)
    needs = Needs(requests=Requests(asked, asked, asked), affinity=affinity or AffinityTerms())
    return Workload(namespace="d", name=name, labels=how.pop("labels", {}), needs=needs, priority=priority, **how)


def cluster(n_nodes, *priorities, cpu=None, semantics=None, labels=None):
    """Nodes n0, n1, … with a pod of one cpu for each priority, and no free capacity."""
    index = PlacementIndex(semantics or PlacementIndex().semantics)
    for i in range(n_nodes):
        room = (("cpu", cpu or 1000 * len(priorities)), ("pods", 110))
        index.add_target(Target(name=f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: f"z{i % 2}"}, allocatable=room))
        for j, priority in enumerate(priorities):
            index.add(pod(f"p{i}-{j}", priority=priority, labels=labels or {}), f"n{i}")
    return index


def test_a_pod_that_fits_preempts_nothing():
    assert preemption.preempt(pod("new", priority=5), Engine(cluster(1, 0, cpu=2000), RULES)) == Preemption()


def test_without_nodes_there_is_no_preemption():
    assert preemption.preempt(pod("new", priority=5), Engine(PlacementIndex(), RULES)) == Preemption()


def test_victims_come_in_order_of_importance():
    found = preemption.preempt(pod("new", cpu=2500, priority=5), Engine(cluster(1, 0, 2, 1), RULES))
    assert (found.target, found.victims) == ("n0", ("d/p0-1", "d/p0-2", "d/p0-0"))


def test_violated_budgets_are_counted():
    index = cluster(1, 0, 0, labels={"app": "db"})
    budgets = DisruptionBudgets([DisruptionBudget(namespace="d", name="b", selector=equals({"app": "db"}), allowed=1)])
    assert preemption.preempt(pod("new", cpu=2000, priority=5), Engine(index, RULES), budgets).n_violations == 1
    assert preemption.preempt(pod("new", cpu=1000, priority=5), Engine(index, RULES), budgets).n_violations == 0


def test_a_nomination_is_cleared_only_if_preemption_does_not_help():
    nothing_helps = preemption.preempt(pod("new", priority=0), Engine(cluster(1, 0), RULES))
    assert nothing_helps.clears_nomination
    never = preemption.preempt(pod("new", priority=5, preempts=False), Engine(cluster(1, 0), RULES))
    assert not never.clears_nomination
    assert "preemptionPolicy=Never" in never.message


def test_a_rule_that_rejects_every_node_leaves_no_candidate():
    found = preemption.preempt(pod("new", priority=5, unplaceable="unreadable"), Engine(cluster(2, 0), RULES))
    assert found.message == "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


@pytest.mark.parametrize("leaving, waits", [
    ({"terminating": True, "preempted": True}, True),
    ({"terminating": True}, False),  # it terminates for another reason
    ({"terminating": True, "preempted": True, "priority": 5}, False),
])  # fmt: skip
def test_only_terminating_victims_of_preemption_keep_a_pod_waiting(leaving, waits):
    index = cluster(2, 0, 1)
    index.replace(msgspec.structs.replace(index.records["d/p0-0"].workload, **leaving))
    found = preemption.preempt(pod("new", priority=5, nominated_target="n0"), Engine(index, RULES))
    assert ("terminating pod" in found.message) == waits


def test_a_nominated_pod_counts_once_after_it_is_bound():
    index = cluster(2, 0)
    nominated = pod("nominated", priority=9)
    index.remove("d/p0-0")
    index.add(nominated, "n0")
    assert (
        preemption.preempt(pod("new", priority=5), Engine(index, RULES), nominated=[(nominated, "n0")]).target == "n1"
    )


def test_nominations_of_lower_priority_and_its_own_do_not_count():
    index, new = cluster(1, 0), pod("new", priority=5)
    nominations = [(pod("low", priority=4), "n0"), (new, "n0"), (pod("lost", priority=9), "gone")]
    assert preemption.preempt(new, Engine(index, RULES), nominated=nominations).target == "n0"
    assert not preemption.preempt(new, Engine(index, RULES), nominated=[(pod("high", priority=9), "n0")]).target


def test_a_request_near_the_64_bit_limit_on_an_overcommitted_node():
    index = cluster(1, 0, 0, cpu=1000)
    found = preemption.preempt(pod("new", cpu=2**63 - 1, priority=5), Engine(index, RULES))
    assert found.message == "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


# The cost of a search


def compared_workloads(monkeypatch):
    """The numbers of workloads that were compared one by one, search by search."""
    numbers = []
    grouped = reprieving.grouped

    def counting(slots, rows, pod_table, budgets):
        numbers.append(len(rows))
        return grouped(slots, rows, pod_table, budgets)

    monkeypatch.setattr(reprieving, "grouped", counting)
    return numbers


def test_only_nodes_that_can_be_cheapest_are_compared(monkeypatch):
    numbers = compared_workloads(monkeypatch)
    index = cluster(50, 10, 20)
    index.replace(msgspec.structs.replace(index.records["d/p7-0"].workload, priority=1))
    assert preemption.preempt(pod("new", priority=50), Engine(index, RULES)).target == "n7"
    assert sum(numbers) == 1  # the one less important pod; the others are reprieved without a comparison


def test_no_workload_is_compared_where_preemption_does_not_help(monkeypatch):
    numbers = compared_workloads(monkeypatch)
    assert not preemption.preempt(pod("new", cpu=3000, priority=50), Engine(cluster(50, 10, 20), RULES)).target
    assert sum(numbers) == 0


def test_capacity_constraints_need_no_dry_run(monkeypatch):
    monkeypatch.setattr(dry_run, "dry_run", lambda *_: pytest.fail("a dry run on the index"))
    apart = AffinityTerms(anti_required=(PodTerm(equals({"app": "db"}), ZONE),))
    for semantics in (PlacementIndex().semantics, DESIGN):
        index = cluster(6, 0, 0, labels={"app": "db"}, semantics=semantics)
        preemption.preempt(pod("new", priority=5, affinity=apart), Engine(index, RULES))
        preemption.preempt(pod("other", cpu=1500, priority=5), Engine(index, RULES))


def test_volumes_need_no_dry_run(monkeypatch):
    """Evictions change neither where a volume can be reached nor what no limit restricts."""
    monkeypatch.setattr(dry_run, "dry_run", lambda *_: pytest.fail("a dry run on the index"))
    in_zone = f"{ZONE}=a"
    question = {
        "nodes": [shorthand.node(f"n0 {in_zone}", pods="1"), shorthand.node(f"n1 {ZONE}=b", pods="1")],
        "pods": [shorthand.pod("p0@n0", priority=1), shorthand.pod("p1@n1", priority=0)],
        "pod": shorthand.pod("new", priority=5, volumes=shorthand.uses("data")),
        "objects": [
            shorthand.claim("data", "disk"),
            shorthand.volume("disk", in_zone, at=in_zone, driver="csi.example"),
            shorthand.storage_class(),
        ],
    }
    assert preemption_engine_answer(question) == {
        "name": "",
        "nominated": "n0",
        "victims": ["default/p0"],
        "message": "",
    }
