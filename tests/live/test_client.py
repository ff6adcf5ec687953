"""Bayplan's client of Kubernetes APIs on a real API server."""

import asyncio
import concurrent.futures
import contextlib
import json
import sys
from typing import Literal

import pytest

import listed
from bayplan.kube_api import connect, errors, listing, writes
from bayplan.kube_api.access import ConnectOptions
from bayplan.kube_api.decoding import Key
from bayplan.kube_api.listing import Restarted, Selection
from bayplan.kube_api.reflector import Reflector
from bayplan.kube_api.resources import PODS, Resource
from bayplan.wire.meta import ApiObject
from bayplan.wire.nodes import Namespace, Node
from bayplan.wire.pods import Pod
from live.admin import wait_for

NODES = Resource("", "v1", "nodes", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps")
# Servers end with the thread that started them, and the threads of a loop end with its test.
LASTING = concurrent.futures.ThreadPoolExecutor(1)
V1 = "client.authentication.k8s.io/v1"


async def in_background(change, *args):
    return await asyncio.get_running_loop().run_in_executor(LASTING, change, *args)


class RecordingHandler:
    """Records the calls of a reflector and the current objects."""

    def __init__(self):
        self.known, self.unreadable, self.n_synced = {}, {}, 0

    def upsert(self, obj):
        meta = obj.metadata
        self.known[meta.namespace, meta.name] = obj
        self.unreadable.pop((meta.namespace, meta.name), None)

    def delete(self, key, uid):
        gone = self.known.pop(key, None)
        assert gone is None or gone.metadata.uid == uid
        self.unreadable.pop(key, None)

    def undecodable(self, found):
        self.known.pop(found.key, None)
        self.unreadable[found.key] = found.error

    def synced(self):
        self.n_synced += 1

    @property
    def names(self):
        return sorted(name for _, name in self.known)


@contextlib.asynccontextmanager
async def following(server, resource, item_type, selection, **settings):
    """Run a synced reflector; yields it, its handler and its reported trouble."""
    async with connect.from_kubeconfig(server.kubeconfig()) as connection:
        handler, trouble = RecordingHandler(), []
        reflector = Reflector(
            connection, resource, item_type, handler, selection, on_trouble=trouble.append, **settings
        )
        running = asyncio.create_task(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 60)
        yield reflector, handler, trouble
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_version_and_lists_in_pages(kube_server, admin, namespace):
    await admin.create_nodes(7)
    await asyncio.gather(*(admin.create_pod(f"web-{number}", namespace, cpu="100m") for number in range(5)))
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        assert (await connection.version()).startswith("v1.")
        pages = [page async for page in listing.pages(connection, NODES, Node, limit=3)]
        pods = await listed.everything(connection, PODS, Pod, Selection(namespace), limit=2)
        metadata = await listed.everything(connection, PODS, ApiObject, Selection(namespace, metadata_only=True))
        spaces = await listed.everything(connection, Resource("", "v1", "namespaces", namespaced=False), Namespace)
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert [page.remaining for page in pages] == [4, 1, None]
    assert len({page.resource_version for page in pages}) == 1
    assert [pod.metadata.name for pod in pods.items] == [f"web-{number}" for number in range(5)]
    assert pods.items[0].spec.containers[0].resources.requests == {"cpu": "100m"}
    assert [pod.metadata.uid for pod in metadata.items] == [pod.metadata.uid for pod in pods.items]
    assert namespace in {space.metadata.name for space in spaces.items}


async def test_history_compacted_between_two_pages(new_kube_server):
    server = await in_background(new_kube_server)
    async with connect.from_kubeconfig(server.kubeconfig()) as connection:
        for number in range(4):
            await writes.create(connection, NODES, None, {"metadata": {"name": f"n{number}"}})
        pages = listing.pages(connection, NODES, Node, limit=2)
        first = await anext(pages)
        await writes.create(connection, NODES, None, {"metadata": {"name": "n9"}})
        await in_background(server.forget_history)
        rest = [page async for page in pages]
    assert [node.metadata.name for node in first.items] == ["n0", "n1"]
    assert isinstance(rest[0], Restarted)
    assert [node.metadata.name for page in rest[1:] for node in page.items] == ["n0", "n1", "n2", "n3", "n9"]


async def test_changes_are_followed(kube_server, admin, namespace):
    (node,) = await admin.create_nodes(1)
    await admin.create_pod("old", namespace)
    async with following(kube_server, PODS, Pod, Selection(namespace)) as (reflector, handler, trouble):
        assert handler.names == ["old"]
        await admin.create_pod("new", namespace)
        await admin.bind(namespace, "new", node)
        await admin.delete("pods", "old", namespace)
        await wait_for(lambda: handler.names == ["new"] and handler.known[namespace, "new"].spec.node_name == node)
        assert (reflector.lists, reflector.restarts, trouble) == (1, 0, [])


async def test_metadata_only_watches(kube_server, admin, namespace):
    selection = Selection(namespace, label_selector="app=web", metadata_only=True)
    async with following(kube_server, PODS, ApiObject, selection) as (_, handler, _):
        await admin.create_pod("web", namespace, meta={"labels": {"app": "web"}})
        await wait_for(lambda: handler.names == ["web"])
        assert handler.known[namespace, "web"].kind == "PartialObjectMetadata"
        await admin.patch("pods", "web", {"metadata": {"labels": {"app": "other"}}}, namespace)
        await wait_for(lambda: handler.names == [])


async def test_a_watch_resumes_after_a_restart_of_the_server(kube_server, admin, namespace):
    await admin.create_pod("before", namespace)
    async with following(kube_server, PODS, Pod, Selection(namespace)) as (reflector, handler, trouble):
        await in_background(kube_server.restart_apiserver)
        await admin.create_pod("after", namespace)
        await wait_for(lambda: handler.names == ["after", "before"], 120)
        assert reflector.restarts >= 1
        assert trouble


async def test_history_compacted_during_a_watch(kube_server, admin, namespace):
    for name in ("stays", "is-deleted", "is-recreated"):
        await admin.create_pod(name, namespace)
    async with following(kube_server, PODS, Pod, Selection(namespace)) as (reflector, handler, _):
        uid = handler.known[namespace, "is-recreated"].metadata.uid
        await in_background(kube_server.kill_apiserver)
        # Changes need a running server, so they are made through another client before the reflector reconnects.
        reflector._backoff._step = 8.0
        await in_background(kube_server.start_apiserver)
        for name in ("is-deleted", "is-recreated"):
            await admin.delete("pods", name, namespace)
        await admin.create_pod("is-recreated", namespace)
        await in_background(kube_server.forget_history)
        await wait_for(lambda: reflector.relists >= 1, 120)
        await wait_for(lambda: handler.names == ["is-recreated", "stays"])
        assert handler.known[namespace, "is-recreated"].metadata.uid != uid


class Picky(ApiObject):
    """A type that decodes only one text."""

    data: dict[str, Literal["fine"]] = {}


async def test_an_undecodable_object_neither_stops_a_watch_nor_is_lost(kube_server, admin, namespace):
    def config_map(name, text):
        meta = {"name": name, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"text": text}}

    await admin.create_all([config_map("a", "fine"), config_map("b", "poison"), config_map("c", "fine")])
    async with following(kube_server, CONFIG_MAPS, Picky, Selection(namespace)) as (reflector, handler, _):
        assert handler.names == ["a", "c"]
        assert handler.unreadable == {Key(namespace, "b"): "data[...]: invalid enum value 'poison'"}
        await admin.create_all([config_map("d", "poison"), config_map("e", "fine")])
        await admin.patch("configmaps", "a", {"data": {"text": "poison"}}, namespace)
        await admin.patch("configmaps", "b", {"data": {"text": "fine"}}, namespace)
        await wait_for(lambda: handler.names == ["b", "c", "e"] and len(handler.unreadable) == 2)
        await admin.delete("configmaps", "d", namespace)
        await wait_for(lambda: list(handler.unreadable) == [(namespace, "a")])
        assert reflector.lists == 1


async def test_writes(kube_server, admin, namespace):
    (node,) = await admin.create_nodes(1)
    made = {name: await admin.create_pod(name, namespace) for name in ("bound", "evicted", "deleted")}
    uids = {name: pod["metadata"]["uid"] for name, pod in made.items()}
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        with pytest.raises(errors.ConflictError, match="UID in precondition"):
            await writes.bind(connection, namespace, "bound", uids["deleted"], node)
        await writes.bind(connection, namespace, "bound", uids["bound"], node)
        with pytest.raises(errors.ConflictError, match=f'already assigned to node "{node}"'):
            await writes.bind(connection, namespace, "bound", uids["bound"], node)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
        await writes.patch_status(connection, PODS, namespace, "deleted", {"status": {"conditions": [condition]}})
        await writes.evict(connection, namespace, "evicted", uids["evicted"], grace_period_seconds=0)
        found = await admin.get("pods", "deleted", namespace)
        assert found["status"]["conditions"][0]["message"] == "no room"
        with pytest.raises(errors.ConflictError):
            await writes.delete(connection, PODS, namespace, "deleted", uid=uids["bound"])
        await writes.delete(connection, PODS, namespace, "deleted", uid=uids["deleted"], grace_period_seconds=0)
        with pytest.raises(errors.NotFoundError):
            await writes.delete(connection, PODS, namespace, "deleted")
    assert [pod["metadata"]["name"] for pod in await admin.items("pods", namespace)] == ["bound"]
    assert await admin.node_of("bound", namespace) == node


async def test_an_eviction_rejected_by_a_budget(kube_server, admin, namespace):
    (node,) = await admin.create_nodes(1)
    made = await admin.create_pod("web", namespace, meta={"labels": {"app": "web"}})
    await admin.bind(namespace, "web", node)
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await admin.patch("pods", "web", running, namespace, subresource="status")
    selector = {"matchLabels": {"app": "web"}}
    budget = {"metadata": {"name": "keep", "namespace": namespace}, "spec": {"minAvailable": 1, "selector": selector}}
    await admin.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"} | budget)
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        with pytest.raises(errors.TooManyRequestsError) as caught:
            await writes.evict(connection, namespace, "web", made["metadata"]["uid"])
    assert caught.value.retry_after


async def apply(connection, namespace, content, **query):
    """Server-side apply of a ConfigMap."""
    path, body = CONFIG_MAPS.path(namespace, content["metadata"]["name"]), json.dumps(content).encode()
    query = {"fieldManager": "x", **query}
    return await connection.request("PATCH", path, query=query, body=body, content_type="application/apply-patch+yaml")


async def test_patches_and_events(kube_server, admin, namespace):
    def config_map(**data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}

    about = {"kind": "Pod", "namespace": namespace, "name": "web"}
    new = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new", "namespace": namespace}}
    new |= {"regarding": about, "reason": "Scheduled", "action": "Binding", "note": "here", "type": "Normal"}
    new |= {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "bayplan",
        "reportingInstance": "bayplan-0",
    }
    old = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "old", "namespace": namespace}}
    old |= {"involvedObject": about, "reason": "Scheduled", "message": "there", "type": "Normal"}
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        made = json.loads(await writes.create(connection, CONFIG_MAPS, namespace, config_map(a="1")))
        await writes.patch(connection, CONFIG_MAPS, namespace, "c", {"data": {"b": "2"}})
        with pytest.raises(errors.ConflictError, match="the object has been modified"):
            await writes.replace(connection, CONFIG_MAPS, namespace, "c", made)
        with pytest.raises(errors.ConflictError, match="conflict"):
            await apply(connection, namespace, config_map(b="3"))
        body = await apply(connection, namespace, config_map(b="3"), force="true")
        with pytest.raises(errors.ConflictError) as caught:
            await writes.create(connection, CONFIG_MAPS, namespace, config_map())
        await writes.create_event(connection, namespace, new)
        await writes.create_event(connection, namespace, old)
    assert json.loads(body)["data"] == {"a": "1", "b": "3"}
    assert caught.value.reason == "AlreadyExists"
    notes = {event["note"] for event in await admin.items("events.k8s.io/v1/events", namespace)}
    assert notes == {"here", "there"}


async def whoami(server, user=None, options=None, **settings):
    """Return the user as the server identifies it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    resource = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False)
    path = server.kubeconfig(entry=user, **settings)
    async with connect.from_kubeconfig(path, options=options or ConnectOptions()) as connection:
        return json.loads(await writes.create(connection, resource, None, review))["status"]["userInfo"]


async def test_ways_to_authenticate(kube_server, admin, tmp_path):
    server = kube_server
    certificate, key = server.client_certificate("ada", "admins")
    me = await whoami(server, {"client-certificate": str(certificate), "client-key": str(key)})
    assert (me["username"], me["groups"]) == ("ada", ["admins", "system:authenticated"])

    file = tmp_path / "token"
    file.write_text(await admin.service_account_token("default", "robot"))
    assert (await whoami(server, {"tokenFile": str(file)}))["username"] == "system:serviceaccount:default:robot"

    status = {"token": server.token("kube-scheduler")}
    answer = tmp_path / "answer"
    answer.write_text(json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}))
    code = f"print(open({str(answer)!r}).read())"
    run = {"command": sys.executable, "args": ["-c", code], "apiVersion": V1, "interactiveMode": "Never"}
    assert (await whoami(server, {"exec": run}))["username"] == "system:kube-scheduler"

    acting = {
        "token": server.token(),
        "as": "eve",
        "as-uid": "7",
        "as-groups": ["spies"],
        "as-user-extra": {"a/b": ["c"]},
    }
    me = await whoami(server, acting)
    assert (me["username"], me["uid"], me["extra"]) == ("eve", "7", {"a/b": ["c"]})
    assert "spies" in me["groups"]
    assert (await whoami(server, acting, ConnectOptions(as_user="bob")))["username"] == "bob"
    token = server.token("kube-scheduler")
    assert (
        await whoami(
            server,
            acting | {"as": ""} | dict.fromkeys(("as-uid", "as-groups", "as-user-extra")),
            ConnectOptions(token=token),
        )
    )["username"] == "system:kube-scheduler"


async def test_an_expired_token_is_read_again(kube_server, tmp_path):
    file = tmp_path / "token"
    file.write_text("no-longer-good")
    async with connect.from_kubeconfig(kube_server.kubeconfig(entry={"tokenFile": str(file)})) as connection:
        with pytest.raises(errors.UnauthorizedError):
            await connection.get("/api/v1/nodes")
        file.write_text(kube_server.token())
        await connection.get("/api/v1/nodes")


async def failure(server, kind, user=None, **settings):
    path = server.kubeconfig(entry=user, **settings)
    async with connect.from_kubeconfig(path) as connection:
        with pytest.raises(kind) as caught:
            await listed.everything(connection, PODS, Pod)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_each_failure_is_reported_in_one_line(kube_server):
    server, head = kube_server, f"GET {kube_server.url}/api/v1/pods: "
    assert await failure(server, errors.ForbiddenError, {"token": server.token("restricted")}) == (
        head + 'no rights: pods is forbidden: User "system:serviceaccount:default:restricted" cannot list resource '
        '"pods" in API group "" at the cluster scope'
    )
    unauthorized = head + "the server does not accept the credentials: Unauthorized"
    assert await failure(server, errors.UnauthorizedError, {"token": "unknown"}) == unauthorized
    certificate, key = server.client_certificate("ada", lifetime=-3600)
    expired = {"client-certificate": str(certificate), "client-key": str(key)}
    assert "the client certificate (" in await failure(server, errors.UnauthorizedError, expired)
    without_tls = server.etcd_url.replace("http:", "https:")
    text = await failure(server, errors.UnreachableError, url=without_tls)
    assert text == f"{without_tls}: cannot connect: connection closed; does the server speak TLS?"
    elsewhere = server.url.replace("127.0.0.1", "127.0.0.2")
    unreachable = await failure(server, errors.UnreachableError, url=elsewhere)
    assert unreachable == f"{elsewhere}: cannot connect: Connection refused"


async def test_an_etcd_is_not_an_api_server(kube_server):
    path = kube_server.kubeconfig(url=kube_server.etcd_url)
    async with connect.from_kubeconfig(path) as connection:
        with pytest.raises(errors.WrongServerError, match="is this a Kubernetes API server"):
            await connection.version()
