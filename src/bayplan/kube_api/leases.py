"""The lease of an election: client-go's record in `coordination.k8s.io/v1`. Writes only over the version last seen."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec

from bayplan.kube_api.connection import Connection
from bayplan.kube_api.resources import LEASES


class LeaseRecord(msgspec.Struct, rename="camel", frozen=True):
    """Who leads, for how long without a sign of life, and since when. Times are for readers: clocks differ."""

    holder_identity: str | None = ""
    lease_duration_seconds: int | None = 0
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = 0

    @property
    def holder(self) -> str:
        return self.holder_identity or ""


class _Lease(msgspec.Struct):
    metadata: dict[str, Any]
    spec: LeaseRecord | None = None


_LEASE = msgspec.json.Decoder(_Lease)


class LeaseLock:
    """One lease. Labels and whatever else others put into its metadata stay."""

    def __init__(self, connection: Connection, namespace: str, name: str) -> None:
        self._connection, self._namespace, self._name = connection, namespace, name
        self._metadata: dict[str, Any] = {}

    @property
    def version(self) -> str:
        """The version last seen; another one is a sign of life, whatever the clocks that wrote the record say."""
        return str(self._metadata.get("resourceVersion", ""))

    async def read(self) -> LeaseRecord:
        path = LEASES.path(self._namespace, self._name)
        return self._seen(await self._connection.request("GET", path, retry=False, limited=False))

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        metadata = {"namespace": self._namespace, "name": self._name}
        return await self._write("POST", LEASES.path(self._namespace), metadata, record)

    async def update(self, record: LeaseRecord) -> LeaseRecord:
        """`ConflictError` if somebody else has written since we last saw the lease."""
        return await self._write("PUT", LEASES.path(self._namespace, self._name), self._metadata, record)

    async def _write(self, method: str, path: str, metadata: dict[str, Any], record: LeaseRecord) -> LeaseRecord:
        lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": record}
        body = msgspec.json.encode(lease)
        return self._seen(await self._connection.request(method, path, body=body, retry=False, limited=False))

    def _seen(self, answer: bytes) -> LeaseRecord:
        lease = _LEASE.decode(answer)
        self._metadata = lease.metadata
        return lease.spec or LeaseRecord()


def micro_time(moment: dt.datetime) -> str:
    return f"{moment.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
