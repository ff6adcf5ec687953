"""Objects that cannot be read are set aside: one line in the log, nothing else stops, and no node looks free for it."""

import copy
import json
import random

import pytest

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.kube_api.decoding import Decoding, Key, Undecodable
from bayplan.model.semantics import UPSTREAM
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.queueing.scheduling_queue import SchedulingQueue
from bayplan.validating import affinity
from bayplan.watching import resources
from bayplan.watching.cluster_state import ClusterState
from bayplan.watching.resources import ResourceHandler

HOST = "kubernetes.io/hostname"


class Watching:
    """Every watched resource, fed with JSON as an API server sends it."""

    def __init__(self):
        index = PlacementIndex(UPSTREAM)
        _ = index.pod_table, index.attachments  # as a live scheduler keeps them
        queue = SchedulingQueue(index, None, lambda: 0.0, on_pending=lambda: None)
        self.state = ClusterState(index, queue, DisruptionBudgets(), is_responsible=lambda name: name == "bayplan")
        self.n_unreadable = 0
        watched = (*resources.scheduling_resources(self.state), resources.quota_resource(self.state))
        self.handlers = {one.resource.plural: ResourceHandler(one, lambda: None, self._count) for one in watched}
        self._decodings = {one.resource.plural: Decoding(one.item_type) for one in watched}

    def _count(self, _resource):
        self.n_unreadable += 1

    def put(self, plural, written):
        (found,) = [e.object for e in self._decodings[plural].events("WATCH", line(written))]
        handler = self.handlers[plural]
        (handler.undecodable if isinstance(found, Undecodable) else handler.upsert)(found)

    def delete(self, plural, name, namespace="", uid=""):
        self.handlers[plural].delete(Key(namespace, name), uid)

    @property
    def index(self):
        return self.state.index

    def has_room(self, node):
        """Whether a node would take one more pod."""
        target = self.index.slots.at(self.index.slots.by_name[node])
        return not target.unschedulable and dict(target.allocatable).get("pods", 0) > 0


@pytest.fixture
def watching():
    return Watching()


def line(written):
    return json.dumps({"type": "MODIFIED", "object": written}).encode() + b"\n"


def node(name="a", **status):
    labels = {HOST: name, "zone": "z"}
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": amounts, **status}}


def pod(name="web", node_name="", uid="1", requests=None, start=None, **spec):
    meta = {"namespace": "shop", "name": name, "uid": uid, "labels": {"app": "web"}}
    resources = {"requests": requests or {"cpu": "1"}}
    spec = {"schedulerName": "bayplan", "containers": [{"name": "main", "resources": resources}], **spec}
    if node_name:
        spec["nodeName"] = node_name
    return {
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Running" if node_name else "Pending", "startTime": start},
    }


KEY = "shop/web"
NO_QUANTITY = {"cpu": "much"}


@pytest.mark.parametrize("start", [
    "2262-04-12T00:00:00Z",
    "9999-12-31T23:59:59-12:00",
    "10000-01-01T11:59:59Z",
    "0001-01-01T00:00:00Z",
    "-0001-12-31T10:00:00Z",
])  # fmt: skip
def test_a_pod_that_started_at_any_time_is_counted(watching, start):
    watching.put("nodes", node())
    watching.put("pods", pod(node_name="a", start=start))
    watching.put("pods", pod(node_name="a", start="2026-01-01T00:00:00Z"))
    watching.put("pods", pod(node_name="a", start=start))
    assert KEY in watching.index.records
    assert watching.n_unreadable == 0
    assert watching.has_room("a")


UNREADABLE_PODS = {
    "a quantity": {"requests": NO_QUANTITY},
    "a negative quantity": {"requests": {"cpu": "-1e90"}},
    "a time": {"start": "yesterday"},
    "a type": {"priority": "high"},
    "a shape": {"containers": {"name": "main"}},
}


@pytest.mark.parametrize("fault", UNREADABLE_PODS.values(), ids=UNREADABLE_PODS)
def test_an_unknown_pod_that_cannot_be_read_closes_its_node_until_it_is_gone(watching, fault):
    watching.put("nodes", node("a"))
    watching.put("nodes", node("b"))
    watching.put("pods", pod(node_name="a", **fault))
    assert watching.n_unreadable == 1
    assert not watching.has_room("a")
    assert watching.has_room("b")
    watching.put("nodes", node("a"))  # as kubelets report all the time
    assert not watching.has_room("a")
    watching.delete("pods", "web", "shop", "1")
    assert watching.has_room("a")


ANNOTATIONS = {
    "hexadecimal": {"bayplan.io/affinity": "podAffinity: 0x" + "f" * 4000},
    "sexagesimal": {"bayplan.io/group": "g", "bayplan.io/group-affinity": "groupAffinity: " + "1:" * 3500 + "1"},
    "null": {"bayplan.io/affinity": "podAntiAffinity: {requiredDuringSchedulingRequiredDuringExecution: [null]}"},
}


@pytest.mark.parametrize("annotations", ANNOTATIONS.values(), ids=ANNOTATIONS)
def test_annotations_of_a_running_pod_close_no_node(watching, annotations):
    watching.put("nodes", node("a"))
    written = pod(node_name="a", requests={"cpu": "1"})
    written["metadata"]["annotations"] = annotations
    watching.put("pods", written)
    assert watching.n_unreadable == 0
    assert watching.has_room("a")
    assert "shop/web" in watching.index.records


def test_a_bug_in_reading_annotations_closes_no_node(watching, monkeypatch, caplog):
    monkeypatch.setattr(affinity, "validate_annotation", lambda *_: 1 / 0)
    watching.put("nodes", node("a"))
    written = pod(node_name="a", requests={"cpu": "1"})
    written["metadata"]["annotations"] = {"bayplan.io/affinity": "podAffinity: {}  # not remembered"}
    watching.put("pods", written)
    assert watching.has_room("a")
    assert "shop/web" in watching.index.records
    assert "unreadable annotations" in caplog.text


def test_a_node_that_comes_after_its_unreadable_pod_is_closed_too(watching):
    watching.put("pods", pod(node_name="a", requests=NO_QUANTITY))
    watching.put("nodes", node())
    assert not watching.has_room("a")
    watching.put("pods", pod(node_name="a"))
    assert watching.has_room("a")
    assert KEY in watching.index.records


def test_a_finished_pod_that_cannot_be_read_closes_nothing(watching):
    watching.put("nodes", node())
    finished = pod(node_name="a", requests=NO_QUANTITY, priority="high")
    finished["status"]["phase"] = "Failed"
    watching.put("pods", finished)
    assert watching.has_room("a")


@pytest.mark.parametrize("fault", UNREADABLE_PODS.values(), ids=UNREADABLE_PODS)
def test_a_pod_that_is_counted_stays_counted_when_it_cannot_be_read_any_more(watching, fault):
    watching.put("nodes", node())
    watching.put("pods", pod(node_name="a"))
    watching.put("pods", pod(node_name="a", **fault))
    assert watching.index.records[KEY].shares == (("a", 1),)
    assert watching.has_room("a")
    watching.delete("pods", "web", "shop", "1")
    assert KEY not in watching.index.records


def test_a_pod_of_another_uid_that_cannot_be_read_takes_the_place_of_the_one_before(watching):
    watching.put("nodes", node("a"))
    watching.put("nodes", node("b"))
    watching.put("pods", pod(node_name="a"))
    watching.put("pods", pod(node_name="b", uid="2", requests=NO_QUANTITY))
    assert KEY not in watching.index.records
    assert watching.has_room("a")
    assert not watching.has_room("b")


@pytest.mark.parametrize("fault", [fault for fault in UNREADABLE_PODS.values() if "start" not in fault])
def test_a_pending_pod_that_cannot_be_read_is_not_scheduled_until_it_can(watching, fault):
    watching.put("pods", pod())
    watching.put("pods", pod(**fault))
    assert KEY not in watching.state.queue.pods
    watching.put("pods", pod())
    assert KEY in watching.state.queue.pods


def test_a_pod_that_is_being_bound_stays_counted(watching):
    watching.put("nodes", node())
    watching.put("pods", pod())
    pending = watching.state.queue.pop()
    watching.state.assume(pending, watching.index.slots.by_name["a"])
    watching.put("pods", pod(requests=NO_QUANTITY))
    assert KEY in watching.index.records
    watching.put("pods", pod(node_name="a", requests=NO_QUANTITY))
    assert KEY in watching.index.records
    assert KEY not in watching.state.assumed
    assert watching.has_room("a")


UNREADABLE_NODES = {
    "a quantity": node(allocatable={"cpu": "much"}),
    "a negative quantity": node(allocatable={"cpu": "-1e90", "pods": "110"}),
    "a type": {**node(), "spec": {"unschedulable": "maybe"}},
    "a shape": {**node(), "status": []},
}


@pytest.mark.parametrize("written", UNREADABLE_NODES.values(), ids=UNREADABLE_NODES)
def test_a_node_that_cannot_be_read_takes_no_more_pods_and_keeps_those_it_has(watching, written):
    watching.put("nodes", node())
    watching.put("pods", pod(node_name="a"))
    watching.put("nodes", written)
    assert watching.n_unreadable == 1
    assert not watching.has_room("a")
    assert watching.index.slots.at(0).labels["zone"] == "z"
    assert set(watching.index.workloads_on(0)) == {KEY}
    watching.put("nodes", node())
    assert watching.has_room("a")
    assert len(watching.state.nodes_set_aside) == 0


def test_a_node_that_could_never_be_read_is_not_there(watching):
    watching.put("nodes", UNREADABLE_NODES["a type"])
    assert "a" not in watching.index.slots.by_name
    watching.delete("nodes", "a")
    watching.put("nodes", node())
    assert watching.has_room("a")


# Whatever is wrong in an object

SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x"]}]}
TERM = {"labelSelector": SELECTOR, "topologyKey": HOST, "namespaces": ["shop"], "namespaceSelector": SELECTOR}
NODE_TERM = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["a"]}]}
META = {
    "name": "x",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "7",
    "labels": {"app": "web"},
    "annotations": {"a": "b"},
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": True}],
}
CONTAINER = {
    "name": "main",
    "image": "example.com/web:1",
    "resources": {"requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}},
    "ports": [{"hostPort": 80, "protocol": "TCP", "hostIP": "10.0.0.1"}],
    "restartPolicy": "Always",
}
WHOLE = {
    "pods": {
        "spec": {
            "schedulerName": "bayplan",
            "nodeName": "a",
            "containers": [CONTAINER],
            "initContainers": [CONTAINER],
            "overhead": {"cpu": "1"},
            "nodeSelector": {"a": "b"},
            "priority": 5,
            "priorityClassName": "high",
            "preemptionPolicy": "Never",
            "schedulingGates": [{"name": "g"}],
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
            ],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODE_TERM]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": NODE_TERM}],
                },
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [TERM],
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}],
                },
            },
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "nominatedNodeName": "a",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "x"}],
            "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}}],
        },
    },
    "nodes": {
        "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "unschedulable": False},
        "status": {"allocatable": {"cpu": "4", "pods": "9"}, "images": [{"names": ["i:1"], "sizeBytes": 5}]},
    },
    "namespaces": {},
    "storageclasses": {
        "provisioner": "p",
        "volumeBindingMode": "Immediate",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["z"]}]}],
    },
    "csinodes": {"spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}]}},
    "volumeattachments": {"spec": {"attacher": "d", "nodeName": "a", "source": {"persistentVolumeName": "v"}}},
    "csidrivers": {"spec": {"storageCapacity": True}},
    "csistoragecapacities": {"storageClassName": "s", "capacity": "1Gi", "nodeTopology": SELECTOR},
    "persistentvolumes": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "shop", "name": "c", "uid": "u"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [NODE_TERM]}},
            "csi": {"driver": "d", "volumeHandle": "h"},
        },
        "status": {"phase": "Bound"},
    },
    "persistentvolumeclaims": {
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v", "selector": SELECTOR},
        "status": {"phase": "Bound"},
    },
    "poddisruptionbudgets": {
        "spec": {"selector": SELECTOR, "minAvailable": 1, "maxUnavailable": "50%"},
        "status": {"expectedPods": 3, "disruptionsAllowed": 1, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    },
    "services": {"spec": {"selector": {"app": "web"}}},
    "replicasets": {"spec": {"selector": SELECTOR}},
    "statefulsets": {"spec": {"selector": SELECTOR}},
    "replicationcontrollers": {"spec": {"selector": {"app": "web"}}},
    "configmaps": {"data": {"shop": "{cpu: 64}", "_default": "{cpu: 1}"}},
}
HOSTILE = [
    None, True, 0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 1.5, 1e308, "", "x", "a" * 5000, "\x00", "\ud83d\ude00",
    [], {}, [[]], [None], {"": ""}, {"a": None}, {"cpu": "1e150"}, {"cpu": "-1e90"}, {"cpu": "1e99", "memory": "1e99"},
    {"pods": "-99999999999999999999"}, "2262-04-12T00:00:00Z", "10000-01-01T00:00:00Z", "9999-99-99T99:99:99Z",
    "1e150", "1e99", "-1e99", "9" * 400, "0x10", "In", "Gt", "NaN", ["a"] * 300,
]  # fmt: skip


def paths(written, at=()):
    yield at
    for key, value in written.items() if isinstance(written, dict) else enumerate(written):
        if isinstance(value, dict | list):
            yield from paths(value, (*at, key))
        else:
            yield (*at, key)


def mutated(plural, random):
    written = copy.deepcopy({"metadata": META, **WHOLE[plural]})
    for _ in range(random.choice((1, 1, 2))):
        path = random.choice([path for path in paths(written) if path])
        parent = written
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = copy.deepcopy(random.choice(HOSTILE))
    return written


def test_every_watched_resource_is_fuzzed(watching):
    assert set(WHOLE) == set(watching.handlers)


@pytest.mark.parametrize("plural", WHOLE)
def test_no_object_whatever_it_contains_stops_anything(watching, plural):
    chance = random.Random(plural)
    watching.put("nodes", node())
    for _ in range(400):
        written = mutated(plural, chance)
        watching.put(plural, written)
        watching.put(plural, {"metadata": META, **WHOLE[plural]})  # what can be read is read again
    assert watching.n_unreadable
    for key in {*watching.index.records, *watching.state.nodes_set_aside.pods}:
        namespace, _, name = key.partition("/")
        watching.delete("pods", name, namespace)
    watching.delete(plural, "x", "shop", "u")
    assert not watching.index.records
    assert not watching.index.capacity.requested.any()
    assert watching.has_room("a")
