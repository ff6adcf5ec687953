"""A row excuses the difference that it is about, and no other one."""

import copy

import pytest

from agreeing import bayplan_answers, drawn_nodes, known, schedulers
from agreeing.drawing import HOSTNAME, thing

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}


def pod(name, *, node="", nominated="", anti=False, labels=None, claim=""):
    spec = {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "repo/web:v1"}]}
    if node:
        spec["nodeName"] = node
    if anti:
        spec["affinity"] = {"podAntiAffinity": {REQUIRED: [TERM]}}
    if claim:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    status = {"nominatedNodeName": nominated} if nominated else {}
    return thing("Pod", name, namespace="default", labels=labels or {"app": "web"}, spec=spec, status=status)


def node(name, images=()):
    status = {"allocatable": drawn_nodes.ROOMY, "images": list(images)}
    return thing("Node", name, labels={HOSTNAME: name}, spec={}, status=status)


def question(pods, **more):
    return {"name": "q", "nodes": [node("n0"), node("n1")], "namespaces": [], "objects": [], "pods": pods} | more


def reason(asked, real):
    ours = bayplan_answers.answer("pods", asked)
    found = schedulers.Compared("pods", "1.36", asked, real, ours, "differs")
    return known.reason(found)


def as_if(asked, change):
    """The answer to the question after a change: what a scheduler says that does not see something."""
    other = copy.deepcopy(asked)
    change(other)
    return bayplan_answers.answer("pods", other)


def without_nominated_terms(asked):
    for one in asked["pods"]:
        if one["status"]:
            del one["spec"]["affinity"]


@pytest.mark.parametrize("is_excluded", [False, True])
def test_anti_affinity_of_nominated_pods_is_excused_only_where_no_running_pod_excludes_the_incoming_one(is_excluded):
    waiting = pod("w", nominated="n0", anti=True)
    running = pod("r", node="n1", anti=is_excluded, labels={"app": "other"})
    asked = question([waiting, running], pod=pod("new"))
    row = reason(asked, as_if(asked, without_nominated_terms))
    assert bool(row) is not is_excluded


@pytest.mark.parametrize("has_user", [False, True])
def test_a_claim_of_a_nominated_pod_is_excused_only_where_no_running_pod_uses_one(has_user):
    claims = [
        thing("PersistentVolumeClaim", name, namespace="default", status={"phase": "Bound"},
              spec={"accessModes": [mode], "volumeName": f"pv-{name}", "storageClassName": ""})
        for name, mode in (("once", "ReadWriteOncePod"), ("many", "ReadWriteMany"))
    ]  # fmt: skip
    for claim in claims:
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    volumes = [
        thing("PersistentVolume", f"pv-{one['metadata']['name']}", status={"phase": "Bound"},
              spec={"accessModes": one["spec"]["accessModes"], "capacity": {"storage": "1Gi"},
                    "claimRef": {"namespace": "default", "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]},
                    "csi": {"driver": "csi.example.com", "volumeHandle": one["metadata"]["name"]}})
        for one in claims
    ]  # fmt: skip
    incoming = pod("new", claim="once")
    incoming["spec"]["volumes"].append({"name": "m", "persistentVolumeClaim": {"claimName": "many"}})
    running = [pod("r", node="n1", claim="many")] if has_user else []
    waiting = pod("w", nominated="n0", claim="once")
    asked = question([waiting, *running], pod=incoming, objects=[*claims, *volumes])
    real = as_if(asked, lambda other: other["pods"][0]["spec"].pop("volumes"))
    assert real != bayplan_answers.answer("pods", asked)
    assert bool(reason(asked, real)) is not has_user


@pytest.mark.parametrize("changes", [False, True])
def test_scores_of_images_are_excused_only_where_images_changed(changes):
    image = {"names": ["repo/web:v1"], "sizeBytes": 500_000_000}
    second = node("n1", [image] if changes else [])
    asked = question([], steps=[{"apply": second}, {"decide": pod("new")}])
    asked["nodes"][0] = node("n0", [image])
    real = bayplan_answers.answer("pods", asked)
    found = real["answers"][0]["nodes"]["n0"]
    found["scores"]["ImageLocality"] += 7
    found["total"] += 7
    assert bool(reason(asked, real)) is changes


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_host_port_is_excused_only_where_a_pod_with_the_same_one_has_left(is_shared):
    port = {"containerPort": 8080, "hostPort": 8080}
    stays, leaves, incoming = pod("stays", node="n0"), pod("leaves", node="n0"), pod("new")
    for one in (stays, incoming, *([leaves] if is_shared else [])):
        one["spec"]["containers"][0]["ports"] = [port]
    asked = question([stays, leaves], steps=[{"delete": leaves}, {"decide": incoming}])
    real = as_if(asked, lambda other: other["pods"][0]["spec"]["containers"][0].pop("ports"))
    assert real != bayplan_answers.answer("pods", asked)
    assert bool(reason(asked, real)) is is_shared
