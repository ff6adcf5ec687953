"""Volumes of which it is not known which nodes can use them: pods that need them are tried, and not judged."""

import pytest

from admitting import Loader, deployment, pod, stored, written
from bayplan.engine.engine import Engine
from bayplan.placing import place_cluster
from bayplan.placing.place_cluster import PlacingOptions
from rollout_scenes import RULES, controller, node, pod_of, roll_out, stateful

IMMEDIATE, FIRST_CONSUMER = "Immediate", "WaitForFirstConsumer"
CLAIM = "{accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}"
TEMPLATES = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}}]
USES = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}
DOUBT = "where the volume of its new claim d is provisioned is not known"


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


def storage_class(mode=IMMEDIATE, provisioner="disk.example.com"):
    text = f"{{provisioner: {provisioner}" + (f", volumeBindingMode: {mode}}}" if mode else "}")
    return written("StorageClass", "fast", text, "storage.k8s.io/v1", namespace="")


def claim():
    return written("PersistentVolumeClaim", "d", f"spec: {CLAIM}")


@pytest.mark.parametrize("kind, doubts", [
    (storage_class(), {DOUBT}),
    (storage_class(mode=None), {DOUBT}),  # as the API server's default
    (storage_class(FIRST_CONSUMER), set()),
    (storage_class(provisioner="kubernetes.io/no-provisioner"), set()),
])  # fmt: skip
def test_it_is_not_known_where_a_volume_is_provisioned_at_once(load, kind, doubts):
    found = load.on_state([stored(kind)], claim(), deployment(**USES))
    assert set(found.not_judged.values()) == doubts
    assert found.index.storage.claims["shop/d"].bound == bool(doubts)


def test_a_claim_that_is_pending_already_stays_so(load):
    for change in ([deployment(**USES)], [claim(), deployment(**USES)]):
        found = load.on_state([stored(storage_class()), stored(claim(), phase="Pending")], *change)
        assert (found.not_judged, found.index.storage.claims["shop/d"].bound) == ({}, False)


def test_hand_written_claims_are_created_too(load):
    found = load(storage_class(), claim(), pod(**USES))
    assert found.not_judged == {"shop/web": DOUBT}


def test_so_are_those_of_stateful_sets_and_ephemeral_volumes(load):
    made = controller("StatefulSet", 2, volumeClaimTemplates=TEMPLATES)
    made["metadata"] = {"name": "web", "namespace": "shop"}
    inline = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": TEMPLATES[0]["spec"]}}}
    found = load.on_state([stored(storage_class())], made, pod("one", volumes=[inline]))
    assert set(found.not_judged) == {"shop/web-0", "shop/web-1", "shop/one"}


@pytest.mark.parametrize("cpu, result", [("1", "not judged"), ("64", "stuck")])
def test_a_rollout_that_creates_claims_is_not_judged_unless_it_is_stuck_anyway(cpu, result):
    before = controller("StatefulSet", 0, volumeClaimTemplates=TEMPLATES)
    after = controller("StatefulSet", 1, cpu=cpu, volumeClaimTemplates=TEMPLATES)
    found = roll_out([node("a"), storage_class(), *stateful(before)], after)["web"]
    assert found.result == result


BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
MOUNTS = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]}


def claim_of_web(volume="v"):
    found = written("PersistentVolumeClaim", "data-web-0", f"spec: {CLAIM}")
    found["metadata"]["annotations"] = BOUND
    found["spec"] = found["spec"] | {"volumeName": volume}
    return stored(found, phase="Bound")


def volume_of_web(zone):
    at = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "fast",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [at]}}}  # fmt: skip
    found = written("PersistentVolume", "v", "{}", namespace="")
    return stored(found | {"spec": spec}, phase="Bound")


@pytest.mark.parametrize("of_state, doubt", [
    ([], "its claim data-web-0 is not in the input"),
    ([claim_of_web()], "the volume of its claim data-web-0 is not in the input"),
    ([claim_of_web(), volume_of_web("a")], ""),
])  # fmt: skip
def test_a_claim_that_a_running_pod_uses_is_bound_although_the_state_lacks_it(load, of_state, doubt):
    before = controller("StatefulSet", 1, volumeClaimTemplates=TEMPLATES)
    running = pod_of(before, "web-0", "a", labels={"controller-revision-hash": "web-old"})
    running["spec"] = running["spec"] | MOUNTS
    nodes = [node(name, labels={"zone": name}) for name in "ab"]
    state = [*nodes, stored(storage_class(FIRST_CONSUMER)), before, running, *of_state]
    found = load.on_state(state, controller("StatefulSet", 1, image="web:2", volumeClaimTemplates=TEMPLATES))
    result = place_cluster.place(found, lambda _: Engine(found.index, RULES), PlacingOptions())
    assert result.rollouts[0].why == doubt
    assert [one.target for one in result.placements] == [""] if doubt else ["a"]


def test_so_is_one_of_another_workload(load):
    """The scheduler would say that the claim does not exist; a running pod shows that it does."""
    runs = stored(pod("old", node="a", **USES), phase="Running")
    assert load.on_state([runs], pod("new", **USES)).not_judged == {"shop/new": "its claim d is not in the input"}
    assert load.on_state([node("a")], pod("new", **USES)).not_judged == {}
    assert load(runs, pod("new", **USES)).not_judged == {}  # what is in the files is all that there is


@pytest.mark.parametrize("classes, named, doubts", [
    ([], "storageClassName: fast", True),
    ([], "volumeMode: Filesystem", True),  # of the default class, if there is one
    ([], "storageClassName: ''", False),
    ([storage_class(FIRST_CONSUMER)], "storageClassName: slow", False),  # there is none of that name
])  # fmt: skip
def test_a_state_without_storage_classes_lacks_them(load, classes, named, doubts):
    text = f"spec: {{accessModes: [ReadWriteOnce], {named}, resources: {{requests: {{storage: 1Gi}}}}}}"
    new = [written("PersistentVolumeClaim", "d", text), pod(**USES)]
    expected = {"shop/web": "the storage class of its new claim d is not in the input"} if doubts else {}
    assert load.on_state([node("a"), *map(stored, classes)], *new).not_judged == expected
    assert load(*new).not_judged == {}
