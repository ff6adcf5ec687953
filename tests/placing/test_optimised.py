"""The best plan beside trying everything, with every plan and each of its steps judged by the reference implementation."""

import itertools
import json
import pathlib
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.errors import ArgumentError
from bayplan.library.cluster import Cluster
from bayplan.placing import place_cluster
from reference import groups as reference_implementation
from reference.groups import key_of

pytest.importorskip("ortools")

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node(name, zone, cpu):
    status = {"allocatable": {"cpu": f"{cpu}m", "memory": "8Gi", "pods": "9"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone}},
        "status": status,
    }


def pod(name, cpu, app="x", *, on="", priority=0, near=None, apart=None, group="", least=0, owner="web"):
    sides = {"podAffinity": near, "podAntiAffinity": apart}
    affinity = {
        side: {REQUIRED: [{"topologyKey": one[0], "labelSelector": {"matchLabels": {"app": one[1]}}}]}
        for side, one in sides.items()
        if one
    }
    annotations = {"bayplan.io/group": group, "bayplan.io/group-min": str(least)} if group else {}
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u", "controller": True}]
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}, "annotations": annotations}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    spec = {"containers": [container], "affinity": affinity, "priority": priority} | ({"nodeName": on} if on else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | ({"ownerReferences": owners} if on and owner else {}),
        "spec": spec,
        "status": {"phase": "Running" if on else "Pending"},
    }


def budget(app, allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"of-{app}", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "maxUnavailable": allowed},
        "status": {"disruptionsAllowed": allowed, "expectedPods": 9, "currentHealthy": 9, "desiredHealthy": 1},
    }


def best(scene, moves=0, **scope):
    """The plan and its document."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "scene.json"
        path.write_text("\n".join(map(json.dumps, [*scene["nodes"], *scene.get("objects", ()), *scene["pods"]])))
        plan = Cluster.from_files(str(path)).only(**scope).place(optimize=True, moves=moves)
        return plan, json.loads(plan.to_text("json"))["optimization"]


def nodes_after(scene, document):
    """The node of each pod once the steps are carried out, after each has been judged."""
    there = {key_of(one): one["spec"]["nodeName"] for one in scene["pods"] if one["spec"].get("nodeName")}
    for step in document["steps"]:
        newly = {f"{one['namespace']}/{one['name']}": one["to"] for one in step["pods"]}
        assert all(there.get(f"{one['namespace']}/{one['name']}", "") == one["from"] for one in step["pods"])
        there |= newly
        assert (
            reference_implementation.violations(at(scene, {k: v for k, v in there.items() if k not in newly}), newly)
            == []
        )
        assert reference_implementation.violations(at(scene, {}), there) == []
    return there


def at(scene, there):
    """The scene with pods on nodes, and all others pending."""
    moved = [{**one, "spec": {**one["spec"], "nodeName": there.get(key_of(one), "")}} for one in scene["pods"]]
    return {**scene, "pods": moved}


def tried(scene, moves):
    """By trying everything: how many pods of each priority the best plan places, the highest first, and its moves."""
    names = [one["metadata"]["name"] for one in scene["nodes"]]
    running = {key_of(one): one["spec"]["nodeName"] for one in scene["pods"] if one["spec"].get("nodeName")}
    options = [names if key_of(one) in running else [None, *names] for one in scene["pods"]]
    found = None
    for choice in itertools.product(*options):
        plan = {key_of(one): on for one, on in zip(scene["pods"], choice, strict=True) if on}
        n_moves = sum(plan[key] != on for key, on in running.items())
        if n_moves > moves:
            continue
        priorities = sorted(
            (one["spec"]["priority"] for one in scene["pods"] if key_of(one) not in running), reverse=True
        )
        counts = [
            sum(
                key_of(one) in plan and key_of(one) not in running and one["spec"]["priority"] == priority
                for one in scene["pods"]
            )
            for priority in dict.fromkeys(priorities)
        ]
        merit = (*counts, -n_moves)
        if (found is None or merit > found) and reference_implementation.violations(at(scene, {}), plan) == []:
            found = merit
    return found


rules = st.fixed_dictionaries(
    {},
    optional={
        "near": st.tuples(st.sampled_from([HOST, ZONE]), st.sampled_from("xy")),
        "apart": st.tuples(st.sampled_from([HOST, ZONE]), st.sampled_from("xy")),
    },
)
sizes = st.sampled_from([300, 500, 800])
clusters = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([800, 1000, 1300])), min_size=2, max_size=3)
waiting = st.lists(st.tuples(sizes, st.sampled_from("xy"), rules, st.sampled_from([0, 5])), min_size=1, max_size=3)
runs = st.lists(st.tuples(st.sampled_from([300, 500]), st.sampled_from("xy"), st.integers(0, 2)), max_size=2)


@settings(max_examples=60)
@given(clusters, waiting, runs, st.booleans(), st.integers(0, 2))
def test_plans_are_the_best_and_their_steps_safe(cluster, waiting, runs, in_group, moves):
    nodes = [node(f"n{i}", zone, cpu) for i, (zone, cpu) in enumerate(cluster)]
    pods = [pod(f"run-{i}", cpu, app, on=f"n{at % len(nodes)}") for i, (cpu, app, at) in enumerate(runs)]
    for i, (cpu, app, rule, priority) in enumerate(waiting):
        of_group = {"group": "g", "least": len(waiting)} if in_group else {}
        pods.append(pod(f"wait-{i}", cpu, app, priority=0 if in_group else priority, **rule, **of_group))
    scene = {"nodes": nodes, "pods": pods}
    running = {key_of(one): one["spec"]["nodeName"] for one in pods if one["spec"].get("nodeName")}
    if reference_implementation.violations(at(scene, {}), running):
        return
    plan, document = best(scene, moves)
    there = nodes_after(scene, document)
    assert all(plan.pods[key].node == there[key] for key in plan.pods if key in there)
    counts = tuple(level["placed"] for level in document["levels"])
    merit = tried(scene, moves)
    if "undecided" in document:  # only in turn are so many placed
        assert sum(bool(one.node) for one in plan) > sum(merit[:-1]) or moves
        return
    assert sum(counts) == sum(bool(one.node) for one in plan)
    bounds = tuple(level["atMost"] for level in document["levels"])
    assert bounds >= merit[:-1]
    if any(one.node for key, one in plan.pods.items() if key not in there):
        return  # after the first pod of a set, which has no peer in this order alone
    assert merit[:-1] >= counts
    if bounds == counts:
        assert document["moves"] == -merit[-1] or document["leastMoves"] <= -merit[-1] <= document["moves"]


def test_what_one_by_one_misses_is_found():
    scene = {
        "nodes": [node("a", "a", 1000), node("b", "b", 1000)],
        "pods": [pod(f"p-{i}", cpu) for i, cpu in enumerate([400, 400, 600, 600])],
    }
    plan, document = best(scene)
    assert all(one.node for one in plan)
    assert plan.ok
    assert document["levels"] == [{"priority": 0, "pods": 4, "placed": 4, "atMost": 4}]


def test_pods_of_higher_priority_come_first():
    scene = {
        "nodes": [node("a", "a", 1000)],
        "pods": [pod("dear", 1000, priority=5), pod("low-0", 500), pod("low-1", 500)],
    }
    plan, document = best(scene)
    assert [one.name for one in plan if one.node] == ["dear"]
    assert "Insufficient cpu" in plan.pods["default/low-0"].message
    assert [level["placed"] for level in document["levels"]] == [1, 0]
    assert "proven: no plan that keeps all rules places more pods, by priority" in plan.summary


@pytest.mark.parametrize(
    ("allowed", "moves", "owner", "n_placed"),
    [
        (1, 1, "web", 1),
        (0, 1, "web", 0),  # a budget allows no disruption
        (1, 0, "web", 0),
        (1, 1, "", 0),  # no controller would create it again
    ],
)
def test_running_pods_move_within_the_limits(allowed, moves, owner, n_placed):
    scene = {
        "nodes": [node("a", "a", 1000), node("b", "b", 1000)],
        "pods": [pod("run-0", 500, on="a", owner=owner), pod("run-1", 500, on="b", owner=owner), pod("big", 1000)],
        "objects": [budget("x", allowed)],
    }
    plan, document = best(scene, moves)
    nodes_after(scene, document)
    assert sum(bool(one.node) for one in plan) == n_placed
    assert document["moves"] == n_placed
    assert len(document["steps"]) == 2 * n_placed


def test_only_pods_in_scope_move():
    scene = {
        "nodes": [node("a", "a", 1000), node("b", "b", 1000)],
        "pods": [pod("run-0", 500, on="a"), pod("run-1", 500, "y", on="b"), pod("big", 1000, "y")],
    }
    _, document = best(scene, 1, selector="app=y")
    (moved, _) = document["steps"]
    assert [one["name"] for one in moved["pods"]] == ["run-1"]
    assert best(scene, 1, selector="app!=x")[1]["moves"] == 1


def test_nothing_moves_where_nothing_waits():
    scene = {"nodes": [node("a", "a", 1000), node("b", "b", 1000)], "pods": [pod("run", 500, on="a")]}
    plan, document = best(scene, 1)
    assert (list(plan), document["moves"], document["steps"]) == ([], 0, [])


def test_the_optional_package_and_what_is_not_a_plan_are_said(monkeypatch):
    scene = {"nodes": [node("a", "a", 1000)], "pods": [pod("p", 500), pod("run", 500, on="a")]}
    cluster = Cluster.from_manifests([*scene["nodes"], *scene["pods"]])
    with pytest.raises(ArgumentError, match="set optimize too"):
        cluster.place(moves=1)
    with pytest.raises(ArgumentError, match="a what-if takes nodes away"):
        cluster.lose("node/a").place(optimize=True)
    monkeypatch.setattr(place_cluster, "has_solver", lambda: False)
    with pytest.raises(ArgumentError, match="needs the extra `optimize`"):
        cluster.place(optimize=True)


def test_a_swap_that_has_no_safe_order_is_not_planned():
    # Each would have to leave first, and neither has room before.
    scene = {
        "nodes": [node("a", "a", 1000), node("b", "b", 700)],
        "pods": [
            pod("run-0", 600, on="a", owner="one"),
            pod("run-1", 500, on="b", owner="two"),
            pod("wait", 500),
        ],
    }
    plan, document = best(scene, 2)
    assert not plan.pods["default/wait"].node
    assert document["moves"] == 0
    assert document["levels"][0]["atMost"] == 1  # not proven: another order may exist


def test_what_only_an_order_of_placements_allows_is_placed_too():
    # The first pod needs no peer. Beside the second it breaks its own rule, wherever that is.
    near_and_apart = {"near": (HOST, "x"), "apart": (HOST, "x")}
    scene = {
        "nodes": [node("a", "a", 1000), node("b", "b", 1000)],
        "pods": [pod("p-0", 300, **near_and_apart), pod("p-1", 300)],
    }
    plan, document = best(scene)
    assert all(one.node for one in plan)
    assert document["undecided"] == "the best plan in which all rules hold at once places fewer pods"


def test_a_group_is_placed_as_a_whole_or_not_at_all():
    scene = {
        "nodes": [node("a", "a", 1000)],
        "pods": [*(pod(f"gang-{i}", 400, group="gang", least=3) for i in range(3)), pod("single", 900)],
    }
    plan, _ = best(scene)
    assert [one.name for one in plan if one.node] == ["single"]
    assert "3 members must run" in plan.pods["default/gang-0"].message
