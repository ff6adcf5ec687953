"""
Which of several replicas may write: a lease that one holds and renews, and that others take over when it goes silent.

Compatible with client-go: its replicas and ours may stand for the same lease. Whether a lease has run out is measured
from when we last saw it change, on our own monotonic clock; the times written in it are never compared with anything.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import random as randomness
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ConflictError, KubeError, NotFoundError
from bayplan.kube_api.resources import LEASES

_JITTER = 0.2  # of the retry period
_RELEASE_SECONDS = 5.0
_TRIES_IN_TIME = 2  # a renewal that hangs is given up early enough for another one, over another socket


class LeaderElector:
    """
    Stand for election with `run`: it returns once leadership is lost. Cancelled while leading, it hands over at once.

    Whoever writes asks `may_write()` right before: it is false from the moment others may take over, even if the event
    loop was held up and `lost` could not be set in time. Stop writing before you cancel.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_new_leader: Callable[[str], None] = lambda _identity: None,
        on_trouble: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: randomness.Random | None = None,
    ) -> None:
        if not lease_duration > renew_deadline > retry_period * (1 + _JITTER) > 0 or lease_duration < 1:
            raise InputError(
                "leader election: expected lease duration > renew deadline > retry period, with room to spare; "
                f"got {lease_duration:g} s, {renew_deadline:g} s and {retry_period:g} s"
            )
        self.identity, self.leader = identity, ""
        self.leading, self.lost = asyncio.Event(), asyncio.Event()
        self._lease = LeaseLock(connection, namespace, name)
        self._lease_duration, self._renew_deadline, self._retry_period = lease_duration, renew_deadline, retry_period
        self._on_new_leader, self._on_trouble = on_new_leader, on_trouble
        self._clock, self._now, self._sleep = clock, now, sleep
        self._random = random or randomness.Random()  # noqa: S311
        self._record: LeaseRecord | None = None  # as last seen, in this version
        self._version = ""
        self._seen_at = 0.0  # when it was first seen so
        self._renewed_at = 0.0  # when we began to write the record that we hold the lease by

    def may_write(self) -> bool:
        """Whether we lead, and surely still do."""
        return self.leading.is_set() and self._clock() < self._renewed_at + self._renew_deadline

    async def run(self) -> None:
        """Wait until we lead, then lead until that is lost. Without the right to use the lease, fail at once."""
        self.lost.clear()
        await self._acquire()
        self.leading.set()
        try:
            await self._keep()
        except asyncio.CancelledError:
            self.leading.clear()
            await self._release()
            raise
        finally:
            self.leading.clear()
            self.lost.set()

    async def _acquire(self) -> None:
        first = True
        while True:
            try:
                if await self._try():
                    return
            except KubeError as error:
                if first and not error.passing:
                    raise
                self._on_trouble(f"leader election: {error}")
            first = False
            await self._sleep(self._pause())

    def _pause(self) -> float:
        """Until the next try: not past the moment when the lease runs out, and for no two replicas alike."""
        pause = self._retry_period * (1 + _JITTER * self._random.random())
        left = self._runs_out_at() - self._clock()
        return left + 0.1 * self._random.random() if 0 < left < pause else pause

    async def _keep(self) -> None:
        """Renew again and again; return when others may lead by now."""
        while True:
            await self._sleep(min(self._retry_period, self._time_left()))
            try:
                async with asyncio.timeout(min(self._renew_deadline / _TRIES_IN_TIME, self._time_left())):
                    if not await self._try():
                        return
            except TimeoutError:
                self._on_trouble("leader election: no answer while renewing the lease")
            except KubeError as error:
                self._on_trouble(f"leader election: {error}")
            if self._time_left() <= 0:
                return

    def _time_left(self) -> float:
        return max(0.0, self._renewed_at + self._renew_deadline - self._clock())

    async def _try(self) -> bool:
        """Take the lease or renew it; false if it is another's."""
        if self._record is not None and self._record.holder == self.identity:
            try:
                await self._write(self._lease.update)
            except (ConflictError, NotFoundError):
                pass  # it changed under us: look again
            else:
                return True
        try:
            self._see(await self._lease.read())
        except NotFoundError:
            self._record = None
        if self._record is not None and self._is_others():
            return False
        try:
            await self._write(self._lease.update if self._record is not None else self._lease.create)
        except ConflictError:
            return False
        return True

    def _is_others(self) -> bool:
        assert self._record is not None
        return self._record.holder not in {"", self.identity} and self._clock() < self._runs_out_at()

    def _runs_out_at(self) -> float:
        duration = self._record.lease_duration_seconds if self._record is not None else 0
        return self._seen_at + (duration or 0)

    def _see(self, record: LeaseRecord) -> None:
        if self._lease.version == self._version:
            return
        self._record, self._version, self._seen_at = record, self._lease.version, self._clock()
        if record.holder != self.leader:
            self.leader = record.holder
            self._on_new_leader(self.leader)

    async def _write(self, write: Callable[[LeaseRecord], Awaitable[LeaseRecord]]) -> None:
        old = self._record or LeaseRecord()
        renewing, now, began = old.holder == self.identity, micro_time(self._now()), self._clock()
        written = await write(
            LeaseRecord(
                holder_identity=self.identity,
                lease_duration_seconds=int(self._lease_duration),
                acquire_time=old.acquire_time if renewing else now,
                renew_time=now,
                lease_transitions=(old.lease_transitions or 0) + (not renewing and self._record is not None),
            )
        )
        self._renewed_at = began
        self._see(written)

    async def _release(self) -> None:
        """Let the next one lead without waiting, if the lease is still ours; if that fails, it runs out by itself."""
        now = micro_time(self._now())
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                # Read first: a renewal may have been on its way when we were told to stop.
                found = await self._lease.read()
                if found.holder == self.identity:
                    self._see(await self._lease.update(LeaseRecord("", 1, now, now, found.lease_transitions)))
        except (KubeError, TimeoutError) as error:
            self._on_trouble(f"leader election: the lease was not released: {error}")


# RF merged from kube_api.leases: The lease of an election: client-go's record in `coordination.k8s.io/v1`. Writes
# only over the version last seen.


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
