"""
Reads a live cluster once, page by page, for commands that do not watch.

The pages are read by the same code as dumps, so a cluster and its dump give the same answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from bayplan.kube_api import decoding, resources
from bayplan.kube_api.connection import JSON, Connection
from bayplan.kube_api.decoding import DECODE_ERRORS
from bayplan.kube_api.errors import ForbiddenError, GoneError, KubeError, NotFoundError, WrongServerError
from bayplan.kube_api.listing import METADATA_LIST
from bayplan.kube_api.resources import PODS, Resource
from bayplan.reading.documents import Source
from bayplan.wire import kinds
from bayplan.wire.kinds import ApiKind, Trait

PAGE_SIZE = 500
MAX_PAGED_LIST_ATTEMPTS = 4
NODES = resources.of_kind("Node")
# A decision needs these. Without an optional resource the answer is less exact, and a note says so.
REQUIRED_RESOURCES = (NODES, PODS)
_FURTHER_OF_FLEETS = (
    "WorkloadRebalancer",
    "ClusterTaintPolicy",
    "ResourceInterpreterCustomization",
    "ResourceInterpreterWebhookConfiguration",
)
FLEET_CLUSTERS = resources.of_kind("Cluster")


class _ListMeta(msgspec.Struct, rename="camel"):
    continue_: str = msgspec.field(default="", name="continue")


class _Envelope(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


_envelope = msgspec.json.Decoder(_Envelope)


class _ApiResource(msgspec.Struct):
    name: str = ""
    kind: str = ""
    namespaced: bool = True


class _ApiResourceList(msgspec.Struct):
    resources: list[_ApiResource] = []


_api_resources = msgspec.json.Decoder(_ApiResourceList)


class _WithMetadata(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _MetadataList(msgspec.Struct):
    items: list[_WithMetadata] = []


class _ResourceName(msgspec.Struct, rename="camel", frozen=True):
    """The version and kind of a template."""

    api_version: str = ""
    kind: str = ""


class _NamingSpec(msgspec.Struct, frozen=True):
    resource: _ResourceName = _ResourceName()


class _NamingBinding(msgspec.Struct, frozen=True):
    spec: _NamingSpec = _NamingSpec()


class _BindingList(msgspec.Struct):
    items: list[_NamingBinding] = []


def optional_resources() -> list[Resource]:
    """The resources of all other kinds of Kubernetes that are decoded, group by group."""
    rows = sorted((row for row in kinds.decoded() if not row.is_karmada), key=lambda row: row.group)
    return [found for found in map(resources.resource_of, rows) if found not in REQUIRED_RESOURCES]


def fleet_resources() -> list[Resource]:
    """What a fleet has beside its clusters: everything with a placement."""
    return [resources.resource_of(row) for row in kinds.having(Trait.HAS_PLACEMENT)]


def binding_resources() -> list[Resource]:
    """The bindings, which name the kinds of their templates."""
    return [resources.resource_of(row) for row in kinds.held_in("bindings")]


class ObjectToFetch(msgspec.Struct, frozen=True):
    """One object to fetch by name."""

    resource: Resource
    namespace: str
    name: str


@contextlib.contextmanager
def object_lookup(connection: Connection) -> Iterator[Callable[[ApiKind, str, str], dict[str, Any] | None]]:
    """A function that fetches one object by kind, namespace and name: None if it may not be read or does not exist."""
    with asyncio.Runner() as runner:
        runner.run(connection.__aenter__())

        def get(row: ApiKind, namespace: str, name: str) -> dict[str, Any] | None:
            path = resources.resource_of(row).path(namespace, name)
            try:
                found: dict[str, Any] = msgspec.json.decode(runner.run(connection.get(path)))
            except (ForbiddenError, NotFoundError):
                return None
            return {"apiVersion": row.api_version, "kind": row.kind, **found}

        try:
            yield get
        finally:
            runner.run(connection.__aexit__(None, None, None))


class NotServedError(KubeError):
    """The API server does not serve this kind."""


async def served_resource(connection: Connection, api_version: str, kind: str) -> Resource:
    """The resource of a kind as the server names it; NotServedError if it has none in this version."""
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{api_version}" if group else f"/api/{api_version}"
    answer = await connection.get(path)
    served = decoding.decoded(_api_resources, answer, connection.tried("GET", path)).resources
    found = next((one for one in served if one.kind == kind and "/" not in one.name), None)
    if found is None:
        raise NotServedError(f"{kind} is not served in {api_version}")
    return Resource(group, version, found.name, namespaced=found.namespaced)


class ClusterFetcher:
    """Fetches the objects of a cluster as sources; `notes` says what could not be listed, of `kinds_not_listed`."""

    def __init__(self, connection: Connection, objects: Sequence[ObjectToFetch] = ()) -> None:
        self._connection = connection
        self._objects = objects
        self.notes: list[str] = []
        self.kinds_not_listed: set[str] = set()

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
        named: set[_ResourceName] = set()
        for resource in (*REQUIRED_RESOURCES, *(fleet_resources() if clusters else ())):
            for source in self._list(resource, runner):
                named |= self._templates_in(source, resource)
                yield source
        yield from self._templates(named, runner)
        further = list(map(resources.of_kind, _FURTHER_OF_FLEETS)) if clusters else []
        pod_groups = list(map(resources.resource_of, kinds.held_in("pod_groups")))
        for resource in (*further, *optional_resources()):
            try:
                yield from self._list(resource, runner)
            except (ForbiddenError, NotFoundError) as error:
                if resource in pod_groups:
                    continue  # few clusters have them, and a member of one that is not known waits
                same = (r.kind for r in kinds.decoded() if (r.group, r.plural) == (resource.group, resource.plural))
                self.kinds_not_listed.update(same)
                self.notes.append(f"decided without {resource}: {error}")
        yield from self._requested(runner)

    def _requested(self, runner: asyncio.Runner) -> Iterator[Source]:
        """Yield the single objects."""
        for requested in self._objects:
            try:
                path = requested.resource.path(requested.namespace, requested.name)
                yield Source(f"{self._connection.server} {requested.resource}", runner.run(self._connection.get(path)))
            except (ForbiddenError, NotFoundError) as error:
                self.notes.append(
                    f"decided without {requested.resource} {requested.namespace}/{requested.name}: {error}"
                )

    def _templates_in(self, source: Source, resource: Resource) -> set[_ResourceName]:
        """Return the kinds of templates that bindings name and that are not listed anyway."""
        if resource not in binding_resources():
            return set()
        try:
            items = msgspec.json.decode(source.data, type=_BindingList).items
        except DECODE_ERRORS:  # reported when the objects are read
            return set()
        listed = {(row.group, row.kind) for row in kinds.decoded()}
        names = {one.spec.resource for one in items}
        return {name for name in names if name.kind and (name.api_version.rpartition("/")[0], name.kind) not in listed}

    def _templates(self, named: set[_ResourceName], runner: asyncio.Runner) -> Iterator[Source]:
        """Yield the metadata of templates, whose labels bindings do not have; what may not be listed is noted."""
        for name in sorted(named, key=lambda one: (one.api_version, one.kind)):
            try:
                resource = self._resource_of(name, runner)
                if resource is None:
                    self.notes.append(f"labels of {name.kind} ({name.api_version}) are not known: not served")
                    continue
                for page in self._list(resource, runner, accept=METADATA_LIST):
                    items = msgspec.json.decode(page.data, type=_MetadataList).items
                    content = {"apiVersion": name.api_version, "kind": name.kind}
                    objects = [{**content, "metadata": one.metadata} for one in items]
                    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
                    yield Source(page.name, msgspec.json.encode(listed))
            except (ForbiddenError, NotFoundError, *DECODE_ERRORS) as error:
                self.notes.append(f"labels of {name.kind} ({name.api_version}) are not known: {error}")

    def _resource_of(self, name: _ResourceName, runner: asyncio.Runner) -> Resource | None:
        """Return the resource of a kind as the server names it."""
        try:
            return runner.run(served_resource(self._connection, name.api_version, name.kind))
        except NotServedError:
            return None

    def _is_fleet(self, runner: asyncio.Runner) -> bool:
        try:
            runner.run(self._connection.get(f"/apis/{FLEET_CLUSTERS.group}"))
        except (NotFoundError, ForbiddenError):
            return False
        return True

    def _list(self, resource: Resource, runner: asyncio.Runner, *, accept: str = JSON) -> Iterator[Source]:
        """Return the pages of one resource, all at once: an expired continue token makes the list start again."""
        name = f"{self._connection.context_name or self._connection.server} {resource}"
        for _ in range(MAX_PAGED_LIST_ATTEMPTS):
            try:
                return iter([Source(name, page) for page in self._pages(resource, runner, accept)])
            except GoneError:
                continue
        return iter([Source(name, runner.run(self._connection.get(resource.path(), accept=accept)))])

    def _pages(self, resource: Resource, runner: asyncio.Runner, accept: str) -> Iterator[bytes]:
        query = {"limit": str(PAGE_SIZE)}
        while True:
            page = runner.run(self._connection.get(resource.path(), query=query, accept=accept))
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


class ObjectFetcher(ClusterFetcher):
    """Fetches the single objects only."""

    def _all(self, runner: asyncio.Runner) -> Iterator[Source]:
        yield from self._requested(runner)
