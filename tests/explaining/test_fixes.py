"""Proposed fixes work: after they are applied, the pod fits on exactly the nodes that the fix lists."""

import gzip
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.explaining import explanation, fixes
from bayplan.model import labels as labels_model
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.placing import evicting
from bayplan.reading import questions
from bayplan.rules import profiles
from reference import strategies

RECORDINGS = Path(__file__).parents[1] / "upstream" / "pods.jsonl.gz"
with gzip.open(RECORDINGS, "rt") as lines:
    UNSCHEDULABLE = [case for case in map(json.loads, lines) if not case["expect"]["best"]]


def situation(question):
    question = {key: value for key, value in question.items() if key != "expect"}
    made = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))
    return made.workload, Engine(made.index, profiles.pod_rules(made.profile))


def check_fixes(question):
    """Apply each proposal to an index of its own; returns the number of proposals."""
    workload, engine = situation(question)
    proposals = fixes.find_proposals(workload, engine)
    for proposal in proposals:
        fresh_workload, fresh = situation(question)
        changed = fixes.apply_remedies(proposal.remedies, fresh_workload, fresh.index)
        feasible = filtering.run(changed, fresh).feasible
        names = sorted(fresh.index.slots.at(int(slot)).name for slot in np.flatnonzero(feasible))
        assert names == proposal.fix.fits_on
        assert names, proposal.fix.change
    return len(proposals)


@pytest.mark.parametrize("offset", range(10))
def test_fixes_for_recorded_unschedulable_pods_work(offset):
    assert sum(check_fixes(case) for case in UNSCHEDULABLE[offset::10]) > 0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_fixes_for_random_unschedulable_pods_work(seed):
    question = strategies.seeded(seed)
    workload, engine = situation(question)
    if not schedule_pod.schedule(workload, engine).placed:
        check_fixes(question)


@pytest.mark.parametrize("offset", range(10))
def test_explaining_changes_nothing_and_covers_every_rejected_node(offset):
    for case in UNSCHEDULABLE[offset::10]:
        workload, engine = situation(case)
        explained = explanation.explain(workload, engine)
        assert explained.message == case["expect"]["message"]
        assert all(verdict.failures for verdict in explained.targets if not verdict.fits), case["name"]
        again = explanation.explain(workload, engine)
        assert again == explained


# What is proposed


def node(name, cpu="4", **metadata):
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
    labels = {"kubernetes.io/hostname": name, **metadata.pop("labels", {})}
    return {"metadata": {"name": name, "labels": labels}, "status": status, **metadata}


def pod(name, cpu="100m", on="", **spec):
    kind = spec.pop("owner", "")
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": "o", "controller": True}] if kind else []
    metadata = {"name": name, "namespace": "shop", "labels": spec.pop("labels", {}), "ownerReferences": owners}
    requests = {"requests": {"cpu": cpu}}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "resources": requests}], "nodeName": on, **spec},
    }


def proposed(nodes, placed, pending, budgets=(), namespaces=(), objects=()):
    question = {"nodes": nodes, "pods": placed, "pod": pending, "namespaces": namespaces, "objects": list(objects)}
    made = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))
    engine = Engine(made.index, profiles.pod_rules(made.profile))
    policy = evicting.policy(budgets, made.index, made.spread_context)
    return {fix.change: fix for fix in fixes.find_fixes(made.workload, engine, policy)}


def budget(allowed, name="b", labels=None):
    selector = labels_model.equals(labels or {"app": "cache"})
    return DisruptionBudget(namespace="shop", name=name, selector=selector, expected=1, allowed=allowed)


def test_a_node_that_is_too_small_gets_no_room_but_a_larger_sibling():
    found = proposed([node("a")], [], pod("new", "6"))
    assert list(found) == ["request 4 cpu instead of 6", "add a node like a with 6 cpu"]


def test_a_larger_node_also_holds_its_daemons():
    found = proposed([node("a")], [pod("agent", "500m", "a", owner="DaemonSet")], pod("new", "4"))
    assert "add a node like a with 4500m cpu" in found
    assert "request 3500m cpu instead of 4" in found
    assert not any("move" in change for change in found), "a daemon runs on its node and on no other"


def test_pods_are_moved_that_fit_elsewhere():
    nodes, placed = [node("a"), node("small", "1")], [pod("one", "1", "a"), pod("two", "2", "a")]
    found = proposed(nodes, placed, pod("new", "2"))
    assert found["move shop/one away"].fits_on == ["a"]
    assert found["move shop/one away"].moved == (("shop/one", "small"),)
    assert "move shop/two away" not in found, "it fits nowhere else"


@pytest.mark.parametrize("spec", [{"priority": 1}, {"owner": "DaemonSet"}, {"owner": "Node"}])
def test_what_must_not_go_is_not_moved(spec):
    found = proposed([node("a"), node("small", "1")], [pod("one", "1", "a", **spec)], pod("new", "4"))
    assert found
    assert not any("move" in change for change in found)


@pytest.mark.parametrize("allowed, moves", [(0, False), (1, True)])
def test_budgets_limit_what_is_moved(allowed, moves):
    one = pod("one", "1", "a", labels={"app": "cache"})
    found = proposed([node("a"), node("small", "1")], [one], pod("new", "4"), budgets=[budget(allowed)])
    assert ("move shop/one away" in found) == moves


def test_a_budget_is_charged_for_each_pod():
    placed = [pod(f"p{n}", "1", "a", labels={"app": "cache"}) for n in range(2)]
    nodes = [node("a", "2"), node("s1", "1"), node("s2", "1")]
    move = "move shop/p0 and shop/p1 away"
    assert move in proposed(nodes, placed, pod("new", "2"), budgets=[budget(2)])
    assert move not in proposed(nodes, placed, pod("new", "2"), budgets=[budget(1)])


def test_a_pod_that_is_terminating_is_waited_for():
    leaving = pod("one", "1", "a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = proposed([node("a")], [leaving], pod("new", "4"))
    assert found["wait until shop/one has terminated"].fits_on == ["a"]


def test_of_requests_the_least_change_is_proposed():
    found = proposed([node("a"), node("b")], [pod("x", "1", "a"), pod("y", "2", "b")], pod("new", "4"))
    assert [one for one in found if "request" in one] == ["request 3 cpu instead of 4"]


def test_a_list_of_values_gets_the_value_of_the_node():
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    found = proposed([node("a", labels={"disk": "hdd"})], [], pod("new", affinity=affinity))
    assert next(iter(found)).startswith("allow disk=hdd too in spec.affinity.nodeAffinity")


def test_where_no_single_change_helps_the_smallest_pair_is_proposed():
    taint = {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]}
    found = proposed([node("a", spec=taint)], [], pod("new", "5"))
    assert "request 4 cpu instead of 5 and tolerate dedicated=db:NoSchedule" in found
    assert "add a node like a with 5 cpu and tolerate dedicated=db:NoSchedule" in found
    assert all(" and " in change for change in found)


def test_a_node_in_the_zone_of_the_volume_is_proposed():
    in_b = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}
    volume = {
        "kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "v"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_b]}]}},
                 "claimRef": {"namespace": "shop", "name": "data"}},
    }  # fmt: skip
    claim = {
        "kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "metadata": {"name": "data", "namespace": "shop", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v"},
    }  # fmt: skip
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    nodes = [node("a", labels={"topology.kubernetes.io/zone": "a"})]
    found = proposed(nodes, [], pod("new", volumes=volumes), objects=[volume, claim])
    assert list(found) == ["add a node like a in topology.kubernetes.io/zone=b"]


def test_a_taint_that_a_condition_sets_is_neither_tolerated_nor_removed():
    taint = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    assert list(proposed([node("a", spec=taint)], [], pod("new"))) == ["add a node like a"]
