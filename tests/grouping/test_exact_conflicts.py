"""What cannot be is proven, with the few rules that say so: without any one of them a plan is found."""

import copy
import json

import pytest

from bayplan.grouping import exact
from bayplan.grouping.problem import GroupPlan, ProvenImpossible, Solved
from grouping.small_problems import REQUIRED, SmallProblem
from reference.strategies import HOSTNAME, ZONE, thing

RACK = "rack"


def node(name, cpu="4", taints=(), **labels):
    room = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    found = {HOSTNAME: name, **{ZONE if key == "zone" else key: value for key, value in labels.items()}}
    return thing("Node", name, labels=found, spec={"taints": list(taints)}, status={"allocatable": room})


def pods(app, n, cpu="1", near="", apart="", **spec):
    term = {"labelSelector": {"matchLabels": {"app": app}}}
    affinity = {
        kind: {REQUIRED: [{"topologyKey": key, **term}]}
        for kind, key in (("podAffinity", near), ("podAntiAffinity", apart))
        if key
    }
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return [
        {
            "metadata": {"name": f"{app}-{i}", "namespace": "default", "uid": f"{app}-{i}", "labels": {"app": app}},
            "spec": copy.deepcopy({"containers": [container], "affinity": affinity, **spec}),
        }
        for i in range(n)
    ]


def spread(app, **more):
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **more}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": {"app": app}}}]}


DEDICATED = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}
THREE = [node("a", zone="a"), node("b", zone="a"), node("c", zone="b")]
NO_PORT = {"containers": [{"name": "c", "image": "i"}]}
WITH_PORT = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
AFFINITY = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
ANTI_AFFINITY = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"


def without(pods_of_problem, rule, term):
    """The pods without one rule."""
    changed = copy.deepcopy(pods_of_problem)
    for pod in changed:
        spec = pod["spec"]
        if rule == "resources":
            spec["containers"][0].pop("resources", None)
        elif rule == "pod-affinity":
            spec["affinity"].pop(term.split(".")[2], None)
        elif rule == "topology-spread":
            del spec["topologySpreadConstraints"]
        elif rule == "taint":
            spec["tolerations"] = [{"operator": "Exists"}]
        elif rule == "node-affinity":
            spec.pop("nodeSelector")
        elif rule == "node-ports":
            spec.update(copy.deepcopy(NO_PORT))
        else:
            raise AssertionError(rule)
    return changed


@pytest.mark.parametrize("nodes, pending, expected", [
    # three machines for four pods
    (THREE, pods("web", 4, apart=HOSTNAME), [("pod-affinity", ANTI_AFFINITY)]),
    # a zone of two machines for three pods
    (THREE, pods("web", 3, near=ZONE, apart=HOSTNAME), [("pod-affinity", AFFINITY), ("pod-affinity", ANTI_AFFINITY)]),
    # one node is large enough, for one of them
    ([node("a", cpu="6"), node("b"), node("c")], pods("big", 2, cpu="5"), [("resources", "")]),
    # two zones count, and one of them has no room for its share
    ([node("a", zone="a"), node("b", zone="b", cpu="1")], pods("web", 5, **spread("web")),
     [("resources", ""), ("topology-spread", "spec.topologySpreadConstraints")]),
    # the only node that is large enough is tainted
    ([node("a", cpu="8", taints=[DEDICATED]), node("b")], pods("big", 1, cpu="5"), [("taint", ""), ("resources", "")]),
    # what one rule allows the other does not
    ([node("a", zone="a", taints=[DEDICATED]), node("b", zone="b")], pods("web", 1, nodeSelector={ZONE: "a"}),
     [("taint", ""), ("node-affinity", "")]),
    # a port can be had once on each node
    (THREE, pods("web", 4, **WITH_PORT), [("node-ports", "")]),
    # partners of a zone each, that exclude each other's zone by being too many for one
    (THREE, pods("a", 2, near=ZONE, apart=HOSTNAME, nodeSelector={ZONE: "b"}),
     [("pod-affinity", ANTI_AFFINITY), ("node-affinity", "")]),
])  # fmt: skip
def test_conflicts(nodes, pending, expected):
    question = {"name": "conflict", "nodes": nodes, "namespaces": [], "pods": [], "objects": [], "options": {}}
    small = SmallProblem(question, pending)
    answer = exact.solve(small.of_product(), GroupPlan())
    assert isinstance(answer, ProvenImpossible)
    assert answer.is_minimal
    assert sorted((one.rule, one.term) for one in answer.conflict) == sorted(expected)
    for one in answer.conflict:
        assert set(one.pods) == set(small.names)
        relaxed = SmallProblem(question, without(pending, one.rule, one.term))
        assert isinstance(exact.solve(relaxed.of_product(), GroupPlan()), Solved), one


def test_rules_that_have_nothing_to_do_with_it_are_not_named():
    """Of two apps only one is in a conflict."""
    pending = [*pods("web", 4, apart=HOSTNAME), *pods("db", 2, near=ZONE)]
    question = {"name": "conflict", "nodes": THREE, "namespaces": [], "pods": [], "objects": [], "options": {}}
    answer = exact.solve(SmallProblem(question, pending).of_product(), GroupPlan())
    (rule,) = answer.conflict
    assert {name.partition("-")[0] for name in rule.pods} == {"default/web"}
    assert "app=web" in rule.detail
    assert HOSTNAME in rule.detail


def test_a_group_in_one_domain():
    pending = pods("web", 3, apart=HOSTNAME)
    names = tuple(f"default/web-{i}" for i in range(3))
    question = {"name": "group", "nodes": THREE, "namespaces": [], "pods": [], "objects": [], "options": {}}
    answer = exact.solve(SmallProblem(question, pending, [(names, 3, ZONE)]).of_product(), GroupPlan())
    assert sorted(one.rule for one in answer.conflict) == ["group-topology", "pod-affinity"]
    answer = exact.solve(SmallProblem(question, pending, [(names, 2, ZONE)]).of_product(), GroupPlan())
    assert set(answer.plan.nodes.values()) == {"a", "b"}


def test_without_nodes():
    question = {"name": "none", "nodes": [], "namespaces": [], "pods": [], "objects": [], "options": {}}
    assert exact.solve(SmallProblem(question, pods("web", 1)).of_product(), GroupPlan()) == ProvenImpossible(())


@pytest.mark.parametrize("n_pending, is_solved", [(1, True), (2, False)])
def test_pending_pods_use_up_the_limit_of_a_placed_pod_together(n_pending, is_solved):
    """A placed pod allows one more of its app in its zone; each of two would be that one."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}, "limit": 1}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingRequiredDuringExecution": [term]}}
    (placed,) = pods("web", 1)
    placed["metadata"].update(name="old", annotations={"bayplan.io/affinity": json.dumps(rule)})
    placed["spec"]["nodeName"] = "a"
    nodes = [node("a", zone="a"), node("b", zone="a")]
    question = {"name": "limit", "nodes": nodes, "namespaces": [], "pods": [placed], "objects": [], "options": {}}
    small = SmallProblem(question, pods("web", n_pending))
    answer = exact.solve(small.of_product(), GroupPlan())
    assert isinstance(answer, Solved) == is_solved == small.is_solvable()
    if not is_solved:
        assert [one.detail for one in answer.conflict] == ["required anti-affinity of placed pods"]


@pytest.mark.parametrize("least, is_solved", [(1, True), (3, False)])
def test_spread_counts_placed_pods_and_domains_that_are_missing(least, is_solved):
    """Zone a runs one pod, so that the next goes to zone b and a third to either; not if there were to be three zones."""
    (placed,) = pods("web", 1)
    placed["metadata"]["name"] = "old"
    placed["spec"]["nodeName"] = "a"
    nodes = [node("a", zone="a"), node("b", zone="b", cpu="2")]
    question = {"name": "spread", "nodes": nodes, "namespaces": [], "pods": [placed], "objects": [], "options": {}}
    small = SmallProblem(question, pods("web", 2, **spread("web", minDomains=least)))
    answer = exact.solve(small.of_product(), GroupPlan())
    assert isinstance(answer, Solved if is_solved else ProvenImpossible)
    assert is_solved == small.is_solvable()
    full = {**question, "nodes": [nodes[0], node("b", zone="b", cpu="500m")]}
    answer = exact.solve(SmallProblem(full, pods("web", 1, **spread("web"))).of_product(), GroupPlan())
    assert {one.rule for one in answer.conflict} == {"topology-spread", "resources"}


def test_a_pod_is_not_the_first_of_its_set_beside_placed_ones():
    """Its peer runs in a zone without room; where there is room, it would be alone."""
    (placed,) = pods("web", 1)
    placed["metadata"]["name"] = "old"
    placed["spec"]["nodeName"] = "a"
    nodes = [node("a", zone="a", cpu="1"), node("b", zone="b")]
    question = {"name": "first", "nodes": nodes, "namespaces": [], "pods": [placed], "objects": [], "options": {}}
    answer = exact.solve(SmallProblem(question, pods("web", 1, near=ZONE)).of_product(), GroupPlan())
    assert {one.rule for one in answer.conflict} == {"pod-affinity", "resources"}
    alone = SmallProblem({**question, "pods": []}, pods("web", 1, near=ZONE))
    assert isinstance(exact.solve(alone.of_product(), GroupPlan()), Solved)
