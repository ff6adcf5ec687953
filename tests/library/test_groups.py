"""Groups in plans and explanations, as a program and as the command line see them."""

import json
import sys
from pathlib import Path

import pytest

from bayplan.library.cluster import Cluster

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import gen_planted

HOST, RACK = "kubernetes.io/hostname", "rack"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node(name, rack, cpu="2"):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, RACK: rack}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod(name, group, *, cpu="1", node_name="", labels=None, rules=None, **annotations):
    written = {"bayplan.io/group": group} if group else {}
    written |= {f"bayplan.io/group-{key.replace('_', '-')}": value for key, value in annotations.items()}
    if rules:
        written["bayplan.io/group-affinity"] = json.dumps(rules)
    metadata = {"name": name, "namespace": "default", "labels": labels or {}, "annotations": written}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **({"nodeName": node_name} if node_name else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture
def cluster(tmp_path):
    def made(*objects):
        path = tmp_path / "cluster.json"
        path.write_text("\n".join(map(json.dumps, objects)))
        return Cluster.from_files(str(path))

    return made


def test_a_group_that_waits_is_explained_domain_by_domain(cluster):
    members = [pod(f"m{i}", "gang", topology=RACK) for i in range(4)]
    asked = cluster(node("a1", "a"), node("b1", "b", "3"), *members)
    found = asked.explain("pod/m0")
    assert not found.fits
    assert found.message == (
        "group default/gang waits: 4 members must run; 3 fit in rack=b, and default/m3 does not: "
        "0/1 nodes there are available: 1 Insufficient cpu."
    )
    wait = found.to_dict()["groupWait"]
    assert [(one["domain"], one["fitting"], one["pod"]) for one in wait["domains"]] == [
        ("rack=b", 3, "default/m3"),
        ("rack=a", 2, "default/m2"),
    ]
    assert (wait["undecided"], wait["problem"], wait["members"]) == ("", "", 4)
    text = found.to_text("text")
    assert "default/m3, beside 3 other members of the group:" in text
    assert "What would make default/m3 fit beside the others:" in text
    assert asked.place().pods["default/m0"].explain().message == found.message
    assert not asked.place().ok


def test_what_would_make_it_fit_does(cluster):
    members = [pod(f"m{i}", "gang", topology=RACK) for i in range(4)]
    nodes = [node("a1", "a"), node("b1", "b", "3")]
    changes = [fix.change for fix in cluster(*nodes, *members).explain("pod/m0").fixes]
    assert "add a node like b1" in changes
    assert cluster(*nodes, *members).add_node(like="b1").place().ok


def test_a_rule_between_groups_is_not_loosened_for_one_member(cluster):
    apart = {"groupAntiAffinity": {REQUIRED: [{"topologyKey": RACK, "labelSelector": {}}]}}
    asked = cluster(node("a1", "a"), pod("runs", "a", node_name="a1"), pod("comes", "b", rules=apart))
    found = asked.explain("pod/comes")
    assert "default/runs in rack=a matches everything in another group" in found.to_text("all")
    assert not [fix for fix in found.fixes if "preferred" in fix.change]
    found.to_dict()  # has the patches of all fixes
    turned = cluster(node("a1", "a"), pod("runs", "a", node_name="a1", rules=apart), pod("comes", "b")).explain(
        "pod/comes"
    )
    assert not [fix for fix in turned.fixes if "preferred" in fix.change]
    turned.to_dict()


def test_a_group_of_higher_priority_has_its_turn_first_and_one_of_lower_priority_later(cluster):
    important, late = ([pod(f"{name}{i}", name) for i in range(2)] for name in ("first", "last"))
    for one in important:
        one["spec"]["priority"] = 10
    single = pod("single", "")
    single["spec"]["priority"] = 5
    plan = cluster(node("a1", "a", "3"), *late, single, *important).place()
    assert [name for name, one in plan.pods.items() if one.node] == [
        "default/first0",
        "default/first1",
        "default/single",
    ]


def test_a_group_is_tried_again_when_its_partner_has_been_placed(cluster):
    near = {"podAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "db"}}}]}}
    members = [pod(f"m{i}", "gang") for i in range(2)]
    for one in members:
        one["spec"] |= {"affinity": near, "priority": 10}
    plan = cluster(
        node("a1", "a"), node("b1", "b", "4"), *members, pod("db", "", labels={"app": "db"}, cpu="2")
    ).place()
    assert {one.node for one in plan} == {"b1"}


def test_members_of_an_update_join_the_group_that_runs(cluster):
    runs = pod("m0", "gang", node_name="a1", topology=RACK, min="1")
    plan = cluster(node("a1", "a"), node("b1", "b", "9"), runs, pod("m1", "gang", topology=RACK, min="1")).place()
    assert plan.pods["default/m1"].node == "a1"


def test_groups_of_other_schedulers_are_left_to_them_and_that_is_said_once(cluster):
    kueue = pod("k", "", labels={"kueue.x-k8s.io/pod-group-name": "g"})
    volcano = [pod(f"v{i}", "") for i in range(2)]
    for one in volcano:
        one["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    plan = cluster(node("a1", "a", "9"), kueue, *volcano).place()
    assert [note for note in plan.notes if "groups of" in note] == [
        "1 pod is in groups of Kueue, to which these groups are left: the pods are placed one by one here",
        "2 pods are in groups of Volcano, to which these groups are left: the pods are placed one by one here",
    ]


def test_a_victim_of_a_group_comes_back_to_its_group(cluster):
    members = [pod(f"m{i}", "gang", node_name="a1", topology=RACK, min="2") for i in range(2)]
    for one in members:
        one["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gang", "uid": "g", "controller": True}
        ]
    important = pod("important", "", cpu="1500m")
    important["spec"]["priority"] = 100
    plan = cluster(node("a1", "a"), node("b1", "b", "1"), *members, important).place()
    assert plan.pods["default/important"].node == "a1"
    waiting = plan.pods["default/m1"]
    assert not waiting.node
    assert "2 members must run; 1 fits in rack=b" in waiting.message


def test_a_snapshot_with_hashed_names_keeps_groups_and_their_rules(tmp_path, cluster):
    apart = {"groupAntiAffinity": {REQUIRED: [{"topologyKey": RACK, "labelSelector": {"matchLabels": {"app": "llm"}}}]}}
    members = [
        pod(f"{name}{i}", name, labels={"app": "llm"}, topology=RACK, min="2", rules=apart)
        for name in ("blue", "green")
        for i in range(2)
    ]
    asked = cluster(node("a1", "a"), node("b1", "b", "1"), *members)
    path = tmp_path / "snapshot.json"
    path.write_text(asked.snapshot(hash_key=b"key").text)
    assert b"llm" not in path.read_bytes()
    assert b"rack" not in path.read_bytes()
    hashed = list(Cluster.from_files(str(path)).place())
    assert sorted(bool(one.node) for one in hashed) == [False, False, True, True]
    assert sorted(bool(one.node) for one in asked.place()) == [False, False, True, True]
    assert all("2 members must run; 1 fits in" in one.message for one in hashed if not one.node)


def test_what_the_search_does_not_decide_is_proven_and_explained_by_rules(cluster):
    pytest.importorskip("ortools")
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": RACK, "labelSelector": {"matchLabels": {"app": "a"}}}]}}
    members = [pod(f"m{i}", "gang", labels={"app": "a"}, cpu="1") for i in range(3)]
    spread = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    for one in members:
        one["spec"] |= {"affinity": apart, "topologySpreadConstraints": [spread]}
    found = cluster(node("a1", "a"), node("a2", "a"), node("b1", "b"), *members).explain("pod/m0")
    assert "3 members must run; 2 fit, and default/m" in found.message
    assert "no plan was found" not in found.message
    assert found.to_dict()["groupWait"]["conflict"]
    assert "proven: no plan keeps all of these rules:" in found.to_text("text")


def test_a_plan_that_only_the_exact_stage_finds_is_placed(cluster):
    pytest.importorskip("ortools")
    planted = gen_planted.planted("tight", 0)
    for one in planted["pods"]:
        one["metadata"]["annotations"] = {"bayplan.io/group": "all"}
    plan = cluster(*planted["nodes"], *planted["pods"]).place()
    assert gen_planted.violations(planted, {key: one.node for key, one in plan.pods.items()}) == []
