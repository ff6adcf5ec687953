"""
Leader election by a Lease: one replica holds and renews it, another acquires it when it expires.

Compatible with client-go, whose replicas may compete for the same lease. Expiry is measured from when this replica last
observed a change, on its own clock; the times in the lease are never compared with a clock.

Leadership is a moment on that clock, until which this replica leads, and not a state that somebody has to end. It ends
before any other replica may acquire the lease, also if this process does not run at that moment.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import random as randomness
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.kube_api import decoding
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ConflictError, KubeError, NotFoundError
from bayplan.kube_api.resources import LEASES

_JITTER = 0.2  # share of the retry period
_RELEASE_TIMEOUT_SECONDS = 5.0
_NOT_LEADING = -math.inf
_MAX_INT32 = 2**31 - 1  # the type of leaseTransitions
_RENEWALS_PER_DEADLINE = 2  # a renewal that hangs is abandoned early enough for another, over another socket


def running_time() -> float:
    """Seconds on a clock that goes on while the process or, where the system can tell, the machine is suspended."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)  # not on every system
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class LeaderElector:
    """
    `run` acquires the lease and returns when leadership is lost. Cancelled while leading, it releases the lease.

    Check `may_write()` right before each write, in any thread: it is false from before the moment another replica may
    acquire the lease, even if nothing ran for a while and `lost` could not be set in time. Stop writing before
    cancelling `run`.
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
        clock: Callable[[], float] = running_time,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: randomness.Random | None = None,
    ) -> None:
        if not lease_duration > renew_deadline > retry_period * (1 + _JITTER) > 0 or lease_duration < 1:
            raise InputError(
                "leader election: expected lease duration > renew deadline > retry period, with a margin; "
                f"got {lease_duration:g} s, {renew_deadline:g} s and {retry_period:g} s"
            )
        self.identity, self.leader = identity, ""
        self.leading, self.lost = asyncio.Event(), asyncio.Event()
        self._lease = LeaseLock(connection, namespace, name)
        # A lease has whole seconds. Rounded down it could expire for others while this replica still leads.
        self._lease_seconds = math.ceil(lease_duration)
        self._renew_deadline, self._retry_period = renew_deadline, retry_period
        self._on_new_leader, self._on_trouble = on_new_leader, on_trouble
        self._clock, self._now, self._sleep = clock, now, sleep
        self._random = random or randomness.Random()  # noqa: S311
        self._record: LeaseRecord | None = None  # as last observed, with this version
        self._version = ""
        self._seen_at = 0.0  # when this version was first observed
        self._leads_until = _NOT_LEADING  # a renew deadline after the last successful renewal began

    def may_write(self) -> bool:
        """Whether this replica holds the lease and cannot have lost it."""
        return self._clock() < self._leads_until

    async def run(self) -> None:
        """Acquire the lease, then renew it until it is lost. Fails at once if access to the lease is forbidden."""
        self.lost.clear()
        await self._acquire()
        self.leading.set()
        try:
            await self._renew_until_lost()
        except asyncio.CancelledError:
            self._end_leadership()
            await self._release()
            raise
        finally:
            self._end_leadership()
            self.lost.set()

    def _end_leadership(self) -> None:
        self._leads_until = _NOT_LEADING
        self.leading.clear()

    async def _acquire(self) -> None:
        first = True
        while True:
            try:
                if await self._try_acquire():
                    return
            except KubeError as error:
                if first and not error.retriable:
                    raise
                self._on_trouble(f"leader election: {error}")
            first = False
            await self._sleep(self._pause())

    def _pause(self) -> float:
        """Seconds until the next attempt, with jitter: not past the expiry of the lease."""
        pause = self._retry_period * (1 + _JITTER * self._random.random())
        left = self._expires_at() - self._clock()
        return left + 0.1 * self._random.random() if 0 < left < pause else pause

    async def _renew_until_lost(self) -> None:
        """Renew periodically; returns when another replica may have acquired the lease."""
        while True:
            await self._sleep(min(self._retry_period, self._time_left()))
            try:
                async with asyncio.timeout(min(self._renew_deadline / _RENEWALS_PER_DEADLINE, self._time_left())):
                    if not await self._try_acquire():
                        return
            except TimeoutError:
                self._on_trouble("leader election: no response while renewing the lease")
            except KubeError as error:
                self._on_trouble(f"leader election: {error}")
            if self._time_left() <= 0:
                return

    def _time_left(self) -> float:
        return max(0.0, self._leads_until - self._clock())

    async def _try_acquire(self) -> bool:
        """Acquire or renew the lease; false if another replica holds it."""
        if self._record is not None and self._record.holder == self.identity:
            try:
                await self._write(self._lease.update)
            except (ConflictError, NotFoundError):
                pass  # the lease changed meanwhile: read it again
            else:
                return True
        write = self._lease.update
        try:
            self._observe(await self._lease.read())
        except NotFoundError:
            # The holder that was observed last does not know yet that its lease was deleted, and leads until it does.
            write, self._version = self._lease.create, ""
        if self._is_held_by_other():
            return False
        try:
            await self._write(write)
        except ConflictError:
            return False
        return True

    def _is_held_by_other(self) -> bool:
        held_by_other = self._record is not None and self._record.holder not in {"", self.identity}
        return held_by_other and self._clock() < self._expires_at()

    def _expires_at(self) -> float:
        if self._record is None:
            return self._seen_at
        return self._seen_at + (self._record.lease_duration_seconds or self._lease_seconds)

    def _observe(self, record: LeaseRecord) -> None:
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
                lease_duration_seconds=self._lease_seconds,
                acquire_time=old.acquire_time if renewing else now,
                renew_time=now,
                lease_transitions=min(
                    (old.lease_transitions or 0) + (not renewing and self._record is not None), _MAX_INT32
                ),
            )
        )
        self._leads_until = began + self._renew_deadline
        self._observe(written)

    async def _release(self) -> None:
        """Release the lease if this replica still holds it; if that fails, it expires by itself."""
        now = micro_time(self._now())
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT_SECONDS):
                # Read first: a renewal may have been in flight when `run` was cancelled.
                found = await self._lease.read()
                if found.holder == self.identity:
                    self._observe(await self._lease.update(LeaseRecord("", 1, now, now, found.lease_transitions)))
        except (KubeError, TimeoutError) as error:
            self._on_trouble(f"leader election: the lease was not released: {error}")


class LeaseRecord(msgspec.Struct, rename="camel", frozen=True):
    """The spec of a Lease as client-go writes it. Its times are informational, because clocks differ."""

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
    """One Lease, written only over the version last observed. Metadata set by others is kept."""

    def __init__(self, connection: Connection, namespace: str, name: str) -> None:
        self._connection, self._namespace, self._name = connection, namespace, name
        self._metadata: dict[str, Any] = {}

    @property
    def version(self) -> str:
        """The resource version last observed; a new one shows that the holder is alive, whatever its clock says."""
        return str(self._metadata.get("resourceVersion", ""))

    async def read(self) -> LeaseRecord:
        path = LEASES.path(self._namespace, self._name)
        return self._decoded("GET", path, await self._connection.request("GET", path, retry=False, limited=False))

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        metadata = {"namespace": self._namespace, "name": self._name}
        return await self._write("POST", LEASES.path(self._namespace), metadata, record)

    async def update(self, record: LeaseRecord) -> LeaseRecord:
        """Write the record; `ConflictError` if the lease has changed since it was last observed."""
        return await self._write("PUT", LEASES.path(self._namespace, self._name), self._metadata, record)

    async def _write(self, method: str, path: str, metadata: dict[str, Any], record: LeaseRecord) -> LeaseRecord:
        lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": record}
        body = msgspec.json.encode(lease)
        answer = await self._connection.request(method, path, body=body, retry=False, limited=False)
        return self._decoded(method, path, answer)

    def _decoded(self, method: str, path: str, answer: bytes) -> LeaseRecord:
        lease = decoding.decoded(_LEASE, answer, self._connection.tried(method, path))
        self._metadata = lease.metadata
        return lease.spec or LeaseRecord()


def micro_time(moment: dt.datetime) -> str:
    return f"{moment.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
