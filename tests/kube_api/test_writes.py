import pytest

from bayplan.kube_api import errors, writes
from bayplan.kube_api.resources import PODS, Resource
from kube_api.scripted import answer, connected, error_response

CLAIMS = Resource("", "v1", "persistentvolumeclaims")
NODES = Resource("", "v1", "nodes", namespaced=False)


@pytest.fixture
async def write(server, kubeconfig_for):
    """A function that makes one write and returns the request that arrived."""
    async with connected(kubeconfig_for(server)) as connection:

        async def write(function, *args, **settings):
            server.then(answer({"kind": "Done"}, 201))
            await function(connection, *args, **settings)
            return server.requests[-1]

        yield write


async def test_bind(write):
    asked = await write(writes.bind, "shop", "web", "u-1", "n1")
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/shop/pods/web/binding")
    assert asked.json == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": "shop", "name": "web", "uid": "u-1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


async def test_evict(write):
    asked = await write(writes.evict, "shop", "web", "u-1", grace_period_seconds=0)
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/shop/pods/web/eviction")
    assert asked.json["apiVersion"] == "policy/v1"
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u-1"}, "gracePeriodSeconds": 0}
    assert asked.json["deleteOptions"] == options


async def test_an_eviction_that_a_budget_forbids_is_not_tried_again(server, kubeconfig_for):
    server.then(error_response(429, "TooManyRequests", "would violate the pod's disruption budget", Retry_After=10))
    async with connected(kubeconfig_for(server)) as connection:
        with pytest.raises(errors.TooManyRequestsError, match="disruption budget"):
            await writes.evict(connection, "shop", "web", "u-1")
    assert len(server.requests) == 1


@pytest.mark.parametrize("settings, preconditions", [
    ({}, None),
    ({"uid": "u"}, {"uid": "u"}),
    ({"uid": "u", "resource_version": "7"}, {"uid": "u", "resourceVersion": "7"}),
])  # fmt: skip
async def test_delete(write, settings, preconditions):
    asked = await write(writes.delete, PODS, "shop", "web", **settings)
    assert (asked.method, asked.path) == ("DELETE", "/api/v1/namespaces/shop/pods/web")
    assert asked.json.get("preconditions") == preconditions
    assert "gracePeriodSeconds" not in asked.json


@pytest.mark.parametrize("version, path", [
    ("events.k8s.io/v1", "/apis/events.k8s.io/v1/namespaces/shop/events"),
    ("v1", "/api/v1/namespaces/shop/events"),
])  # fmt: skip
async def test_events(write, version, path):
    asked = await write(writes.create_event, "shop", {"apiVersion": version, "kind": "Event", "note": "x"})
    assert (asked.method, asked.path) == ("POST", path)
    assert asked.json["note"] == "x"


async def test_patches(write):
    asked = await write(writes.patch, CLAIMS, "shop", "data", {"metadata": {"annotations": {"a": "b"}}})
    assert (asked.method, asked.headers["Content-Type"]) == ("PATCH", "application/merge-patch+json")
    assert asked.path == "/api/v1/namespaces/shop/persistentvolumeclaims/data"
    status = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    asked = await write(writes.patch_status, PODS, "shop", "web", {"status": status})
    assert asked.path == "/api/v1/namespaces/shop/pods/web/status"
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.json == {"status": status}


async def test_replace(write):
    asked = await write(writes.replace, NODES, None, "n1", {"kind": "Node"})
    assert (asked.method, asked.json) == ("PUT", {"kind": "Node"})
