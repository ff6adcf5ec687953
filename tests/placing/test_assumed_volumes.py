"""The claims of pods that are placed take their volumes, so that later pods find only those that are left."""

import pytest

from admitting import Loader, container, deployment, pod, stored, written
from bayplan.engine.engine import Engine
from bayplan.model.terms import REGION, ZONE
from bayplan.placing import place_cluster
from bayplan.placing.place_cluster import PlacingOptions
from rollout_scenes import RULES, controller, node

DRIVER = "disk.example.com"
ONE_CPU = [container("{requests: {cpu: 1}}")]
HALF_NODE = [container("{requests: {cpu: 3}}")]  # of a node with 4


@pytest.fixture
def place(tmp_path):
    def placed(state, *change):
        found = Loader(tmp_path).on_state([one if "uid" in one["metadata"] else stored(one) for one in state], *change)
        return place_cluster.place(found, lambda _: Engine(found.index, RULES), PlacingOptions())

    return placed


def nodes(**zones):
    return [node(name, labels={ZONE: zone, "host": name}) for name, zone in zones.items()]


def storage_class(provisioner=DRIVER):
    text = f"{{provisioner: {provisioner}, volumeBindingMode: WaitForFirstConsumer}}"
    return written("StorageClass", "fast", text, "storage.k8s.io/v1", namespace="")


def csi_node(name, keys):
    spec = {"drivers": [{"name": DRIVER, "nodeID": name} | ({"topologyKeys": keys} if keys is not None else {})]}
    return written("CSINode", name, "{}", "storage.k8s.io/v1", namespace="") | {"spec": spec}


def local_volume(name, host):
    at = {"matchExpressions": [{"key": "host", "operator": "In", "values": [host]}]}
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "fast",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [at]}}}  # fmt: skip
    return written("PersistentVolume", name, "{}", namespace="") | {"spec": spec}


def claim(name="d", **metadata):
    text = "spec: {accessModes: [ReadWriteMany], storageClassName: fast, resources: {requests: {storage: 1Gi}}}"
    found = written("PersistentVolumeClaim", name, text)
    return found | {"metadata": found["metadata"] | metadata}


def using(*claims):
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]}


def targets(found):
    return sorted(one.target for one in found.placements)


LOCAL = [storage_class("kubernetes.io/no-provisioner"), local_volume("va", "a"), local_volume("vb", "b")]
TEMPLATES = [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                                                  "resources": {"requests": {"storage": "1Gi"}}}}]  # fmt: skip


def test_a_volume_is_used_once(place):
    found = place([*nodes(a="1", b="2", c="3"), *LOCAL], controller("StatefulSet", 3, volumeClaimTemplates=TEMPLATES))
    assert targets(found) == ["", "a", "b"]
    (left,) = (one for one in found.placements if not one.target)
    assert left.message == "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind."


def test_pods_of_one_claim_follow_its_volume(place):
    """Also if it is one that existed before: the second pod must reach it."""
    shared = [local_volume("va", "a") | {"spec": local_volume("va", "a")["spec"] | {"accessModes": ["ReadWriteMany"]}}]
    found = place([*nodes(a="1", b="2"), LOCAL[0], *shared], claim(), deployment(replicas=3, **using("d")))
    assert targets(found) == ["a", "a", "a"]


def test_while_a_volume_is_provisioned_only_the_selected_node_can_use_it(place):
    keys = [csi_node(name, [ZONE]) for name in "abc"]
    found = place([*nodes(a="1", b="1", c="2"), storage_class(), *keys], claim(), deployment(replicas=3, **using("d")))
    assert len(set(targets(found))) == 1


@pytest.mark.parametrize("keys, expected", [
    ([ZONE], ["", "", "a", "b"]),  # c is in another zone
    ([ZONE, "host"], ["", "", "", "a"]),
    ([ZONE, REGION], ["", "", "a", "b"]),  # a key that the node lacks says nothing
    ([], ["", "a", "b", "c"]),  # no topology: every node reaches it
    (None, ["", "a", "b", "c"]),
])  # fmt: skip
def test_the_volume_is_reached_from_the_nodes_of_its_topology(keys, expected, place):
    registered = [csi_node(name, keys) for name in "abc"]
    tied = {"nodeSelector": {"host": "a"}, "containers": HALF_NODE}
    found = place(
        [*nodes(a="1", b="1", c="2"), storage_class(), *registered],
        claim(),
        pod("first", **using("d"), **tied),
        deployment("web", 3, **using("d"), containers=HALF_NODE),
    )
    assert targets(found) == expected


@pytest.mark.parametrize("registered", [[], [csi_node("b", [ZONE])]])
def test_without_the_topology_of_the_driver_other_nodes_are_not_judged(registered, place):
    found = place(
        [*nodes(a="1", b="1"), storage_class(), *registered],
        claim(),
        pod("first", **using("d"), nodeSelector={"host": "a"}, containers=ONE_CPU),
        pod("beside", **using("d"), nodeSelector={"host": "a"}, containers=ONE_CPU),
        pod("elsewhere", **using("d"), nodeSelector={"host": "b"}, containers=ONE_CPU),
    )
    assert {one.workload.name: one.target for one in found.placements} == {"first": "a", "beside": "a", "elsewhere": ""}
    (message,) = (one.not_judged for one in found.placements if one.not_judged)
    assert message == "whether other nodes than a can use the new volume of its claim d is not known"


def test_so_is_a_volume_that_a_rollout_takes(place):
    before = controller("StatefulSet", 0, volumeClaimTemplates=TEMPLATES)
    found = place(
        [*nodes(a="1", b="2"), *LOCAL[:2], before],
        controller("StatefulSet", 2, volumeClaimTemplates=TEMPLATES),
    )
    assert (targets(found), found.rollouts[0].result) == (["", "a"], "stuck")


def test_members_of_a_group_that_take_the_same_volume_are_not_judged(place):
    member = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    group = written("PodGroup", "g", "spec: {minMember: 2}", "scheduling.x-k8s.io/v1alpha1")
    pods = [pod(name, **using(name)) for name in ("x", "y")]
    for one in pods:
        one["metadata"] |= member
    claims = [claim(name) | {"spec": claim()["spec"] | {"accessModes": ["ReadWriteOnce"]}} for name in ("x", "y")]
    found = place([*nodes(a="1", b="2"), *LOCAL[:2]], group, *claims, *pods)
    assert sorted((one.target, one.not_judged) for one in found.placements) == [
        ("", "whether there are enough volumes for its group is not known: none is left for its claim y"),
        ("a", ""),
    ]


DRIVER_OBJECT = written("CSIDriver", DRIVER, "{}", "storage.k8s.io/v1", namespace="")


@pytest.mark.parametrize("mode, known, attaches, doubt", [
    ("ReadWriteOnce", True, True, "its volume of claim shop/d is attached to a for shop/first, and only one node may use it"),
    ("ReadWriteOnce", True, False, ""),
    ("ReadWriteOnce", False, True,
     f"its volume of claim shop/d may have to be detached first (CSIDriver {DRIVER} is not in the input): shop/first uses it on a"),
    ("ReadWriteMany", True, True, ""),
])  # fmt: skip
def test_a_pod_that_cannot_have_its_volume_yet_is_not_judged(mode, known, attaches, doubt, place):
    """The scheduler places it, and there it waits; only the first pod has the volume."""
    shared = claim() | {"spec": claim()["spec"] | {"accessModes": [mode]}}
    driver = DRIVER_OBJECT | {"spec": {"attachRequired": attaches}}
    state = [*nodes(a="1", b="1", c="1"), storage_class(), *(csi_node(name, [ZONE]) for name in "abc")]
    found = place(
        [*state, driver] if known else state,
        shared,
        pod("first", **using("d"), nodeSelector={"host": "a"}),
        pod("second", **using("d"), nodeSelector={"host": "b"}),
        pod("third", **using("d"), nodeSelector={"host": "a"}),
    )
    doubts = {one.workload.name: one.not_judged for one in found.placements}
    assert doubts == {"first": "", "second": doubt, "third": ""}
