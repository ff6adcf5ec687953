"""In a question, a field that is null is absent, as for Kubernetes' decoders."""

import json

import pytest

SERVED = [{"groupVersion": "v1", "resources": [{"kind": "ConfigMap"}]}]
QUESTION = {
    "name": "q",
    "clusters": [
        {"metadata": {"name": "a", "labels": {"k": ""}}, "status": {"apiEnablements": SERVED}},
        {"metadata": {"name": "b"}, "status": {"apiEnablements": SERVED}},
    ],
    "bindings": [],
    "binding": {
        "metadata": {"name": "c-configmap", "namespace": "d"},
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "d", "name": "c"}, "placement": {}},
    },
}


def with_null(path, question=QUESTION):
    """The question with null at a path, of which the last parts may be new."""
    found = json.loads(json.dumps(question))
    here = found
    *way, last = path.split(".")
    for step in way:
        here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
    here[last] = None
    return found


def clusters_of(run, question):
    result = run("decide", "fleet", given=json.dumps(question))
    return [one["name"] for one in json.loads(result.stdout)["clusters"]]


@pytest.mark.parametrize("path", [
    "clusters.0.spec", "clusters.0.spec.provider", "clusters.0.spec.zones", "clusters.0.metadata.annotations",
    "clusters.0.status.resourceSummary", "binding.status", "binding.metadata.uid", "binding.spec.replicas",
    "binding.spec.clusters", "binding.spec.gracefulEvictionTasks", "binding.spec.placement.clusterAffinity",
    "binding.spec.placement.clusterAffinities", "binding.spec.placement.replicaScheduling", "bindings", "options",
    "binding.spec.placement.clusterAffinity.labelSelector", "binding.spec.placement.clusterAffinity.clusterNames",
])  # fmt: skip
def test_null_is_absent(path, run):
    assert clusters_of(run, with_null(path)) == ["a", "b"]


def test_null_in_a_map_of_labels_is_an_empty_text(run):
    assert clusters_of(run, with_null("binding.spec.placement.clusterAffinity.labelSelector.matchLabels.k")) == ["a"]


def test_other_types_are_reported_and_nulls_beside_them_are_not(run):
    question = with_null("clusters.0.spec.provider")
    question["clusters"][1]["spec"] = {"zones": "z"}
    result = run("decide", "fleet", given=json.dumps(question))
    assert json.loads(result.stdout)["error"] == 'clusters[1].spec.zones: expected a list, got the string "z"'
    assert result.exit_code == 2
