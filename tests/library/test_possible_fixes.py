"""A fix can be carried out: the manifests that it changes are those that pods are made from, and then the pod fits."""

import copy
import json

import pytest

import bayplan

HOSTNAME = "kubernetes.io/hostname"
KIND_AND_NAME = {
    "Deployment": "deploy/web",
    "StatefulSet": "sts/web",
    "DaemonSet": "ds/web",
    "Job": "job/web",
    "Pod": "pod/web",
}


def node(name, cpu="4", **labels):
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    metadata = {"name": name, "labels": {HOSTNAME: name, **labels}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def obj(kind, name, *, api_version="v1", namespace="shop", **fields):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **fields}


def pods(kind="Deployment", cpu="", **spec):
    """A controller, or a pod, of this name whose pods have one container."""
    resources = {"resources": {"requests": {"cpu": cpu}}} if cpu else {}
    spec = {"containers": [{"name": "c", "image": "i", **resources}], **spec}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    if kind == "Pod":
        return obj("Pod", "web", spec=spec)
    if kind == "Job":
        spec["restartPolicy"] = "Never"
        return obj("Job", "web", api_version="batch/v1", spec={"template": template})
    named = {"serviceName": "web"} if kind == "StatefulSet" else {}
    made = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **named}
    return obj(kind, "web", api_version="apps/v1", spec=made)


def owner(kind, name, uid):
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def limits(**item):
    return obj("LimitRange", "defaults", spec={"limits": [{"type": "Container", **item}]})


def runtime_class(**fields):
    return obj("RuntimeClass", "gvisor", api_version="node.k8s.io/v1", namespace="", handler="runsc", **fields)


def identity(one):
    return one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]


def about_to_be_applied(objects):
    """The state with the workload as a change: an API server has not completed it yet."""
    change = [one for one in objects if one["metadata"]["name"] == "web"]
    return bayplan.Cluster.from_objects([one for one in objects if one not in change]).apply(change)


def changes(objects, workload):
    """What is proposed; every fix is applied to the manifests and asked again: the pod fits."""
    found = about_to_be_applied(objects).explain(workload)
    for number, fix in enumerate(found.fixes, 1):
        new = {identity(one): one for one in found.apply_fix(number).manifests}
        changed = [new.pop(identity(one), one) for one in objects]
        again = about_to_be_applied([*changed, *new.values()]).explain(workload)
        assert again.fits, (fix.change, again.message)
    return [fix.change for fix in found.fixes]


CONTROLLERS = ["Deployment", "StatefulSet", "DaemonSet", "Job", "Pod"]


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_a_request_that_a_limit_range_has_added_is_lowered_in_the_manifest(kind):
    found = changes([node("a"), limits(defaultRequest={"cpu": "5"}), pods(kind)], KIND_AND_NAME[kind])
    assert "request 4 cpu instead of 5" in found


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_the_overhead_of_a_runtime_class_cannot_be_lowered(kind):
    gvisor = runtime_class(overhead={"podFixed": {"cpu": "1"}})
    objects = [node("a"), gvisor, pods(kind, "3500m", runtimeClassName="gvisor")]
    assert "request 4 cpu instead of 4500m" in changes(objects, KIND_AND_NAME[kind])


def test_a_request_below_the_minimum_of_a_limit_range_is_not_proposed():
    found = changes([node("a"), limits(min={"cpu": "5"}), pods("Deployment", "6")], "deploy/web")
    assert found == ["add a node like a with 6 cpu"]


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_the_node_selector_of_a_runtime_class_is_in_no_manifest_of_a_pod(kind):
    gvisor = runtime_class(scheduling={"nodeSelector": {"sandbox": "yes"}})
    objects = [node("a"), gvisor, pods(kind, "1", runtimeClassName="gvisor")]
    assert changes(objects, KIND_AND_NAME[kind]) == ["label a with sandbox=yes"]


def test_the_node_that_a_daemon_is_for_is_not_changed():
    found = changes([node("a", "1"), node("b"), pods("DaemonSet", "2")], "ds/web")
    assert found == ["request 1 cpu instead of 2"]


def test_the_node_that_a_daemon_is_for_is_not_changed_if_its_daemon_set_is_not_known():
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    daemon = pods("Pod", "2", affinity={"nodeAffinity": required})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    daemon["metadata"] |= {"ownerReferences": [owner], "uid": "p"}
    assert changes([node("a", "1"), node("b"), daemon], "pod/web") == ["request 1 cpu instead of 2"]


def test_a_stored_pod_is_mended_in_the_template_of_its_controller_beyond_what_admission_adds():
    deployment = pods()
    replica_set = obj("ReplicaSet", "web-1", api_version="apps/v1", spec=copy.deepcopy(deployment["spec"]))
    replica_set["metadata"]["ownerReferences"] = [owner("Deployment", "web", "d")]
    stored = pods("Pod", "5")
    stored["metadata"] |= {
        "name": "web-1-x", "uid": "p", "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True}],
    }  # fmt: skip
    objects = [node("a"), limits(defaultRequest={"cpu": "5"}), deployment, replica_set, stored]
    found = bayplan.Cluster.from_objects(objects).explain("pod/web-1-x")
    assert found.fixes[0].change == "request 4 cpu instead of 5"
    (fixed,) = found.apply_fix(1).manifests
    assert fixed["kind"] == "Deployment"
    assert fixed["spec"]["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "4"}}


def test_the_fix_of_a_group_is_one_of_the_member_that_does_not_fit():
    group = obj(
        "PodGroup",
        "train",
        api_version="scheduling.k8s.io/v1alpha2",
        spec={"schedulingPolicy": {"gang": {"minCount": 2}}},
    )
    members = []
    for name, cpu in ("small", "1"), ("large", "9"):
        one = pods("Pod", cpu, schedulingGroup={"podGroupName": "train"})
        one["metadata"]["name"] = name
        members.append(one)
    found = bayplan.Cluster.from_objects([node("a"), node("b"), group, *members]).explain("pod/small")
    assert found.fixes[0].change == "request 4 cpu instead of 9"
    (fixed,) = found.apply_fix(1).manifests
    assert fixed["metadata"]["name"] == "large"
    assert {one["object"]["name"] for fix in found.to_dict()["fixes"][:1] for one in fix["patches"]} == {"large"}


def test_a_node_name_in_a_template_can_be_dropped():
    found = changes(
        [node("a", "1"), node("b"), limits(default={"cpu": "2"}), pods("Deployment", nodeName="c")], "deploy/web"
    )
    assert found == ["drop spec.nodeName c"]


@pytest.mark.parametrize("deployment, wanted", [
    (pods("Deployment", "1", nodeSelector={"disk": "ssd"}), "drop nodeSelector disk=ssd"),
    (pods("Deployment", "9"), "request 4 cpu instead of 9"),
    (pods("Deployment", "1", nodeSelector={"disk": "ssd"}), "label a with disk=ssd"),
    (pods("Deployment", "1", tolerations=[]), "tolerate dedicated=db:NoSchedule"),
    (pods("Deployment", "1", tolerations=[]), "remove taint dedicated=db:NoSchedule from a"),
])  # fmt: skip
def test_a_fix_of_what_runs_can_be_applied_on_it(deployment, wanted):
    a = node("a")
    if "tolerations" in deployment["spec"]["template"]["spec"]:
        a["spec"] = {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]}
    state = bayplan.Cluster.from_objects([a, deployment])
    found = state.explain("deploy/web")
    number = 1 + [fix.change for fix in found.fixes].index(wanted)
    assert state.apply(found.apply_fix(number).manifests).explain("deploy/web").fits


def test_a_fix_of_a_manifest_that_is_about_to_be_applied_has_no_null():
    objects = [node("a"), pods("Deployment", "1", nodeSelector={"disk": "ssd"})]
    (fixed,) = about_to_be_applied(objects).explain("deploy/web").apply_fix(1).manifests
    assert fixed["spec"]["template"]["spec"]["nodeSelector"] == {}


@pytest.mark.parametrize("cpu", ["9", ""])
def test_a_rollout_that_is_stuck_is_mended_in_the_template_that_is_applied(cpu):
    old = pods("Deployment", "1")
    labels = {"app": "web", "pod-template-hash": "1"}
    replica_set = copy.deepcopy(old) | {"kind": "ReplicaSet"}
    replica_set["metadata"] |= {
        "name": "web-1",
        "uid": "r",
        "labels": labels,
        "ownerReferences": [owner("Deployment", "web", "d")],
    }
    replica_set["spec"]["template"]["metadata"]["labels"] = replica_set["spec"]["selector"]["matchLabels"] = labels
    running = pods("Pod", "1", nodeName="a")
    running["metadata"] |= {
        "name": "web-1-x",
        "uid": "p",
        "labels": labels,
        "ownerReferences": [owner("ReplicaSet", "web-1", "r")],
    }
    applied = json.dumps(old)
    old["metadata"] |= {"uid": "d", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}}
    state = bayplan.Cluster.from_objects([node("a"), limits(defaultRequest={"cpu": "9"}), old, replica_set, running])
    new = pods("Deployment", cpu)
    found = state.apply(new).explain("deploy/web")
    assert found.fixes[0].change == "request 3 cpu instead of 9"
    (fixed,) = found.apply_fix(1).manifests
    assert fixed["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3"}
    assert found.to_dict()["fixes"][0]["patches"][0]["object"]["kind"] == "Deployment"
    assert state.apply(fixed).place().ok
