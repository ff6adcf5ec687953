"""The test server: a real API server that can be stopped and restored on demand."""

import contextlib

import aiohttp
import pytest

from live.admin import Admin, ApiError, wait_for
from live.kube_server import Options
from live.kubectl import kubectl
from live.objects import pod
from live.processes import StartError


async def test_it_has_the_expected_version(admin):
    assert (await admin.request("GET", "/version"))["gitVersion"] == "v1.36.4"


async def test_a_pod_bound_through_the_api_is_bound(admin, namespace):
    await admin.create_nodes(1)
    await admin.create_pod("web", namespace)
    assert await admin.node_of("web", namespace) == ""

    await admin.bind(namespace, "web", "node-0")

    bound = await admin.get("pods", "web", namespace)
    assert bound["spec"]["nodeName"] == "node-0"
    assert {"type": "PodScheduled", "status": "True"}.items() <= bound["status"]["conditions"][0].items()
    assert bound["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-0"


async def test_a_pod_is_bound_once(admin, namespace):
    await admin.create_nodes(2)
    await admin.create_pod("web", namespace)
    await admin.bind(namespace, "web", "node-0")
    with pytest.raises(ApiError, match="already assigned") as rejected:
        await admin.bind(namespace, "web", "node-1")
    assert rejected.value.status == 409


async def test_new_nodes_are_ready_and_without_taints(admin):
    await admin.create_nodes(3, zones=2)
    nodes = await admin.items("nodes")
    assert [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes] == [
        "zone-0",
        "zone-1",
        "zone-0",
    ]
    assert not any(node["spec"].get("taints") for node in nodes)


async def test_new_nodes_are_tainted_if_requested(new_kube_server):
    async with Admin.of(new_kube_server(Options(taint_new_nodes=True))) as admin:
        await admin.create_nodes(1)
        assert (await admin.get("nodes", "node-0"))["spec"]["taints"][0]["key"] == "node.kubernetes.io/not-ready"


async def test_a_user_without_rights_is_rejected(kube_server, admin):
    async with Admin.of(kube_server, "restricted") as restricted:
        assert (await restricted.request("GET", "/version"))["gitVersion"]
        with pytest.raises(ApiError, match="system:serviceaccount:default:restricted") as rejected:
            await restricted.list("pods")
    assert rejected.value.status == 403


async def test_a_wrong_token_is_rejected(kube_server):
    async with Admin(kube_server.url, token="wrong", ca_file=kube_server.ca_file) as stranger:
        with pytest.raises(ApiError) as rejected:
            await stranger.list("pods")
    assert rejected.value.status == 401


async def test_a_role_gives_rights_to_a_real_service_account(kube_server, admin, namespace):
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader", "namespace": namespace}}
    await admin.create(
        {**role, "kind": "Role", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}
    )
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    await admin.create({**role, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})
    token = await admin.service_account_token(namespace, "reader")

    async with Admin(kube_server.url, token=token, ca_file=kube_server.ca_file) as reader:
        await wait_for(lambda: can_list(reader, namespace))
        assert not await can_list(reader, "default")


async def can_list(user, namespace):
    try:
        await user.list("pods", namespace)
    except ApiError as rejected:
        if rejected.status != 403:
            raise
        return False
    return True


@pytest.mark.parametrize("lifetime, accepted", [(3600, True), (-60, False)])
def test_a_client_certificate_is_accepted_until_it_expires(kube_server, lifetime, accepted):
    certificate, key = kube_server.client_certificate("ann", "system:masters", lifetime=lifetime)
    entry = {"client-certificate": str(certificate), "client-key": str(key)}
    answer = kubectl("auth", "whoami", "-o", "yaml", kubeconfig=kube_server.kubeconfig(entry=entry))
    assert ("username: ann" in answer.stdout) == accepted, answer.stderr


def test_kubectl_works_with_the_kubeconfig_file(kube_server, sync_admin):
    sync_admin.create_nodes(2)
    answer = kubectl("get", "nodes", "-o", "name", kubeconfig=kube_server.kubeconfig())
    assert answer.stdout.split() == ["node/node-0", "node/node-1"]


def test_a_restarted_api_server_has_its_data(kube_server, sync_admin):
    sync_admin.create_nodes(1)
    before = sync_admin.get("nodes", "node-0")
    process = kube_server.apiserver.pid

    kube_server.restart_apiserver()

    assert kube_server.apiserver.pid != process
    assert sync_admin.get("nodes", "node-0") == before


def test_a_restarted_store_has_its_data(kube_server, sync_admin):
    sync_admin.create_nodes(1)
    before = sync_admin.get("nodes", "node-0")
    process = kube_server.etcd.pid

    kube_server.restart_etcd()

    assert kube_server.etcd.pid != process
    assert sync_admin.get("nodes", "node-0", resourceVersion="") == before
    sync_admin.create_pod("web")


def test_a_killed_api_server_is_down_until_it_is_started(kube_server, sync_admin):
    sync_admin.create_nodes(1)
    kube_server.kill_apiserver()
    with pytest.raises(aiohttp.ClientConnectionError):
        sync_admin.list("nodes")
    kube_server.start_apiserver()
    assert len(sync_admin.items("nodes")) == 1


async def test_the_history_of_an_old_watch_is_gone(kube_server, admin):
    await admin.create_nodes(1)
    old = (await admin.list("nodes"))["metadata"]["resourceVersion"]
    for number in range(3):
        await admin.patch("nodes", "node-0", {"metadata": {"labels": {"round": str(number)}}})
    assert (await first_event(admin, old))["type"] == "MODIFIED"

    kube_server.forget_history()

    gone = await first_event(admin, old)
    assert gone["type"] == "ERROR"
    assert gone["object"]["code"] == 410


async def test_a_page_of_a_compacted_list_is_gone(new_kube_server):
    server = new_kube_server(Options(watch_cache=False))
    async with Admin.of(server) as admin:
        await admin.create_nodes(4)
        first = await admin.list("nodes", limit=2)
        await admin.patch("nodes", "node-0", {"metadata": {"labels": {"round": "1"}}})
        server.compact_etcd()
        with pytest.raises(ApiError) as rejected:
            await admin.list("nodes", limit=2, **{"continue": first["metadata"]["continue"]})
    assert rejected.value.status == 410
    assert rejected.value.body["reason"] == "Expired"


async def first_event(admin, version):
    events = admin.watch("nodes", resourceVersion=version, timeoutSeconds=20)
    async with contextlib.aclosing(events):
        return await anext(events)


async def test_clear_deletes_objects_of_all_kinds(kube_server, admin, namespace):
    hook = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    await admin.create_nodes(200)
    await admin.create_all([pod(f"pod-{number}", namespace) for number in range(200)])
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim}
    assert "finalizers" in (await admin.create(made, namespace=namespace))["metadata"]
    nowhere = {"url": "https://127.0.0.1:1/"}
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
    common = {"clientConfig": nowhere, "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    await admin.create({**hook, "metadata": {"name": "no"}, "webhooks": [{"name": "no.example.com", **common}]})

    kube_server.clear()

    async def are_gone(resource):
        return not await admin.items(resource)

    for resource in ("pods", "nodes", "persistentvolumeclaims"):
        await wait_for(lambda resource=resource: are_gone(resource))
    assert {"default", "kube-system"} <= {found["metadata"]["name"] for found in await admin.items("namespaces")}
    with pytest.raises(ApiError):
        await admin.get("namespaces", namespace)
    await wait_for(
        lambda: can_create(admin, f"{namespace}-again")
    )  # once the server has seen the deletion of the webhook


async def can_create(admin, name):
    try:
        return await admin.create_namespace(name)
    except ApiError as rejected:
        if "no.example.com" not in str(rejected):
            raise
        return None


def test_a_server_that_cannot_start_shows_the_end_of_its_log(new_kube_server):
    with pytest.raises(StartError, match=r"kube-apiserver ended with 1(.|\n)*unknown flag: --no-such-flag"):
        new_kube_server(Options(flags=("--no-such-flag",)))


def test_a_timed_out_wait_names_its_condition(sync_admin):
    with pytest.raises(AssertionError, match=r'sync_admin\.items\("pods"\)'):
        sync_admin.wait_for(lambda: sync_admin.items("pods"), timeout=0.1)
