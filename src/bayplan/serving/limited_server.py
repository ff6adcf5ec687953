"""
Serves an aiohttp application to clients that may be slow, idle or hostile.

Connections are limited in number and in time. When a new one arrives at the limit, another is closed for it: the oldest
that was not recognised, of the address that has most of them. So clients that only hold connections open, or come again
and again, keep those out that share their address at most. An application recognises a client by its request
(`recognise`). Only when all connections are of recognised clients that wait for a response does a new one have to wait.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import os
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Self

import msgspec
from aiohttp import web

from bayplan.errors import InputError

LIMIT, SLOW, IDLE = "limit", "slow", "idle"
_ACCEPT_PAUSE_SECONDS = 0.1
_TLS_SHUTDOWN_SECONDS = 1.0
_SHUTDOWN_SECONDS = 5.0  # for requests that are being answered
_BACKLOG = 128
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """
    The limits of one server.

    `request_seconds` is the time for a TLS handshake, and again for the header of a request; `idle_seconds` is how long
    a connection stays open after a response. The number of connections is also limited to a quarter of the file
    descriptors that the process may open: the rest is for everything else that it does.
    """

    connections: int
    request_seconds: float = 5.0
    idle_seconds: float

    def max_connections(self) -> int:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return self.connections if soft == resource.RLIM_INFINITY else max(1, min(self.connections, soft // 4))


class _Connection(asyncio.Protocol):
    """One connection: aiohttp's protocol, with a deadline for what the client must do next."""

    def __init__(self, server: LimitedServer, inner: asyncio.Protocol, address: str) -> None:
        self._server, self.inner, self.address = server, inner, address
        self.transport: asyncio.Transport | None = None
        self.opening: asyncio.Task[None] | None = None
        self.recognised = False
        self.idle = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._set_deadline(self._server.limits.request_seconds, SLOW)
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self.idle:  # the first bytes after a response
            self.idle = False
            self._set_deadline(self._server.limits.request_seconds, SLOW)
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._clear_deadline()
        self._server.forget(self)
        self.inner.connection_lost(error)

    def header_read(self) -> None:
        """The application now answers; the body has a time limit of its own."""
        self.idle = False
        self._clear_deadline()

    def answered(self) -> None:
        self.idle = True
        self._set_deadline(self._server.limits.idle_seconds, IDLE)
        self._server.room.set()

    def close(self, cause: str) -> None:
        """End the connection at once, in whatever state it is."""
        self._server.closed[cause] += 1
        self._server.forget(self)
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def _set_deadline(self, seconds: float, cause: str) -> None:
        self._clear_deadline()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.close, cause)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class LimitedServer:
    """
    An async context manager that serves one application; port 0 is replaced by the chosen port.

    `tls` returns the context for the next connection, None to close it; without `tls` there is no TLS. With
    `close_strangers` a connection that is not recognised is closed after its response. `closed` counts the connections
    that were closed because of a limit, by cause.
    """

    def __init__(
        self,
        app: web.Application,
        host: str,
        port: int,
        limits: ServerLimits,
        tls: Callable[[], ssl.SSLContext | None] | None = None,
        *,
        close_strangers: bool = False,
    ) -> None:
        self.host, self.port, self.limits = host, port, limits
        self._close_strangers = close_strangers
        self.closed: collections.Counter[str] = collections.Counter()
        self._tls = tls
        self._max_connections = limits.max_connections()
        app.middlewares.insert(0, self._track)
        # Idle connections are closed here; aiohttp must not do it before, nor read on after a refused request.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=2 * limits.idle_seconds,
            lingering_time=0,
            shutdown_timeout=_SHUTDOWN_SECONDS,
        )
        self._strangers: dict[str, dict[_Connection, None]] = {}  # by address, in the order of their arrival
        self._recognised: dict[_Connection, None] = {}
        self.room = asyncio.Event()  # set when a connection ends or becomes idle
        self._by_protocol: dict[object, _Connection] = {}
        self._accepting: list[asyncio.Task[None]] = []
        self._listeners: list[socket.socket] = []

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await self._listen()
        except OSError as error:
            await self.__aexit__()
            raise InputError(f"cannot listen on {self.host}:{self.port}: {_cause(error)}") from None
        loop = asyncio.get_running_loop()
        self._accepting = [loop.create_task(self._accept(listener)) for listener in self._listeners]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        await self._runner.cleanup()
        strangers = (one for of_address in self._strangers.values() for one in of_address)
        for connection in (*strangers, *self._recognised):
            connection.close(IDLE)

    def recognise(self, request: web.BaseRequest) -> None:
        """Keep the connection of this request open after the response, and prefer it to unknown ones."""
        connection = self._by_protocol.get(request.protocol)
        if connection is not None and not connection.recognised:
            self.forget(connection)
            connection.recognised = True
            self._by_protocol[connection.inner] = connection
            self._recognised[connection] = None

    @property
    def connections(self) -> int:
        return len(self._by_protocol)

    # Accepting

    async def _listen(self) -> None:
        found = await asyncio.get_running_loop().getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in dict.fromkeys(found):
            listener = socket.socket(family, socket.SOCK_STREAM)
            self._listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], self.port, *address[2:]))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            self.port = listener.getsockname()[1]

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listener)
            except OSError:  # out of descriptors, or the client is gone already
                self._make_room()
                await asyncio.sleep(_ACCEPT_PAUSE_SECONDS)
                continue
            tls = None if self._tls is None else self._tls()
            if self._tls is not None and tls is None:
                accepted.close()
                continue
            while self.connections >= self._max_connections and not self._make_room():
                self.room.clear()
                await self.room.wait()
            assert self._runner.server is not None
            connection = _Connection(self, self._runner.server(), address[0])
            self._strangers.setdefault(connection.address, {})[connection] = None
            self._by_protocol[connection.inner] = connection
            connection.opening = task = loop.create_task(self._open(connection, accepted, tls))
            task.add_done_callback(functools.partial(_close_if_never_opened, accepted))

    def _make_room(self) -> bool:
        """Close the connection that is least worth keeping. Return false if there is none to close."""
        most = max(self._strangers, key=lambda address: len(self._strangers[address]), default=None)
        candidates = (one for one in self._recognised if one.idle) if most is None else iter(self._strangers[most])
        oldest = next(candidates, None)
        if oldest is not None:
            oldest.close(LIMIT)
        return oldest is not None

    async def _open(self, connection: _Connection, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        times = {} if tls is None else {
            "ssl_handshake_timeout": self.limits.request_seconds, "ssl_shutdown_timeout": _TLS_SHUTDOWN_SECONDS
        }  # fmt: skip
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, accepted, ssl=tls, **times)
        except ConnectionAbortedError:  # no handshake in time
            self.closed[SLOW] += 1
            self.forget(connection)
        except (OSError, asyncio.CancelledError):  # no TLS, a wrong client certificate, or closed by us
            self.forget(connection)

    def forget(self, connection: _Connection) -> None:
        """The connection no longer counts."""
        if self._by_protocol.pop(connection.inner, None) is None:
            return
        self.room.set()
        if connection.recognised:
            del self._recognised[connection]
            return
        of_address = self._strangers[connection.address]
        del of_address[connection]
        if not of_address:
            del self._strangers[connection.address]

    @web.middleware
    async def _track(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        connection = self._by_protocol.get(request.protocol)
        if connection is None:
            return await handler(request)
        connection.header_read()
        try:
            response = await handler(request)
        except web.HTTPException as error:
            self._end_unless_recognised(connection, error)
            raise
        finally:
            connection.answered()
        self._end_unless_recognised(connection, response)
        return response

    def _end_unless_recognised(self, connection: _Connection, response: web.StreamResponse) -> None:
        if self._close_strangers and not connection.recognised:
            response.force_close()


def _close_if_never_opened(accepted: socket.socket, opening: asyncio.Task[None]) -> None:
    if opening.cancelled():  # before it began, so that no transport owns the socket
        accepted.close()


def _cause(error: OSError) -> str:
    """Return the cause alone: the message of a failed bind repeats the address."""
    with contextlib.suppress(ValueError):
        if error.errno and not isinstance(error, socket.gaierror):
            return os.strerror(error.errno)
    return error.strerror or str(error)
