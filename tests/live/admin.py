"""
Changes and reads a cluster for tests: plain dicts over plain HTTP, with all rights.

Shares no code with Bayplan's own client, so that a fault of that client cannot hide here. A resource is named as in a URL:
`pods`, `policy/v1/poddisruptionbudgets`.
"""

import asyncio
import contextlib
import inspect
import io
import json
import ssl
import time

import aiohttp

from live.objects import node, pod

NOT_YET = "storage is (re)initializing"  # a 429 on the first use of a kind, not a rejection
UNSEEN_CLASS = "no PriorityClass with name"
MAX_CONCURRENT_REQUESTS = 50  # when many objects are created
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


class ApiError(Exception):
    """The API server rejected a request; `status` is the HTTP code and `body` its Status object."""

    def __init__(self, status, body, question):
        self.status = status
        self.body = body
        message = body.get("message") if isinstance(body, dict) else body
        super().__init__(f"{question}: {status} {message}")


class Admin:
    """A client of one API server for one user; an async context manager."""

    def __init__(self, url, *, token, ca_file=None):
        self.retried = (NOT_YET,)  # answers with one of these texts are retried
        self.url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tls = ssl.create_default_context(cafile=ca_file) if ca_file else True
        self._session = None
        self._resources = {}

    @classmethod
    def of(cls, server, user="admin"):
        return cls(server.url, token=server.token(user), ca_file=server.ca_file)

    async def __aenter__(self):
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=2 * MAX_CONCURRENT_REQUESTS)
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        return self

    async def __aexit__(self, *failure):
        await self._session.close()

    async def request(self, method, path, content=None, *, media="application/json", token=None, **params):
        """Return the decoded response to any request, by another user if a token is given; ApiError from status 400 on."""
        body = None if content is None else json.dumps(content).encode()
        params = {key: str(value) for key, value in params.items()}
        headers = {"Content-Type": media, **({"Authorization": f"Bearer {token}"} if token else {})}
        while True:
            async with self._session.request(
                method, self.url + path, data=body and io.BytesIO(body), params=params, headers=headers
            ) as answer:
                text = await answer.text()
                is_json = answer.content_type == "application/json"
                status, said = answer.status, json.loads(text) if is_json else text
            if status < 400:
                return said
            if not any(retried in text for retried in self.retried):
                raise ApiError(status, said, f"{method} {path}")
            await asyncio.sleep(0.05)

    async def create(self, content, *, namespace=None, **params):
        meta = content.get("metadata", {})
        resource, namespaced = await self._resource_of(content)
        namespace = (namespace or meta.get("namespace", "default")) if namespaced else None
        created = await self.request("POST", path_to(resource, namespace=namespace), content, **params)
        if content.get("kind") == "PriorityClass":
            await self._until_admission_has_seen(meta["name"])
        return created

    async def _until_admission_has_seen(self, priority_class):
        """Admission reads PriorityClasses from a watch, which may lag behind the response to their creation."""
        wanted = pod("probe", priorityClassName=priority_class)
        while True:
            try:
                await self.request("POST", path_to("pods", namespace="default"), wanted, dryRun="All")
            except ApiError as error:
                if UNSEEN_CLASS in str(error):
                    await asyncio.sleep(0.02)
                    continue
            return

    async def create_all(self, contents, *, namespace=None):
        """Create many objects concurrently; the responses are in the order of `contents`."""
        gate = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

        async def one(content):
            async with gate:
                return await self.create(content, namespace=namespace)

        return await asyncio.gather(*(one(content) for content in contents))

    async def get(self, resource, name, namespace=None, *, subresource="", **params):
        return await self.request("GET", path_to(resource, name, namespace, subresource), **params)

    async def list(self, resource, namespace=None, **params):
        """Return the List object of the API server: one page if `limit` is among the parameters."""
        return await self.request("GET", path_to(resource, namespace=namespace), **params)

    async def items(self, resource, namespace=None, **params):
        return (await self.list(resource, namespace, **params))["items"]

    async def replace(self, resource, content, *, subresource="", **params):
        meta = content["metadata"]
        path = path_to(resource, meta["name"], meta.get("namespace"), subresource)
        return await self.request("PUT", path, content, **params)

    async def patch(self, resource, name, change, namespace=None, *, how="merge", subresource="", **params):
        """`how` is merge, strategic or json, as in kubectl patch --type."""
        path = path_to(resource, name, namespace, subresource)
        return await self.request("PATCH", path, change, media=PATCHES[how], **params)

    async def delete(self, resource, name, namespace=None, *, grace=0, **params):
        """Delete at once, or after `grace` seconds; None uses the grace period of the object."""
        params |= {} if grace is None else {"gracePeriodSeconds": grace}
        return await self.request("DELETE", path_to(resource, name, namespace), **params)

    async def delete_all(self, resource, namespace=None, **params):
        """Delete every object of a resource, in all namespaces unless one is given, at once and despite finalizers."""
        found = [entry["metadata"] for entry in await self.items(resource, namespace, **params)]
        for meta in found:
            if meta.get("finalizers"):
                await self.patch(resource, meta["name"], {"metadata": {"finalizers": None}}, meta.get("namespace"))
        for where in {meta.get("namespace") for meta in found}:
            await self.request("DELETE", path_to(resource, namespace=where), gracePeriodSeconds=0, **params)

    async def watch(self, resource, namespace=None, **params):
        """Yield the events of a watch, as dicts, until it ends."""
        params = {"watch": "true"} | {key: str(value) for key, value in params.items()}
        url = self.url + path_to(resource, namespace=namespace)
        patient = aiohttp.ClientTimeout(total=None)
        async with self._session.get(url, params=params, timeout=patient, read_bufsize=1 << 22) as answer:
            if answer.status >= 400:
                raise ApiError(answer.status, await answer.json(), f"WATCH {url}")
            transport = answer.connection and answer.connection.transport
            try:
                async for line in answer.content:
                    yield json.loads(line)
            finally:
                if transport:
                    transport.abort()  # a graceful close would outlast the event loop of the test

    async def bind(self, namespace, pod, node):
        """Bind a pod, as a scheduler does."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return await self.request("POST", path_to("pods", pod, namespace, "binding"), binding)

    async def service_account_token(self, namespace, name, seconds=3600):
        """Return a real token of a service account, which is created if it does not exist."""
        meta = {"name": name, "namespace": namespace}
        with contextlib.suppress(ApiError):
            await self.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        question = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        path = path_to("serviceaccounts", name, namespace, "token")
        return (await self.request("POST", path, question))["status"]["token"]

    async def create_namespace(self, name, labels=None):
        return await self.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}
        )

    async def delete_namespace(self, name):
        """Delete a namespace and finalize it, as there is no namespace controller. Objects in it are not deleted."""
        await self.delete("namespaces", name)
        content = await self.get("namespaces", name)
        content["spec"]["finalizers"] = []
        await self.replace("namespaces", content, subresource="finalize")

    async def create_nodes(self, count, **options):
        """Create `count` nodes with `node`; return their names."""
        return [made["metadata"]["name"] for made in await self.create_all([node(i, **options) for i in range(count)])]

    async def create_pod(self, name, namespace="default", **options):
        return await self.create(pod(name, namespace, **options))

    async def node_of(self, name, namespace="default"):
        """Return the node of a pod, empty while it is unbound."""
        return (await self.get("pods", name, namespace))["spec"].get("nodeName", "")

    async def _resource_of(self, content):
        """Return the resource of objects of this kind and whether it is namespaced, by the API discovery."""
        version, kind = content["apiVersion"], content["kind"]
        if (version, kind) not in self._resources:
            found = await self.request("GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
            for entry in found["resources"]:
                if "/" not in entry["name"]:
                    resource = f"{version}/{entry['name']}" if "/" in version else entry["name"]
                    self._resources[version, entry["kind"]] = resource, entry["namespaced"]
        return self._resources[version, kind]


class SyncAdmin:
    """The same methods for tests without a loop: `SyncAdmin.of(server).get("pods", "web")`; a context manager."""

    def __init__(self, admin):
        self._admin = admin
        self._runner = asyncio.Runner()

    @classmethod
    def of(cls, server, user="admin"):
        return cls(Admin.of(server, user))

    def __enter__(self):
        self._runner.run(self._admin.__aenter__())
        return self

    def __exit__(self, *failure):
        self._runner.run(self._admin.__aexit__())
        self._runner.close()

    def wait_for(self, predicate, timeout=30, *, every=0.05):
        """Like the function below, for a predicate that uses this admin."""
        deadline = time.monotonic() + timeout
        while not (value := predicate()):
            assert time.monotonic() < deadline, timeout_message(predicate, timeout)
            time.sleep(every)
        return value

    def __getattr__(self, name):
        method = getattr(self._admin, name)
        assert inspect.iscoroutinefunction(method), f"{name} is no method that can be waited for"
        return lambda *args, **options: self._runner.run(method(*args, **options))


def path_to(resource, name="", namespace=None, subresource=""):
    """`policy/v1/poddisruptionbudgets` and a namespace → the path of their URL."""
    version, _, plural = resource.rpartition("/")
    root = f"/apis/{version}" if version else "/api/v1"
    parts = [root, f"namespaces/{namespace}" if namespace else "", plural, name, subresource]
    return "/".join(part for part in parts if part)


async def wait_for(predicate, timeout=30, *, every=0.05):  # noqa: ASYNC109 - the message says what was waited for
    """The first true value of `predicate()`, which may be a coroutine function; AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (value := await _evaluate(predicate)):
        assert time.monotonic() < deadline, timeout_message(predicate, timeout)
        await asyncio.sleep(every)
    return value


async def _evaluate(predicate):
    value = predicate()
    return await value if inspect.isawaitable(value) else value


def timeout_message(predicate, timeout):
    return f"not so after {timeout} s: {inspect.getsource(predicate).strip()}"
