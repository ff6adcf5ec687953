"""Missing pods of controllers are created, named and labelled as their controllers would."""

import json
import re

import pytest

from bayplan.controllers import pod_creation
from bayplan.errors import InputError
from bayplan.reading import cluster, files
from bayplan.reading.files import ReadOptions
from bayplan.wire import kinds

SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]{5}"
HASH = "[bcdfghjklmnpqrstvwxz2456789]+"
UID = "11111111-2222-3333-4444-555555555555"


def controller(kind, name="web", namespace="shop", **spec):
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    labels = {"app": name}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": selector, "template": template} | spec
    if kind == "Job":
        spec.pop("selector")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def pod(name, owner=None, phase="Running", namespace="shop", labels=None, uid="", **more):
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    if owner:
        kind, owner_name = owner.split("/")
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "uid": uid, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | more, "status": {"phase": phase}}


def node(name, labels=None, taints=()):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": [dict(zip(("key", "effect"), taint.split(":"), strict=True)) for taint in taints]},
    }


@pytest.fixture
def expand(tmp_path):
    def expand(*objects):
        path = tmp_path / "a.json"
        path.write_text("\n".join(map(json.dumps, objects)))
        return pod_creation.create_missing_pods(files.load(ReadOptions([str(path)])))

    return expand


def names(made):
    return [item.metadata.name for item in made.pods]


@pytest.mark.parametrize(
    "kind, spec, existing, n_created",
    [
        ("Deployment", {"replicas": 3}, [], 3),
        ("Deployment", {}, [], 1),
        ("Deployment", {"replicas": 0}, [], 0),
        ("Deployment", {"replicas": 3}, [pod("web-abc-x", "ReplicaSet/web-abc")], 2),
        ("Deployment", {"replicas": 3}, [pod("web-abc-x", "ReplicaSet/web-abc", "Failed")], 3),
        ("Deployment", {"replicas": 3}, [pod("other-abc-x", "ReplicaSet/other-abc")], 3),
        ("Deployment", {"replicas": 3}, [pod("x", "ReplicaSet/web-abc", namespace="other")], 3),
        ("Deployment", {"replicas": 3}, [pod("bare", labels={"app": "web"})], 3),  # it is not of a ReplicaSet
        ("Deployment", {"replicas": 3}, [pod("bare", labels={"app": "db"})], 3),
        ("Deployment", {"replicas": 1}, [pod("a", "ReplicaSet/web-a"), pod("b", "ReplicaSet/web-b")], 0),
        ("Deployment", {"replicas": 3, "paused": True}, [], 0),  # a paused Deployment creates no first ReplicaSet
        ("Deployment", {"replicas": 3, "paused": True}, [pod("a", "ReplicaSet/web-a")], 2),
        ("ReplicaSet", {"replicas": 2}, [], 2),
        ("ReplicaSet", {"replicas": 2}, [pod("a", "ReplicaSet/web")], 1),
        ("ReplicaSet", {"replicas": 2}, [pod("a", "ReplicaSet/web", deletionTimestamp="2026-01-01T00:00:00Z")], 2),
        ("ReplicationController", {"replicas": 2}, [pod("bare", labels={"app": "web"})], 1),
        ("StatefulSet", {"replicas": 3}, [pod("web-1", "StatefulSet/web")], 2),
        ("Job", {}, [], 1),
        ("Job", {"parallelism": 3, "completions": 10}, [], 3),
        ("Job", {"parallelism": 3, "completions": 2}, [], 2),
        ("Job", {"completions": 5}, [], 1),
        ("Job", {"parallelism": 3}, [], 3),  # a work queue
        ("Job", {"parallelism": 3}, [pod("a", "Job/web", "Succeeded")], 0),
        ("Job", {"parallelism": 3, "completions": 4}, [pod("a", "Job/web", "Succeeded"), pod("b", "Job/web")], 2),
        ("Job", {"parallelism": 0}, [], 0),
        ("Job", {"suspend": True}, [], 0),
        ("Job", {}, [pod("a", "Job/web", "Succeeded")], 0),
        ("Job", {}, [pod("a", "Job/web", "Failed")], 1),
    ],
)
def test_only_missing_pods_are_created(expand, kind, spec, existing, n_created):
    assert len(expand(controller(kind, **spec), *existing).pods) == n_created


def test_a_deployment_creates_a_replica_set_that_owns_the_pods(expand):
    made = expand(controller("Deployment", replicas=2))
    (replica_set,) = made.replica_sets
    stamp = replica_set.metadata.labels["pod-template-hash"]
    assert re.fullmatch(HASH, stamp)
    assert replica_set.metadata.name == f"web-{stamp}"
    assert replica_set.metadata.owner_references[0].kind == "Deployment"
    assert replica_set.spec.selector.match_labels == {"app": "web", "pod-template-hash": stamp}
    assert len(set(names(made))) == 2
    for found in made.pods:
        assert re.fullmatch(f"web-{stamp}-{SUFFIX}", found.metadata.name)
        assert found.metadata.namespace == "shop"
        assert found.metadata.labels == {"app": "web", "pod-template-hash": stamp}
        (owner,) = found.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller) == ("ReplicaSet", replica_set.metadata.name, True)
        assert (found.kind, found.status.phase, found.spec.node_name) == ("Pod", "Pending", "")


def test_names_are_deterministic_and_unused(expand):
    objects = [controller("Deployment", replicas=50), controller("ReplicaSet", name="other", replicas=50)]
    first = names(expand(*objects))
    assert first == names(expand(*objects))
    assert len(set(first)) == 100
    taken = first[0]
    assert taken not in names(expand(*objects, pod(taken)))


def test_new_pods_belong_to_a_replica_set_known_from_its_pods(expand):
    existing = [pod(f"web-abc-{i}", "ReplicaSet/web-abc", labels={"pod-template-hash": "abc"}) for i in range(2)]
    made = expand(controller("Deployment", replicas=3), *existing)
    assert made.pods[0].metadata.owner_references[0].name == "web-abc"
    assert made.pods[0].metadata.labels["pod-template-hash"] == "abc"


def replica_set(name, owner, replicas, created):
    found = controller("ReplicaSet", name, replicas=replicas)
    found["spec"]["template"]["metadata"]["labels"] = {"app": "web"}
    found["metadata"] |= {
        "creationTimestamp": created,
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": "", "controller": True}
        ],
    }
    return found


def test_replica_sets_in_the_input_replace_their_deployment(expand):
    old, new = replica_set("web-old", "web", 1, "2026-01-01"), replica_set("web-new", "web", 2, "2026-01-02")
    owners = lambda made: sorted(item.metadata.owner_references[0].name for item in made.pods)  # noqa: E731
    assert owners(expand(controller("Deployment", replicas=3), old, new)) == ["web-new", "web-new", "web-old"]
    existing = [pod("a", "ReplicaSet/web-new"), pod("b", "ReplicaSet/web-new"), pod("c", "ReplicaSet/web-old")]
    assert owners(expand(controller("Deployment", replicas=3), old, new, *existing)) == []
    assert owners(expand(controller("Deployment", replicas=4), old, new, *existing)) == ["web-new"]


def test_a_replica_set_without_owner_is_adopted_by_selector(expand):
    mine = controller("ReplicaSet", "web-x", replicas=2)
    mine["spec"]["template"]["metadata"]["labels"] = {"app": "web", "pod-template-hash": "x"}
    assert len(expand(controller("Deployment", replicas=2), mine).pods) == 2


def test_pods_of_an_earlier_controller_of_the_same_name_do_not_count(expand):
    today = controller("ReplicaSet", replicas=1)
    today["metadata"]["uid"] = UID
    assert len(expand(today, pod("a", "ReplicaSet/web", uid="another")).pods) == 1
    assert len(expand(today, pod("a", "ReplicaSet/web", uid=UID)).pods) == 0


def test_a_pod_without_owner_is_adopted_by_one_controller_only(expand):
    two = [controller("ReplicaSet", replicas=1), controller("ReplicationController", replicas=1)]
    assert len(expand(*two, pod("bare", labels={"app": "web"})).pods) == 1


def test_a_terminating_controller_creates_nothing(expand):
    leaving = controller("Deployment", replicas=3)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert names(expand(leaving)) == []


def test_stateful_sets(expand):
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}}
    given = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-web-5", "namespace": "shop"},
    }
    spec = {"replicas": 2, "ordinals": {"start": 5}, "volumeClaimTemplates": [template]}
    made = expand(controller("StatefulSet", **spec), given)
    assert names(made) == ["web-5", "web-6"]
    labels = made.pods[1].metadata.labels
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-6"
    assert labels["apps.kubernetes.io/pod-index"] == "6"
    assert re.fullmatch(f"web-{HASH}", labels["controller-revision-hash"])
    assert made.pods[1].spec.volumes[0].persistent_volume_claim.claim_name == "data-web-6"
    assert [(claim.metadata.name, claim.spec.storage_class_name) for claim in made.claims] == [("data-web-6", "fast")]


def test_jobs(expand):
    job = controller("Job", name="sum", parallelism=2, completions=2)
    job["metadata"]["uid"] = UID
    made = expand(job)
    for found in made.pods:
        assert re.fullmatch(f"sum-{SUFFIX}", found.metadata.name)
        assert found.metadata.labels == {
            "app": "sum",
            "batch.kubernetes.io/job-name": "sum",
            "job-name": "sum",
            "batch.kubernetes.io/controller-uid": UID,
            "controller-uid": UID,
        }


INDEX = "batch.kubernetes.io/job-completion-index"


def test_indexed_jobs(expand):
    job = controller("Job", name="n" * 60, parallelism=3, completions=9, completionMode="Indexed")
    job["status"] = {"succeeded": 4, "completedIndexes": "0,2-4"}
    running = pod("busy", f"Job/{'n' * 60}", labels={INDEX: "5"})
    made = expand(job, running)
    assert [found.metadata.labels[INDEX] for found in made.pods] == ["1", "6"]
    assert made.pods[0].metadata.annotations == {INDEX: "1"}
    assert re.fullmatch(f"n+-1-{SUFFIX}", made.pods[0].metadata.name)
    assert len(made.pods[0].metadata.name) == 63


@pytest.mark.parametrize("condition", ["Complete", "Failed"])
def test_a_finished_job_creates_nothing(expand, condition):
    job = controller("Job")
    job["status"] = {"conditions": [{"type": condition, "status": "True"}]}
    assert names(expand(job)) == []


def test_a_daemon_set_has_one_pod_per_eligible_node(expand):
    nodes = [
        node("plain", {"disk": "ssd"}),
        node("served", {"disk": "ssd"}),
        node("slow", {"disk": "hdd"}),
        node("tainted", {"disk": "ssd"}, ["dedicated:NoSchedule"]),
        node("ill", {"disk": "ssd"}, ["node.kubernetes.io/not-ready:NoExecute"]),
        node("full", {"disk": "ssd"}, ["node.kubernetes.io/disk-pressure:NoSchedule"]),
        node("soft", {"disk": "ssd"}, ["dedicated:PreferNoSchedule"]),
        node("offline", {"disk": "ssd"}, ["node.kubernetes.io/network-unavailable:NoSchedule"]),
    ]
    daemon = controller("DaemonSet")
    daemon["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    serving = pod("web-x", "DaemonSet/web")
    serving["spec"] = {"nodeName": "served"}
    made = expand(*nodes, daemon, serving)
    assert [bound_for(found) for found in made.pods] == ["plain", "ill", "full", "soft"]
    assert all(re.fullmatch(f"web-{SUFFIX}", name) for name in names(made))
    tolerated = [
        (t.key.removeprefix("node.kubernetes.io/"), t.operator, t.effect) for t in made.pods[0].spec.tolerations
    ]
    assert tolerated == [
        ("not-ready", "Exists", "NoExecute"),
        ("unreachable", "Exists", "NoExecute"),
        ("disk-pressure", "Exists", "NoSchedule"),
        ("memory-pressure", "Exists", "NoSchedule"),
        ("pid-pressure", "Exists", "NoSchedule"),
        ("unschedulable", "Exists", "NoSchedule"),
    ]
    daemon["spec"]["template"]["spec"]["hostNetwork"] = True
    assert "offline" in [bound_for(found) for found in expand(*nodes, daemon).pods]


def bound_for(found):
    required = found.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    ((field,),) = [term.match_fields for term in required.node_selector_terms]
    assert (field.key, field.operator) == ("metadata.name", "In")
    return field.values[0]


def test_a_pending_daemon_pod_counts_for_its_node(expand):
    nodes = [node("a"), node("b")]
    made = expand(controller("DaemonSet"), *nodes)
    waiting = pod("web-wait", "DaemonSet/web", "Pending")
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    waiting["spec"] = {"affinity": affinity}
    assert [bound_for(found) for found in made.pods] == ["a", "b"]
    assert [bound_for(found) for found in expand(controller("DaemonSet"), *nodes, waiting).pods] == ["b"]


def test_required_affinity_of_a_daemon_set_chooses_nodes_and_is_replaced(expand):
    daemon = controller("DaemonSet")
    expression = {"key": "gpu", "operator": "Exists"}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    daemon["spec"]["template"]["spec"]["affinity"] = affinity
    made = expand(daemon, node("a"), node("b", {"gpu": "yes"}))
    assert [bound_for(found) for found in made.pods] == ["b"]


def test_pods_that_a_sink_received_still_count(tmp_path):
    path = tmp_path / "a.json"
    objects = [controller("ReplicaSet", replicas=3), pod("a", "ReplicaSet/web"), pod("b", "ReplicaSet/web")]
    path.write_text("\n".join(map(json.dumps, objects)))
    inputs = files.load(ReadOptions([str(path)], sinks={kinds.POD: lambda pod: None}))
    assert len(pod_creation.create_missing_pods(inputs).pods) == 1


@pytest.mark.parametrize("objects, path", [
    ([controller("Deployment", replicas=pod_creation.MAX_CREATED_PODS + 1)], "Deployment shop/web: spec.replicas"),
    ([controller("StatefulSet", replicas=pod_creation.MAX_CREATED_PODS + 1)], "StatefulSet shop/web: spec.replicas"),
    ([controller("ReplicationController", replicas=pod_creation.MAX_CREATED_PODS + 1)], "ReplicationController shop/web: spec.replicas"),
    ([controller("Job", parallelism=pod_creation.MAX_CREATED_PODS + 1)], "Job shop/web: spec.parallelism"),
    ([controller("ReplicaSet", replicas=2), controller("Deployment", "api", replicas=pod_creation.MAX_CREATED_PODS - 1)], "Deployment shop/api: spec.replicas"),
])  # fmt: skip
def test_the_number_of_created_pods_is_limited(objects, path, expand):
    with pytest.raises(InputError) as refused:
        expand(*objects)
    assert path in str(refused.value)
    assert "expected at most 1,000,000 pods to be made from controllers in all, got 1,000,001" in str(refused.value)


def test_progress_is_reported_while_pods_are_created(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(controller("ReplicaSet", replicas=2500)))
    reported = []
    cluster.cluster_of(files.load(ReadOptions([str(path)])), progress=reported.append)
    assert reported == [
        "making pods from controllers: 1000",
        "making pods from controllers: 2000",
        "reading what pods need: 1000 of 2500",
        "reading what pods need: 2000 of 2500",
    ]
