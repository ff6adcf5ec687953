"""A pod with an ephemeral volume gets its claim, and the volume rules judge it."""

import pytest

from admitting import Loader, deployment, pod, stored, written
from bayplan.engine.engine import Engine
from bayplan.placing import place_pods
from bayplan.rules import profiles

CLASS = "{provisioner: csi.example.com, volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [b]}]}]}"
SCRATCH = {
    "name": "scratch",
    "ephemeral": {
        "volumeClaimTemplate": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    },
}


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


def node(name, zone):
    labels = {"topology.kubernetes.io/zone": zone}
    status = {"allocatable": {"cpu": 4, "memory": "8Gi", "pods": 10}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


SCENE = node("a1", "a"), node("b1", "b"), written("StorageClass", "fast", CLASS, "storage.k8s.io/v1", namespace="")


def placed(found):
    engine = Engine(found.index, profiles.pod_rules())
    return [(one.target, one.message) for one in place_pods.place_all(found.pending, lambda _: engine)]


@pytest.mark.parametrize("made", [pod, deployment, lambda **spec: stored(pod(**spec))])
def test_the_claim_is_created_and_judged(load, made):
    assert [target for target, _ in placed(load(*SCENE, made(volumes=[SCRATCH])))] == ["b1"]


def test_a_claim_of_the_input_is_not_created_again(load):
    bound = written(
        "PersistentVolumeClaim", "web-scratch", "spec: {accessModes: [ReadWriteOnce], storageClassName: other}"
    )
    ((target, _),) = placed(load(*SCENE, pod(volumes=[SCRATCH]), bound))
    assert target == ""  # its class does not exist


def test_without_room_in_the_quota_the_pod_waits(load):
    quota = written("ResourceQuota", "team", "spec: {hard: {persistentvolumeclaims: 0}}")
    found = load(*SCENE, quota, pod(volumes=[SCRATCH]))
    ((target, message),) = placed(found)
    assert target == ""
    assert 'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-scratch"' in message
    assert [note for note in found.notes if 'persistentvolumeclaims "web-scratch" is forbidden: exceeded quota' in note]
