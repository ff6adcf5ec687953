"""
A connection to one API server: requests with retries, and streams.

Knows paths and bytes, not objects. Follows no redirects, sends credentials over TLS only, and never shows them.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import platform
import sys
import time
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

import aiohttp
import msgspec
import yarl
from aiohttp.abc import AbstractStreamWriter

import bayplan
from bayplan.kube_api import access as accesses
from bayplan.kube_api import credentials, errors, transport
from bayplan.kube_api.access import Access, ConnectOptions
from bayplan.kube_api.credentials import Credential
from bayplan.kube_api.errors import (
    KubeError,
    ServerUnavailableError,
    TooManyRequestsError,
    WrongServerError,
)
from bayplan.kube_api.http1 import CONNECT_TIMEOUT_SECONDS, ConnectionPool, MaySend
from bayplan.kube_api.pacing import TokenBucket
from bayplan.kube_api.tls import TlsContexts
from bayplan.kube_api.transport import WithheldError

JSON = "application/json"
_MAX_CONNECTIONS = 250  # each watch holds one
_STREAM_BUFFER_BYTES = 256 * 1024  # how far a stream may run ahead of its reader
_CLOSING_LOOP_TURNS = 5
_MAX_ATTEMPTS = 5
_MAX_RETRY_WAIT_SECONDS = 30.0  # total of all waits of one request
_IDEMPOTENT = frozenset({"PUT", "DELETE"})
_ANONYMOUS = Credential()
_MAX_CACHED_HEADERS = 16

Observer = Callable[[str, str, float], None]


class _Call(msgspec.Struct, frozen=True):
    """One request, the same for each attempt."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str
    timeout: float | None = None  # seconds, for the whole response
    body: bytes | None = None
    content_type: str = JSON
    inactivity: float | None = None  # seconds without data, for a stream
    may_send: MaySend | None = None

    @property
    def target(self) -> str:
        return f"{self.path}?{urllib.parse.urlencode(self.query)}" if self.query else self.path


class _Response(Protocol):
    """A response of aiohttp or of `http1`."""

    status: int

    @property
    def reason(self) -> str | None: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def content_type(self) -> str: ...
    async def read(self) -> bytes: ...


class Connection:
    """
    An async context manager around the HTTP connections to one server.

    Writes have short responses and use `http1`, unless there is a proxy; everything else uses aiohttp.

    `observer`, if set, is called for every response with the method, the status code (`<error>` if there was none)
    and the duration in seconds.
    """

    def __init__(
        self,
        access: Access,
        options: ConnectOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.server, self.namespace, self.context_name = access.server, access.namespace, access.context_name
        self.observer: Observer | None = None
        self._access, self._options, self._clock, self._sleep = access, options, clock, sleep
        self._is_tls = access.server.startswith("https:")
        self._timeout = options.request_timeout or None
        self._contexts = TlsContexts(access.trust, clock)
        # As client-go's schedulers, which have a client of their own for events: they never wait for each other.
        self._limiter, self._event_limiter = (
            TokenBucket(options.qps, options.burst or 1, clock, sleep) if options.qps else None for _ in range(2)
        )
        self._session: aiohttp.ClientSession | None = None
        self.pool = (
            None
            if access.proxy or not self.server.isascii()
            else ConnectionPool(self.server, access.trust.server_name, clock)
        )
        parts = urllib.parse.urlsplit(self.server)
        self._host, self._base_path = parts.netloc, parts.path
        self._credential = _ANONYMOUS  # the last one sent
        self._version = ""  # as last reported
        self._headers: list[tuple[str, str]] = []
        self._encoded_headers: dict[tuple[str, str, str], bytes] = {}

    def __repr__(self) -> str:
        return f"Connection(server={self.server!r}, context_name={self.context_name!r})"

    def separate(self) -> Connection:
        """
        Another connection to the same server with its own sockets and credentials, which never waits for this one.

        It may be used in another thread, with an event loop of its own.
        """
        access = msgspec.structs.replace(self._access, credentials=self._access.credentials.separate())
        return Connection(access, self._options, clock=self._clock, sleep=self._sleep)

    async def __aenter__(self) -> Self:
        compression = self._access.compression and not accesses.is_loopback(self.server)
        self._headers = [
            ("User-Agent", f"bayplan/{bayplan.__version__} ({sys.platform}/{platform.machine()})"),
            *self._access.impersonation.headers(),
        ]
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, socket_factory=transport.keep_alive_socket),
            headers=[*self._headers, ("Accept-Encoding", "gzip" if compression else "identity")],
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_STREAM_BUFFER_BYTES,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        if self._session.connector is not None:
            # No request is in flight; a graceful TLS shutdown would outlast the event loop.
            await self._session.connector.close(abort_ssl=True)
        await self._session.close()
        if self.pool is not None:
            self.pool.close()
        for _ in range(
            _CLOSING_LOOP_TURNS
        ):  # sockets of half-open connections close in the next turns of the event loop
            await asyncio.sleep(0)
        self._session = None

    async def get(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str = JSON,
        timeout: float | None = None,  # noqa: ASYNC109
        retry: bool = True,
    ) -> bytes:
        return await self.request("GET", path, query=query, accept=accept, timeout=timeout, retry=retry)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,  # noqa: ASYNC109
        retry: bool | None = None,
        limited: bool = True,
        may_send: MaySend | None = None,
    ) -> bytes:
        """
        The body of a successful response; any other response is raised as an error.

        A 429 or 503 with a Retry-After is retried, within limits, unless `retry` is false. By default every method but
        POST is retried, because a repeated POST could create an object twice. `limited=False` bypasses the client-side
        rate limit for the few requests that must not queue behind others. `may_send` is called after all waits, right
        before each attempt is sent; if it is false, nothing is sent and `FencedError` is raised.
        """
        total = timeout if timeout is not None else self._timeout
        call = _Call(method, path, query or {}, accept, total, body, content_type, may_send=may_send)
        limiter = self._event_limiter if _is_event(path) else self._limiter
        if limiter and limited:
            await limiter.take()
        attempts, waited = _MAX_ATTEMPTS if (method != "POST" if retry is None else retry) else 1, 0.0
        while True:
            attempts -= 1
            try:
                return await self._whole_answer(call)
            except (TooManyRequestsError, ServerUnavailableError) as error:
                wait = error.retry_after
                if not attempts or wait is None or waited + wait > _MAX_RETRY_WAIT_SECONDS:
                    raise
            waited += wait
            await self._sleep(wait)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], accept: str = JSON, inactivity: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The response in chunks as they arrive, until it ends; no data for `inactivity` seconds is an error."""
        if self._limiter:
            await self._limiter.take()
        call, response = _Call("GET", path, query, accept, inactivity=inactivity), None
        try:
            response = await self._answer(call)
            assert isinstance(response, aiohttp.ClientResponse)
            yield response.content.iter_any()
        except transport.FAILURES as error:
            raise self._translated(error, call) from error
        finally:
            _close(response)

    def tried(self, method: str, path: str) -> str:
        """The request as shown in errors."""
        return f"{method} {self.server}{path}"

    async def version(self) -> str:
        """The version that the API server reports, asked once; a server without one is not a Kubernetes API server."""
        if self._version:
            return self._version
        try:
            found = _VERSION.decode(await self.get("/version"))
        except ValueError:
            found = _Version()
        if not found.git_version:
            raise WrongServerError(f"{self.tried('GET', '/version')}: no version; is this a Kubernetes API server?")
        self._version = found.git_version
        return self._version

    async def _whole_answer(self, call: _Call) -> bytes:
        """The body of a successful response."""
        response = None
        try:
            response = await self._answer(call)
            return await response.read()
        except transport.FAILURES as error:
            raise self._translated(error, call) from error
        finally:
            _close(response)

    async def _answer(self, call: _Call) -> _Response:
        """A successful response. Credentials that the server rejects are renewed once."""
        may_renew = self._is_tls
        while True:
            self._credential = await self._access.credentials.current() if self._is_tls else _ANONYMOUS
            credential = self._credential
            began, code = self._clock(), "<error>"
            try:
                response = await self._send(call, credential)
                code = str(response.status)
            finally:
                if self.observer is not None:
                    self.observer(call.method, code, self._clock() - began)
            if response.status < 300:
                if call.accept.startswith(JSON) and "json" not in response.content_type:
                    _close(response)
                    raise WrongServerError(
                        f"{self.tried(call.method, call.path)}: expected JSON, got {response.content_type}; "
                        "is this a Kubernetes API server?"
                    )
                return response
            try:
                if response.status == 401 and may_renew:
                    may_renew = False
                    await response.read()
                    if await self._access.credentials.renew(credential):
                        continue
                # Not kept in a variable: the error would hold this frame, and the frame the error.
                raise await self._error(call, response, credential)
            finally:
                _close(response)

    def _translated(self, error: Exception, call: _Call) -> KubeError:
        found = transport.translated(error, self.tried(call.method, call.path), self.server, self._access.proxy)
        hint = credentials.disconnect_hint(self._credential, dt.datetime.now(dt.UTC)) if found.retriable else ""
        return type(found)(f"{found}{hint}") if hint else found

    async def _send(self, call: _Call, credential: Credential) -> _Response:
        assert self._session is not None, "a connection is used within `async with`"
        tls = self._contexts.current(credential.certificate) if self._is_tls else None
        if self.pool is not None and call.method != "GET":
            body = call.body or b""
            head = f"{call.method} {self._base_path}{call.target} HTTP/1.1\r\nContent-Length: {len(body)}\r\n"
            return await self.pool.exchange(
                head.encode("ascii") + self._header_lines(call, credential) + body,
                tls,
                call.timeout,
                is_idempotent=call.method in _IDEMPOTENT,
                may_send=call.may_send,
            )
        return await self._session.request(
            call.method,
            yarl.URL(f"{self.server}{call.target}", encoded=True),
            data=call.body if call.may_send is None else _FencedBody(call.body or b"", call.may_send),
            headers=_own_headers(call, credential),
            timeout=aiohttp.ClientTimeout(
                total=call.timeout, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=call.inactivity
            ),
            allow_redirects=False,
            proxy=self._access.proxy or None,
            ssl=tls or True,
            server_hostname=self._access.trust.server_name or None,
        )

    def _header_lines(self, call: _Call, credential: Credential) -> bytes:
        """The headers that do not depend on the object that is written, encoded once."""
        key = (credential.authorization, call.accept, call.content_type if call.body is not None else "")
        lines = self._encoded_headers.get(key)
        if lines is None:
            headers = {"Host": self._host, **_own_headers(call, credential)}
            named = [*headers.items(), *self._headers, ("Accept-Encoding", "identity")]
            text = "".join(f"{name}: {value}\r\n" for name, value in named)
            if text.count("\n") != len(named):
                raise ValueError("a header has a line break")
            if len(self._encoded_headers) >= _MAX_CACHED_HEADERS:  # tokens are renewed
                self._encoded_headers.clear()
            lines = self._encoded_headers[key] = text.encode() + b"\r\n"
        return lines

    async def _error(self, call: _Call, response: _Response, credential: Credential) -> KubeError:
        hint = ""
        if response.status == 401:
            hint = credentials.rejection_hint(credential, dt.datetime.now(dt.UTC))
            hint = hint if self._is_tls else "; none were sent, because the server address is not https"
        tried, body = self.tried(call.method, call.path), await response.read()
        return errors.from_answer(tried, response.status, response.reason or "", response.headers, body, hint=hint)


def _own_headers(call: _Call, credential: Credential) -> dict[str, str]:
    """The headers of one request."""
    headers = {"Accept": call.accept}
    if credential.authorization:
        headers["Authorization"] = credential.authorization
    if call.body is not None:
        headers["Content-Type"] = call.content_type
    return headers


class _FencedBody(aiohttp.BytesPayload):
    """
    A body that is sent only while `may_send` is true.

    Through a proxy aiohttp connects after it was given the request, so the body is the last that can be withheld: a
    server does not carry out a request whose body is missing.
    """

    def __init__(self, body: bytes, may_send: MaySend) -> None:
        super().__init__(body)
        self._may_send = may_send

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        if not self._may_send():
            raise WithheldError
        await super().write_with_length(writer, content_length)


def _close(response: _Response | None) -> None:
    """Release the connection of a response that was read to its end, and close that of any other."""
    if isinstance(response, aiohttp.ClientResponse):
        transport.abort(response)
        response.close()


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


_VERSION = msgspec.json.Decoder(_Version)


def _is_event(path: str) -> bool:
    return path.startswith("/apis/events.k8s.io/") or path.endswith("/events")
