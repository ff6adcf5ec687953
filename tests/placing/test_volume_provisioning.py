"""Claims that are created with a class that provisions at once: their pods are tried, and not judged."""

import pytest

from admitting import Loader, deployment, pod, stored, written
from rollout_scenes import controller, node, roll_out, stateful

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
