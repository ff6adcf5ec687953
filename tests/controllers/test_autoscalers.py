"""HorizontalPodAutoscalers decide how many replicas their targets have."""

import json

import pytest
from click.testing import CliRunner

from admitting import Loader, deployment, written
from bayplan.cli import main
from bayplan.errors import InputError


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


def autoscaler(bounds="minReplicas: 2, maxReplicas: 5", target="Deployment", name="web", version="autoscaling/v2"):
    reference = f"{{apiVersion: apps/v1, kind: {target}, name: {name}}}"
    return written("HorizontalPodAutoscaler", "web", f"spec: {{scaleTargetRef: {reference}, {bounds}}}", version)


@pytest.mark.parametrize("bounds, replicas, load_, n_pods", [
    ("minReplicas: 2, maxReplicas: 5", 3, "current", 3),
    ("minReplicas: 2, maxReplicas: 5", 1, "current", 2),
    ("minReplicas: 2, maxReplicas: 5", 9, "current", 5),
    ("minReplicas: 2, maxReplicas: 5", None, "current", 2),  # what does not say how many has the minimum
    ("maxReplicas: 5", None, "current", 1),
    ("minReplicas: 2, maxReplicas: 5", 3, "min", 2),
    ("minReplicas: 2, maxReplicas: 5", 3, "max", 5),
    ("minReplicas: 2, maxReplicas: 5", None, "max", 5),
    ("minReplicas: 2, maxReplicas: 5", 0, "max", 0),  # 0 switches the autoscaler off
])  # fmt: skip
@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize("version", ["autoscaling/v1", "autoscaling/v2"])
def test_replicas(load, version, kind, bounds, replicas, load_, n_pods):
    target = deployment(replicas=replicas) | {"kind": kind}
    if kind == "StatefulSet":
        target["spec"]["serviceName"] = "web"
    if replicas is None:
        del target["spec"]["replicas"]
    found = load(autoscaler(bounds, kind, version=version), target, load=load_)
    assert len(found.pending) == n_pods
    assert not any("Autoscaler" in note for note in found.notes)


def test_without_its_target_there_is_a_note(load):
    found = load(autoscaler(name="gone"), deployment())
    assert "HorizontalPodAutoscaler shop/web scales Deployment gone, which is not in the input" in found.notes
    assert len(found.pending) == 1


@pytest.mark.parametrize("text, message", [
    ("{maxReplicas: 2}", "spec.scaleTargetRef.kind: Required value"),
    ("{maxReplicas: 2}", "spec.scaleTargetRef.name: Required value"),
    ("{scaleTargetRef: {kind: Deployment, name: web}}", "spec.maxReplicas: Required value: must be set and greater than 0"),
    ("{scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 2, minReplicas: 3}",
     "spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`"),
    ("{scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 2, minReplicas: 0}",
     "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"),
])  # fmt: skip
def test_what_is_wrong_with_it_is_a_fault(load, text, message):
    with pytest.raises(InputError) as caught:
        load(written("HorizontalPodAutoscaler", "web", f"spec: {text}", "autoscaling/v2"))
    assert message in str(caught.value)


def test_the_option_chooses(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("\n".join(map(json.dumps, (autoscaler(), deployment(replicas=3)))))
    run = CliRunner().invoke(main.cli, ["place", "-f", str(path), "--hpa=max", "-o", "name"])
    assert len(run.stdout.splitlines()) == 5
