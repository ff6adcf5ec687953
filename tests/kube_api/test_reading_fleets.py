"""A fleet that is read once from its API server: also the labels of the templates that bindings name."""

import json

import pytest
from aiohttp import web

from kube_api.scripted import answer
from kube_api.test_reading_commands import VERSION, run

FLINK = "flink.apache.org/v1beta1"
SERVED = [{"groupVersion": FLINK, "resources": [{"kind": "FlinkDeployment", "name": "flinkdeployments"}]}]
TERMS = {
    "workloadAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"app": "pipe"}}}]
    }
}


def listed(kind, api_version, *items):
    return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": {"resourceVersion": "1"}, "items": [*items]}


def binding(name, clusters):
    return {
        "metadata": {
            "name": f"{name}-flinkdeployment", "namespace": "data", "uid": name, "resourceVersion": "1",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "p"},
            "annotations": {"bayplan.io/placement": json.dumps(TERMS)},
        },
        "spec": {
            "resource": {"apiVersion": FLINK, "kind": "FlinkDeployment", "namespace": "data", "name": name},
            "placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]},
            "clusters": [{"name": cluster} for cluster in clusters],
        },
    }  # fmt: skip


def template(name):
    return {"metadata": {"name": name, "namespace": "data", "uid": name, "labels": {"app": "pipe"}}}


CLUSTERS = [{"metadata": {"name": name}, "spec": {}, "status": {"apiEnablements": SERVED}} for name in ("m1", "m2")]
PAGES = {
    "/version": VERSION,
    "/apis/cluster.karmada.io/v1alpha1/clusters": listed("Cluster", "cluster.karmada.io/v1alpha1", *CLUSTERS),
    "/apis/work.karmada.io/v1alpha2/resourcebindings": listed(
        "ResourceBinding", "work.karmada.io/v1alpha2", binding("a", ["m1"]), binding("b", [])
    ),
    f"/apis/{FLINK}": {
        "kind": "APIResourceList",
        "resources": [
            {"name": "flinkdeployments/status", "kind": "FlinkDeployment", "namespaced": True},
            {"name": "flinkdeployments", "kind": "FlinkDeployment", "namespaced": True},
        ],
    },
    f"/apis/{FLINK}/flinkdeployments": listed("PartialObjectMetadata", "meta.k8s.io/v1", template("a"), template("b")),
}
EMPTY = {"nodes": "Node", "pods": "Pod"}


@pytest.fixture
def fleet(server):
    """A Karmada API server with two pipelines, one of them scheduled; `refused` are paths that may not be read."""
    refused = set()

    async def respond(request):
        if request.path in refused:
            return answer({"kind": "Status", "message": "forbidden", "reason": "Forbidden", "code": 403}, 403)
        if request.path in PAGES:
            return answer(PAGES[request.path])
        if "karmada.io" not in request.path or request.path.endswith(("bindings", "policies")):
            return answer({"metadata": {}, "items": []})
        return web.json_response({"kind": "Status", "message": "not found", "code": 404}, status=404)

    server.then(*[respond] * 200)
    server.refused = refused
    return server


async def test_the_labels_of_templates_are_read(fleet, kubeconfig_for):
    output, errors, code = await run("place -o json", "--kubeconfig", kubeconfig_for(fleet))
    assert code == 0, errors
    clusters = {one["name"]: [c["name"] for c in one["clusters"]] for one in json.loads(output)["items"]}
    assert clusters == {"a": ["m1"], "b": ["m2"]}
    (asked,) = [one for one in fleet.requests if one.path.endswith("/flinkdeployments")]
    assert "as=PartialObjectMetadataList" in asked.headers["Accept"]
    assert any(one.path.endswith("/workloadrebalancers") for one in fleet.requests)


@pytest.mark.parametrize("path", [f"/apis/{FLINK}/flinkdeployments", f"/apis/{FLINK}"])
async def test_a_kind_that_may_not_be_listed_is_named(path, fleet, kubeconfig_for):
    fleet.refused.add(path)
    output, errors, code = await run("place -o json", "--kubeconfig", kubeconfig_for(fleet))
    assert f"note: labels of FlinkDeployment ({FLINK}) are not known: " in errors
    items = {one["name"]: one for one in json.loads(output)["items"]}
    assert not items["b"]["placed"]
    assert "are not known" in items["b"]["message"]
    assert code == 1
