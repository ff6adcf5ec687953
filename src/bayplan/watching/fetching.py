"""
Reads a live cluster once, page by page, for commands that do not watch.

The pages are read by the same code as dumps, so a cluster and its dump give the same answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from bayplan.kube_api.connection import Connection
from bayplan.kube_api.decoding import DECODE_ERRORS
from bayplan.kube_api.errors import ForbiddenError, GoneError, NotFoundError, WrongServerError
from bayplan.kube_api.resources import PODS, Resource
from bayplan.reading.documents import Source

PAGE_SIZE = 500
MAX_PAGED_LIST_ATTEMPTS = 4
NODES = Resource("", "v1", "nodes", namespaced=False)
# A decision needs these. Without an optional resource the answer is less exact, and a note says so.
REQUIRED_RESOURCES = (NODES, PODS)
OPTIONAL_RESOURCES = (
    Resource("", "v1", "namespaces", namespaced=False),
    Resource("", "v1", "services"),
    Resource("", "v1", "replicationcontrollers"),
    Resource("", "v1", "persistentvolumes", namespaced=False),
    Resource("", "v1", "persistentvolumeclaims"),
    Resource("apps", "v1", "deployments"),
    Resource("apps", "v1", "replicasets"),
    Resource("apps", "v1", "statefulsets"),
    Resource("apps", "v1", "daemonsets"),
    Resource("batch", "v1", "jobs"),
    Resource("policy", "v1", "poddisruptionbudgets"),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False),
    Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False),
    Resource("storage.k8s.io", "v1", "csinodes", namespaced=False),
    Resource("storage.k8s.io", "v1", "volumeattachments", namespaced=False),
    Resource("storage.k8s.io", "v1", "csidrivers", namespaced=False),
    Resource("storage.k8s.io", "v1", "csistoragecapacities"),
)
FLEET_CLUSTERS = Resource("cluster.karmada.io", "v1alpha1", "clusters", namespaced=False)
FLEET_RESOURCES = (
    Resource("policy.karmada.io", "v1alpha1", "propagationpolicies"),
    Resource("policy.karmada.io", "v1alpha1", "clusterpropagationpolicies", namespaced=False),
    Resource("work.karmada.io", "v1alpha2", "resourcebindings"),
    Resource("work.karmada.io", "v1alpha2", "clusterresourcebindings", namespaced=False),
)


class _ListMeta(msgspec.Struct, rename="camel"):
    continue_: str = msgspec.field(default="", name="continue")


class _Envelope(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


_envelope = msgspec.json.Decoder(_Envelope)


class ObjectToFetch(msgspec.Struct, frozen=True):
    """One object to fetch by name."""

    resource: Resource
    namespace: str
    name: str


class ClusterFetcher:
    """Fetches the objects of a cluster as sources; `notes` lists what could not be read."""

    def __init__(self, connection: Connection, objects: Sequence[ObjectToFetch] = ()) -> None:
        self._connection = connection
        self._objects = objects
        self.notes: list[str] = []

    def sources(self) -> Iterator[Source]:
        """Yield every object that decisions depend on; from a Karmada API also those of the fleet."""
        with asyncio.Runner() as runner:
            runner.run(self._connection.__aenter__())
            try:
                runner.run(self._connection.version())
                yield from self._all(runner)
            finally:
                runner.run(self._connection.__aexit__(None, None, None))

    def _all(self, runner: asyncio.Runner) -> Iterator[Source]:
        try:
            clusters = list(self._list(FLEET_CLUSTERS, runner))
        except NotFoundError:
            clusters = []  # an ordinary cluster
        except ForbiddenError:
            if self._is_fleet(runner):
                raise
            clusters = []  # 403 comes before 404: the resource need not exist
        yield from clusters
        for resource in (*REQUIRED_RESOURCES, *(FLEET_RESOURCES if clusters else ())):
            yield from self._list(resource, runner)
        for resource in OPTIONAL_RESOURCES:
            try:
                yield from self._list(resource, runner)
            except (ForbiddenError, NotFoundError) as error:
                self.notes.append(f"decided without {resource}: {error}")
        for requested in self._objects:
            try:
                path = requested.resource.path(requested.namespace, requested.name)
                yield Source(f"{self._connection.server} {requested.resource}", runner.run(self._connection.get(path)))
            except (ForbiddenError, NotFoundError) as error:
                self.notes.append(
                    f"decided without {requested.resource} {requested.namespace}/{requested.name}: {error}"
                )

    def _is_fleet(self, runner: asyncio.Runner) -> bool:
        try:
            runner.run(self._connection.get(f"/apis/{FLEET_CLUSTERS.group}"))
        except (NotFoundError, ForbiddenError):
            return False
        return True

    def _list(self, resource: Resource, runner: asyncio.Runner) -> Iterator[Source]:
        """Return the pages of one resource, all at once: an expired continue token makes the list start again."""
        name = f"{self._connection.context_name or self._connection.server} {resource}"
        for _ in range(MAX_PAGED_LIST_ATTEMPTS):
            try:
                return iter([Source(name, page) for page in self._pages(resource, runner)])
            except GoneError:
                continue
        return iter([Source(name, runner.run(self._connection.get(resource.path())))])

    def _pages(self, resource: Resource, runner: asyncio.Runner) -> Iterator[bytes]:
        query = {"limit": str(PAGE_SIZE)}
        while True:
            page = runner.run(self._connection.get(resource.path(), query=query))
            continue_token = self._continue_token(resource, page)
            yield page
            if not continue_token:
                return
            query["continue"] = continue_token

    def _continue_token(self, resource: Resource, page: bytes) -> str:
        """Return the continue token of a page, empty for the last page."""
        try:
            return _envelope.decode(page).metadata.continue_
        except DECODE_ERRORS as error:
            tried = self._connection.tried("GET", resource.path())
            raise WrongServerError(f"{tried}: the answer cannot be read: {error}") from None
