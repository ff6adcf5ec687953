"""
Requests with short responses over HTTP/1.1 connections that stay open: what a scheduler writes.

A scheduler sends two such requests for each pod, and aiohttp takes almost three times the processor time. Lists and
watches, whose responses are long, and requests through a proxy still use aiohttp. Knows bytes, not objects or
credentials.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
import urllib.parse
from collections.abc import Callable

from bayplan.kube_api import transport
from bayplan.kube_api.transport import ConnectFailedError, InvalidResponseError, ResponseCutError, WithheldError

MAX_CONNECTIONS = 128
MAX_IDLE_SECONDS = 15.0  # load balancers forget idle connections, some without closing them
CONNECT_TIMEOUT_SECONDS = 10.0
_MAX_HEAD_BYTES = 64 * 1024
_MAX_RESPONSE_BYTES = 16 * 2**20  # several times the largest object that an API server stores


MaySend = Callable[[], bool]


class ShortResponse:
    """A whole response, with the names that aiohttp has for its parts; names of headers are in lower case."""

    __slots__ = ("_body", "headers", "reason", "status")

    def __init__(self, status: int, reason: str, headers: dict[str, str], body: bytes) -> None:
        self.status, self.reason, self.headers, self._body = status, reason, headers, body

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    async def read(self) -> bytes:
        return self._body


class ResponseReader:
    """
    Reads one response from chunks of bytes.

    `response` is set when it is complete. `is_reusable` then says whether the connection can carry another request.
    """

    def __init__(self) -> None:
        self.response: ShortResponse | None = None
        self.is_reusable = False
        self._received = b""
        self._status, self._reason, self._headers = 0, "", dict[str, str]()
        self._body_at = 0  # 0 until the head is complete
        self._length: int | None = None  # of the body; None if it is chunked or ends with the connection
        self._chunks: list[bytes] | None = None

    @property
    def has_begun(self) -> bool:
        return bool(self._received)

    def feed(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        if len(self._received) > _MAX_RESPONSE_BYTES:
            raise InvalidResponseError
        if not self._body_at and not self._read_head():
            return
        if self._length is not None:
            end = self._body_at + self._length
            if len(self._received) >= end:
                self._complete(self._received[self._body_at : end], end)
        elif self._chunks is not None:
            self._read_chunks(self._chunks)

    def end(self) -> None:
        """The connection was closed, which ends a body without a length."""
        if self._body_at and self._length is None and self._chunks is None:
            self.is_reusable = False
            self._complete(self._received[self._body_at :], len(self._received))

    def _read_head(self) -> bool:
        """Read the status line and the headers; false if they are incomplete."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > _MAX_HEAD_BYTES:
                raise InvalidResponseError
            return False
        status_line, *lines = self._received[:end].decode("latin-1").split("\r\n")
        version, _, rest = status_line.partition(" ")
        status, _, self._reason = rest.partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (len(status) == 3 and status.isdecimal()):
            raise InvalidResponseError
        self._status = int(status)
        if self._status in (100, 102, 103):  # informational: the response follows
            self._received = self._received[end + 4 :]
            return bool(self._received) and self._read_head()
        self._headers = headers = {
            name.lower(): value.strip() for name, _, value in [line.partition(":") for line in lines]
        }
        self.is_reusable = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        self._body_at = end + 4
        self._read_length(headers)
        return True

    def _read_length(self, headers: dict[str, str]) -> None:
        length = headers.get("content-length")
        if self._status in (204, 304):
            self._length = 0
        elif "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked":
                raise InvalidResponseError
            self._chunks = []
        elif length is not None:
            if not length.isdecimal():
                raise InvalidResponseError
            self._length = int(length)

    def _read_chunks(self, chunks: list[bytes]) -> None:
        while (end := self._received.find(b"\r\n", self._body_at)) >= 0:
            digits = self._received[self._body_at : end].partition(b";")[0].strip()
            if not digits.isalnum() or len(digits) > 8:
                raise InvalidResponseError
            try:
                size = int(digits, 16)
            except ValueError:
                raise InvalidResponseError from None
            if not size:  # trailers, if any, and an empty line
                stop = self._received.find(b"\r\n\r\n", end)
                if stop >= 0:
                    self._complete(b"".join(chunks), stop + 4)
                return
            stop = end + 2 + size
            if len(self._received) < stop + 2:
                return
            chunks.append(self._received[end + 2 : stop])
            self._body_at = stop + 2

    def _complete(self, body: bytes, end: int) -> None:
        self.is_reusable = self.is_reusable and len(self._received) == end
        self.response = ShortResponse(self._status, self._reason, self._headers, body)


class _Channel(asyncio.Protocol):
    """One connection, with one request at a time. `is_open` is false once it can carry no other request."""

    def __init__(self, tls: ssl.SSLContext | None, on_lost: Callable[[_Channel], None]) -> None:
        self.tls = tls
        self.is_open = False
        self.idle_since = 0.0
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._reader = ResponseReader()
        self._answer: asyncio.Future[ShortResponse] | None = None
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def answer_has_begun(self) -> bool:
        return self._reader.has_begun

    def connection_made(self, made: asyncio.BaseTransport) -> None:
        assert isinstance(made, asyncio.Transport)
        self._transport, self.is_open = made, True
        transport.keep_alive(made.get_extra_info("socket"))

    async def send(
        self,
        request: bytes,
        timeout: float | None,  # noqa: ASYNC109
        may_send: MaySend | None,
    ) -> ShortResponse:
        """The response. Without one the connection is aborted, so that a late one does not answer the next request."""
        loop = asyncio.get_running_loop()
        self._reader, self._answer = ResponseReader(), loop.create_future()
        self._set_deadline(None if timeout is None else loop.time() + timeout)
        try:
            self._write(request, may_send)
            return await self._answer
        except BaseException:
            self.abort()
            raise
        finally:
            self._answer = None

    def _write(self, request: bytes, may_send: MaySend | None) -> None:
        # Judged here and not earlier: everything before may have waited for long.
        if may_send is not None and not may_send():
            raise WithheldError
        assert self._transport is not None, "a connection that is open has a transport"
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._reader.response is not None:
            self.abort()  # nothing was asked
            return
        try:
            self._reader.feed(data)
        except InvalidResponseError as error:
            self._fail(error)
        else:
            self._deliver()

    def eof_received(self) -> None:
        self.is_open = False  # the connection is lost in the next iteration of the event loop

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open, self._transport = False, None
        self._stop_timer()
        self._on_lost(self)
        if self._answer is None:
            return
        self._reader.end()
        self._deliver()
        if self._reader.has_begun:
            self._fail(ResponseCutError())
        else:
            self._fail(error or ConnectionAbortedError("the server closed it"))

    def _set_deadline(self, deadline: float | None) -> None:
        """
        Set when the request in progress fails.

        A timer that is set for earlier stays and is set again when it fires: requests need a timer each only if they
        take long.
        """
        self._deadline = deadline
        if deadline is not None and (self._timer is None or self._timer.when() > deadline):
            self._stop_timer()
            self._timer = asyncio.get_running_loop().call_at(deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._answer is None or self._deadline is None:
            return
        if asyncio.get_running_loop().time() >= self._deadline:
            self._fail(TimeoutError())
        else:
            self._set_deadline(self._deadline)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abort(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _deliver(self) -> None:
        response = self._reader.response
        if response is not None and self._answer is not None and not self._answer.done():
            if not self._reader.is_reusable:
                self.abort()
            self._answer.set_result(response)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


class ConnectionPool:
    """
    The open connections to one server.

    `server` is its address; `server_name` is the name in its certificate, if that is not the host. The connection that
    was used last is used first, so a scheduler with little to do keeps few of them.
    """

    def __init__(self, server: str, server_name: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        parts = urllib.parse.urlsplit(server)
        self._is_tls = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._is_tls else 80)
        self._server_name = (server_name or self._host).rstrip(".")
        self._clock = clock
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: list[_Channel] = []
        self._open: set[_Channel] = set()
        self.n_opened = 0  # connections opened so far

    async def exchange(
        self,
        request: bytes,
        tls: ssl.SSLContext | None,
        timeout: float | None,  # noqa: ASYNC109
        *,
        is_idempotent: bool,
        may_send: MaySend | None = None,
    ) -> ShortResponse:
        """
        Send a request and return the response; waiting for a free connection has a timeout of its own.

        A server may close an idle connection at the moment of a request. Only an idempotent request is then sent again.
        `may_send` is called each time right before bytes are sent; if it is false, `WithheldError` is raised instead.
        """
        if self._slots.locked():
            async with asyncio.timeout(timeout):
                await self._slots.acquire()
        else:
            await self._slots.acquire()
        try:
            channel = self._take_idle(tls)
            if channel is not None:
                try:
                    return await self._send(channel, request, timeout, may_send)
                except ConnectionError:
                    if channel.answer_has_begun or not is_idempotent:
                        raise
            async with asyncio.timeout(timeout):
                return await self._send(await self._connect(tls), request, None, may_send)
        finally:
            self._slots.release()

    def close(self) -> None:
        """Abort all connections: a graceful TLS shutdown would outlast the event loop."""
        for channel in list(self._open):
            channel.abort()
        self._idle.clear()

    async def _send(
        self,
        channel: _Channel,
        request: bytes,
        timeout: float | None,  # noqa: ASYNC109
        may_send: MaySend | None,
    ) -> ShortResponse:
        response = await channel.send(request, timeout, may_send)
        if channel.is_open:
            channel.idle_since = self._clock()
            self._idle.append(channel)
        return response

    def _take_idle(self, tls: ssl.SSLContext | None) -> _Channel | None:
        """A connection that was used recently and with these certificates; all others are closed."""
        while self._idle:
            channel = self._idle.pop()
            if channel.is_open and channel.tls is tls and self._clock() - channel.idle_since < MAX_IDLE_SECONDS:
                return channel
            channel.abort()
        return None

    async def _connect(self, tls: ssl.SSLContext | None) -> _Channel:
        loop = asyncio.get_running_loop()
        name = self._server_name if self._is_tls else None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                _, channel = await loop.create_connection(
                    lambda: _Channel(tls, self._lost),
                    self._host,
                    self._port,
                    ssl=tls,
                    server_hostname=name,
                    happy_eyeballs_delay=0.25,
                )
        except (OSError, TimeoutError) as error:
            raise ConnectFailedError(error) from error
        self.n_opened += 1
        self._open.add(channel)
        return channel

    def _lost(self, channel: _Channel) -> None:
        self._open.discard(channel)
        with contextlib.suppress(ValueError):
            self._idle.remove(channel)
