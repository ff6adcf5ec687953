"""The manifests that a fix changes are fetched from the cluster: the owner of the owner of the pod, one by one."""

import json

import yaml
from aiohttp import web

from kube_api.scripted import answer
from kube_api.test_reading_commands import VERSION, run

SPEC = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "6"}}}]}


def listed(kind, api_version, *items):
    return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": {"resourceVersion": "1"}, "items": [*items]}


def metadata(name, kind="", owner="", namespace="shop"):
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}] if kind else []
    return {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1", "ownerReferences": owners}


NODE = {
    "metadata": metadata("n1", namespace=""),
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
}
POD = {"metadata": metadata("web-1-x", "ReplicaSet", "web-1"), "spec": SPEC, "status": {"phase": "Pending"}}
PAGES = {
    "/version": VERSION,
    "/api/v1/nodes": listed("Node", "v1", NODE),
    "/api/v1/pods": listed("Pod", "v1", POD),
    "/api/v1/nodes/n1": NODE,
    "/api/v1/namespaces/shop/pods/web-1-x": POD,
    "/apis/apps/v1/namespaces/shop/replicasets/web-1": {"metadata": metadata("web-1", "Deployment", "web")},
    "/apis/apps/v1/namespaces/shop/deployments/web": {
        "metadata": metadata("web"),
        "spec": {"template": {"spec": SPEC}},
    },
}


async def served(request):
    page = PAGES.get(request.path)
    if page is None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        return web.json_response(status, status=404)
    return answer(page)


async def test_the_controller_of_the_pod_is_named_and_changed(server, kubeconfig_for):
    server.then(*[served] * 200)
    words = ("--kubeconfig", kubeconfig_for(server))
    output, errors, code = await run("explain pod/web-1-x -o json", *words)
    assert code == 1, errors
    (first, second) = json.loads(output)["fixes"]
    named = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}
    assert first["patches"][0]["object"] == named
    assert second["patches"][0]["patch"][0]["op"] == "add"
    output, errors, code = await run("explain pod/web-1-x --apply-fix 1", *words)
    assert code == 0, errors
    changed = yaml.safe_load(output)["spec"]["template"]["spec"]["containers"][0]
    assert changed["resources"]["requests"] == {"cpu": "4"}
    assert {one.method for one in server.requests} == {"GET"}
