"""
Reads a live cluster once, page by page, for commands that do not watch.

The pages are read by the same code as dumps, so a cluster and its dump give the same answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from bayplan.kube_api import resources
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.decoding import DECODE_ERRORS
from bayplan.kube_api.errors import ForbiddenError, GoneError, NotFoundError, WrongServerError
from bayplan.kube_api.resources import PODS, Resource
from bayplan.reading.documents import Source
from bayplan.wire import kinds
from bayplan.wire.kinds import Trait

PAGE_SIZE = 500
MAX_PAGED_LIST_ATTEMPTS = 4
NODES = resources.of_kind("Node")
# A decision needs these. Without an optional resource the answer is less exact, and a note says so.
REQUIRED_RESOURCES = (NODES, PODS)
FLEET_CLUSTERS = resources.of_kind("Cluster")


class _ListMeta(msgspec.Struct, rename="camel"):
    continue_: str = msgspec.field(default="", name="continue")


class _Envelope(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


_envelope = msgspec.json.Decoder(_Envelope)


def optional_resources() -> list[Resource]:
    """The resources of all other kinds of Kubernetes that are decoded, group by group."""
    rows = sorted((row for row in kinds.decoded() if not row.is_karmada), key=lambda row: row.group)
    return [found for found in map(resources.resource_of, rows) if found not in REQUIRED_RESOURCES]


def fleet_resources() -> list[Resource]:
    """What a fleet has beside its clusters: everything with a placement."""
    return [resources.resource_of(row) for row in kinds.having(Trait.HAS_PLACEMENT)]


class ObjectToFetch(msgspec.Struct, frozen=True):
    """One object to fetch by name."""

    resource: Resource
    namespace: str
    name: str


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
        for resource in (*REQUIRED_RESOURCES, *(fleet_resources() if clusters else ())):
            yield from self._list(resource, runner)
        for resource in optional_resources():
            try:
                yield from self._list(resource, runner)
            except (ForbiddenError, NotFoundError) as error:
                same = (r.kind for r in kinds.decoded() if (r.group, r.plural) == (resource.group, resource.plural))
                self.kinds_not_listed.update(same)
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
