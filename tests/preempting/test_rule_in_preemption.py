"""
A rule takes part in preemption from its own class alone: by sums, by a requirement, or without a word by dry runs.

Whatever a rule says of evictions, the victims are those of the dry run.
"""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.model.reasons import Reason, StatusCode
from bayplan.model.semantics import DESIGN
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.preempting import dry_run, preemption
from bayplan.rules import profiles
from bayplan.rules.evictions import CapacityConstraint, EvictionEffect, PeerRequirement
from bayplan.rules.rule import LiftedBy, PartRule, Rule

RULES = profiles.pod_rules()
SEEDS = st.integers(0, 2**32)


def workloads_on(index, slot):
    return [index.records[key].workload for key in index.workloads_on(slot)]


def seats_of(workload):
    return int(workload.labels.get("seats", 0))


class Seats(PartRule[int]):
    """A node has as many seats as its label says, and no pod without the label may sit there."""

    name = id = "seats"
    lifted_by = LiftedBy.RESOURCES
    follows_requests = True
    reasons_by_code = (
        Reason("seats", "node(s) had too few seats", StatusCode.UNSCHEDULABLE),
        Reason("no-seats", "node(s) had no seats at all", StatusCode.UNRESOLVABLE),
    )

    def part(self, workload, index):
        return seats_of(workload) or None

    def reject(self, state, index, at):
        return np.where(self.unlabelled(index) > 0, 2, self.remaining(state, index) < 0)[at].astype(np.int64)

    def remaining(self, state, index):
        found = np.zeros(index.slots.capacity, np.int64)
        for slot in np.flatnonzero(index.slots.alive).tolist():
            taken = sum(seats_of(workload) for workload in workloads_on(index, slot))
            found[slot] = int(index.slots.at(slot).labels.get("seats", 0)) - taken - state
        return found

    def unlabelled(self, index):
        found = np.zeros(index.slots.capacity, np.int64)
        for slot in np.flatnonzero(index.slots.alive).tolist():
            found[slot] = 0 if "seats" in index.slots.at(slot).labels else 2
        return found


class SeatsBySums(Seats):
    def eviction_effect(self, state, codes, preemptor):
        self.fixed, self.remains = self.unlabelled(preemptor.index), self.remaining(state, preemptor.index)
        self.remains[self.fixed > 0] = 0
        return EvictionEffect(self.fixed, (SeatConstraint(1, self.remains, preemptor.index),))


class SeatConstraint(CapacityConstraint):
    def __init__(self, code, remaining, index):
        super().__init__(code, remaining)
        self.index = index

    def amounts(self):
        rows = self.index.pod_table.records
        return np.array([0 if row is None else seats_of(row.workload) for row in rows], np.int64)

    def amount_of(self, nominated, slot):
        return seats_of(nominated) if "seats" in self.index.slots.at(slot).labels else 0


class Companion(PartRule[str]):
    """A pod needs another one beside it: evictions can only make this worse."""

    name = id = "companion"
    lifted_by = LiftedBy.PEERS
    follows_requests = True
    reasons_by_code = (Reason("companion", "node(s) had no companion", StatusCode.UNRESOLVABLE),)

    def part(self, workload, index):
        return workload.labels.get("beside")

    def reject(self, state, index, at):
        codes = index.slots.alive.astype(np.int64)
        for slot in np.flatnonzero(index.slots.alive).tolist():
            codes[slot] = all(workload.labels.get("app") != state for workload in workloads_on(index, slot))
        return codes[at]


class CompanionByRequirement(Companion):
    def eviction_effect(self, state, codes, preemptor):
        return EvictionEffect(requirement=CompanionRequirement(state, codes, preemptor))


class CompanionRequirement(PeerRequirement):
    def __init__(self, app, codes, preemptor):
        self.app, self.index = app, preemptor.index
        by_nominated = np.zeros(len(codes), np.bool_)
        for slot, pods in preemptor.nominated_pods.items():
            by_nominated[slot] = any(pod.labels.get("app") == app for pod in pods)
        super().__init__(1, codes == 0, by_nominated)

    def partners(self):
        rows = self.index.pod_table.records
        return np.array([row is not None and row.workload.labels.get("app") == self.app for row in rows], np.bool_)

    def after(self, evicted):
        staying = np.flatnonzero(self.partners() & ~evicted & (self.index.pod_table.slot != FREE_ROW))
        found = np.zeros(len(self.now), np.bool_)
        found[self.index.pod_table.slot[staying]] = True
        return found


class NotThree(PartRule[str]):
    """Rejects targets with exactly three workloads: no sum shows its outcome after an eviction."""

    name = id = "not-three"
    lifted_by = LiftedBy.PEERS
    follows_requests = True
    reasons_by_code = (Reason("three", "node(s) have three already", StatusCode.UNSCHEDULABLE),)

    def part(self, workload, index):
        return "all"

    def reject(self, state, index, at):
        return (index.capacity.requested[index.capacity.rows["pods"]] == 3).astype(np.int64)[at]


def pod(name, priority=0, cpu=0, **labels):
    asked = (("cpu", cpu),)
    needs = Needs(requests=Requests(asked, asked, asked))
    return Workload(namespace="d", name=name, labels=labels, needs=needs, priority=priority)


def node(name, cpu=9000, **labels):
    room = (("cpu", cpu), ("pods", 110))
    return Target(name=name, labels={HOSTNAME: name, **labels}, allocatable=room)


def cluster(nodes, placed, **how):
    """An index of nodes; `placed` maps the name of a node to its pods."""
    index = PlacementIndex(**how)
    for each in nodes:
        index.add_target(each)
    for name, pods in placed.items():
        for each in pods:
            index.add(each, name)
    return index


def preempt(rule, index, new, nominated=()):
    return preemption.preempt(new, Engine(index, (*RULES, rule)), nominated=nominated)


def no_dry_run(monkeypatch):
    monkeypatch.setattr(dry_run, "dry_run", lambda *_: pytest.fail("a dry run on the index"))


# Victims by hand


def theatre():
    """A node without seats and two whose seats are all taken."""
    return cluster(
        [node("a"), node("b", seats="4"), node("c", seats="3")],
        {
            "b": [pod("b0", 0, seats="1"), pod("b1", 3, seats="3"), pod("b2", 1)],
            "c": [pod("c0", 2, seats="1"), pod("c1", 1, seats="1"), pod("c2", 3, seats="1")],
        },
    )


@pytest.mark.parametrize("rule", [Seats(), SeatsBySums()])
@pytest.mark.parametrize("seats, target, victims", [
    ("1", "b", ("d/b0",)),
    ("2", "c", ("d/c0", "d/c1")),
    ("3", "b", ("d/b1",)),
    ("4", "b", ("d/b1", "d/b0")),
    ("5", "", ()),
])  # fmt: skip
def test_victims_of_a_rule_by_sums_and_by_dry_run(rule, seats, target, victims):
    found = preempt(rule, theatre(), pod("new", 9, seats=seats))
    assert (found.target, found.victims) == (target, victims)


@pytest.mark.parametrize("rule", [Seats(), SeatsBySums()])
def test_reasons_of_a_rule_by_sums_and_by_dry_run(rule):
    found = preempt(rule, theatre(), pod("new", 9, seats="5"))
    counted = "1 Preemption is not helpful for scheduling, 2 node(s) had too few seats"
    assert found.message == f"preemption: 0/3 nodes are available: {counted}."


def test_sums_need_no_dry_run(monkeypatch):
    no_dry_run(monkeypatch)
    assert preempt(SeatsBySums(), theatre(), pod("new", 9, seats="2")).target == "c"


def test_a_rule_that_does_not_filter_evicts_no_pod():
    rule = SeatsBySums()
    rule.filters = False
    assert preempt(rule, theatre(), pod("new", 9, seats="2")) == preemption.NOTHING


def test_the_arrays_of_a_rule_stay_its_own():
    rule, nominated = SeatsBySums(), [(pod("high", 9, seats="2"), "c")]
    assert preempt(rule, theatre(), pod("new", 9, seats="2"), nominated).target == "b"
    assert (rule.fixed.tolist()[:3], rule.remains.tolist()[:3]) == ([2, 0, 0], [0, -2, -2])


@pytest.mark.parametrize("rule", [Companion(), CompanionByRequirement()])
def test_no_node_is_freed_of_the_pod_that_the_rule_requires(rule):
    """Both nodes lack cpu, and the companion on the node with the less important pods would be evicted with them."""
    placed = {"a": [pod("a0", 0, 9000, app="cache")], "b": [pod("b0", 5, 8000), pod("b1", 20, 1000, app="cache")]}
    index = cluster([node("a"), node("b")], placed)
    found = preempt(rule, index, pod("new", 9, 5000, beside="cache"))
    assert (found.target, found.victims) == ("b", ("d/b0",))


def test_a_required_pod_is_spared_on_request():
    placed = {"a": [pod("a0", 0, 4000, app="cache"), pod("a1", 1, 5000)]}
    new = pod("new", 9, 5000, beside="cache")
    assert not preempt(CompanionByRequirement(), cluster([node("a")], placed), new).target
    spared = preempt(CompanionByRequirement(), cluster([node("a")], placed, semantics=DESIGN), new)
    assert (spared.target, spared.victims) == ("a", ("d/a1",))


def test_a_rule_that_no_sum_describes():
    placed = {"a": [pod(f"a{i}", i) for i in range(3)]}
    found = preempt(NotThree(), cluster([node("a")], placed), pod("new", 5))
    assert (found.target, found.victims) == ("a", ("d/a0",))
    without_victims = preempt(NotThree(), cluster([node("a")], placed), pod("new", 0))
    nothing = "1 No preemption victims found for incoming pod"
    assert without_victims.message == f"preemption: 0/1 nodes are available: {nothing}."


def test_a_rule_that_no_sum_describes_where_it_accepts_the_target():
    """Four pods are fine, three are not: freeing the cpu of one takes a second victim."""
    placed = {"a": [pod(f"a{i}", i, 2500) for i in range(4)]}
    found = preempt(NotThree(), cluster([node("a", 10000)], placed), pod("new", 5, 2000))
    assert (found.target, found.victims) == ("a", ("d/a1", "d/a0"))


# Victims in random clusters


def random_case(seed):
    """A cluster, a pending pod and nominations; the pod needs seats, a companion or neither."""
    chance = random.Random(seed)
    nodes = []
    for i in range(chance.randint(1, 4)):
        offered = {"seats": str(chance.randint(1, 5))} if chance.random() < 0.8 else {}
        nodes.append(node(f"n{i}", chance.choice((2000, 3000)), **offered))

    def labels():
        found = {"app": chance.choice(("cache", "web"))}
        return {**found, "seats": str(chance.randint(1, 3))} if chance.random() < 0.6 else found

    placed = {each.name: [] for each in nodes}
    for i in range(chance.randint(0, 12)):
        placed[chance.choice(nodes).name].append(pod(f"p{i}", chance.choice((0, 1, 5, 20)), 500, **labels()))
    new = pod("new", 9, chance.choice((0, 1000, 1500)), seats=str(chance.randint(1, 4)), beside="cache")
    nominated = [
        (pod(f"q{i}", chance.choice((9, 30)), 500, **labels()), chance.choice(nodes).name)
        for i in range(chance.choice((0, 0, 1, 2)))
    ]
    return cluster(nodes, placed), new, nominated


@pytest.mark.parametrize("by_effect", [SeatsBySums, CompanionByRequirement])
@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_victims_are_those_of_the_dry_run(by_effect, seed):
    by_default = type("ByDefault", (by_effect,), {"eviction_effect": Rule.eviction_effect})
    index, new, nominated = random_case(seed)
    assert preempt(by_effect(), index, new, nominated) == preempt(by_default(), index, new, nominated)


def test_random_clusters_have_victims():
    for rule in (SeatsBySums(), CompanionByRequirement()):
        found = [preempt(rule, *random_case(seed)) for seed in range(200)]
        assert sum(len(each.victims) > 1 for each in found) > 5
        assert sum(rule.reasons_by_code[0].text in each.message for each in found) > 5
