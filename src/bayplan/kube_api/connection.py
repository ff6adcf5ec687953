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
from typing import Self

import aiohttp
import msgspec
import yarl

import bayplan
from bayplan.kube_api import access as accesses
from bayplan.kube_api import credentials, errors, transport
from bayplan.kube_api.access import Access, ConnectOptions
from bayplan.kube_api.credentials import Credential
from bayplan.kube_api.errors import (
    KubeError,
    ServerUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
    WrongServerError,
)
from bayplan.kube_api.pacing import TokenBucket
from bayplan.kube_api.tls import TlsContexts

JSON = "application/json"
_MAX_CONNECTIONS = 250  # each watch holds one
_STREAM_BUFFER_BYTES = 256 * 1024  # how far a stream may run ahead of its reader
_CONNECT_TIMEOUT_SECONDS = 10.0
_CLOSING_LOOP_TURNS = 5
_MAX_ATTEMPTS = 5
_MAX_RETRY_WAIT_SECONDS = 30.0  # total of all waits of one request

Observer = Callable[[str, str, float], None]


class _Call(msgspec.Struct, frozen=True):
    """One request, the same for each attempt."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str
    timeout: aiohttp.ClientTimeout
    body: bytes | None = None
    content_type: str = JSON


class Connection:
    """
    An async context manager around one HTTP session.

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
        self._limiter = TokenBucket(options.qps, options.burst or 1, clock, sleep) if options.qps else None
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"Connection(server={self.server!r}, context_name={self.context_name!r})"

    def separate(self) -> Connection:
        """Another connection to the same server with its own sockets, which never waits for requests of this one."""
        return Connection(self._access, self._options, clock=self._clock, sleep=self._sleep)

    async def __aenter__(self) -> Self:
        compression = self._access.compression and not accesses.is_loopback(self.server)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, socket_factory=transport.keep_alive_socket),
            headers=[
                ("User-Agent", f"bayplan/{bayplan.__version__} ({sys.platform}/{platform.machine()})"),
                ("Accept-Encoding", "gzip" if compression else "identity"),
                *self._access.impersonation.headers(),
            ],
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
    ) -> bytes:
        """
        The body of a successful response; any other response is raised as an error.

        A 429 or 503 with a Retry-After is retried, within limits, unless `retry` is false. By default every method but
        POST is retried, because a repeated POST could create an object twice. `limited=False` bypasses the client-side
        rate limit for the few requests that must not queue behind others.
        """
        total = timeout if timeout is not None else self._timeout
        limits = aiohttp.ClientTimeout(total=total, sock_connect=_CONNECT_TIMEOUT_SECONDS)
        call = _Call(method, path, query or {}, accept, limits, body, content_type)
        if self._limiter and limited:
            await self._limiter.take()
        attempts, waited = _MAX_ATTEMPTS if (method != "POST" if retry is None else retry) else 1, 0.0
        while True:
            attempts -= 1
            try:
                async with self._answer(call) as response:
                    return await response.read()
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
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_SECONDS, sock_read=inactivity)
        if self._limiter:
            await self._limiter.take()
        async with self._answer(_Call("GET", path, query, accept, limits)) as response:
            yield response.content.iter_any()

    def tried(self, method: str, path: str) -> str:
        """The request as shown in errors."""
        return f"{method} {self.server}{path}"

    async def version(self) -> str:
        """The version that the API server reports; a server without one is not a Kubernetes API server."""
        try:
            found = _VERSION.decode(await self.get("/version"))
        except ValueError:
            found = _Version()
        if not found.git_version:
            raise WrongServerError(f"{self.tried('GET', '/version')}: no version; is this a Kubernetes API server?")
        return found.git_version

    @contextlib.asynccontextmanager
    async def _answer(self, call: _Call) -> AsyncIterator[aiohttp.ClientResponse]:
        """A successful response. Credentials that the server rejects are renewed once."""
        tried = self.tried(call.method, call.path)
        may_renew = self._is_tls
        credential = Credential()
        try:
            while True:
                credential = await self._access.credentials.current() if self._is_tls else Credential()
                async with self._send(call, credential) as response:
                    if response.status < 300:
                        if call.accept.startswith(JSON) and "json" not in response.content_type:
                            raise WrongServerError(
                                f"{tried}: expected JSON, got {response.content_type}; is this a Kubernetes API server?"
                            )
                        yield response
                        return
                    error = await self._error(tried, response, credential)
                if not (may_renew and isinstance(error, UnauthorizedError)):
                    raise error
                may_renew = False
                if not await self._access.credentials.renew(credential):
                    raise error
        except transport.FAILURES as error:
            found = transport.translated(error, tried, self.server, self._access.proxy)
            hint = credentials.disconnect_hint(credential, dt.datetime.now(dt.UTC)) if found.retriable else ""
            raise (type(found)(f"{found}{hint}") if hint else found) from error

    @contextlib.asynccontextmanager
    async def _send(self, call: _Call, credential: Credential) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None, "a connection is used within `async with`"
        headers = {"Accept": call.accept}
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        query = f"?{urllib.parse.urlencode(call.query)}" if call.query else ""
        began, code = self._clock(), "<error>"
        try:
            async with self._session.request(
                call.method,
                yarl.URL(f"{self.server}{call.path}{query}", encoded=True),
                data=call.body,
                headers=headers,
                timeout=call.timeout,
                allow_redirects=False,
                proxy=self._access.proxy or None,
                ssl=self._contexts.current(credential.certificate) if self._is_tls else True,
                server_hostname=self._access.trust.server_name or None,
            ) as response:
                code = str(response.status)
                self._observe(call, code, began)
                try:
                    yield response
                finally:
                    transport.abort(response)
        finally:
            if code == "<error>":
                self._observe(call, code, began)

    def _observe(self, call: _Call, code: str, began: float) -> None:
        if self.observer is not None:
            self.observer(call.method, code, self._clock() - began)

    async def _error(self, tried: str, response: aiohttp.ClientResponse, credential: Credential) -> KubeError:
        hint = ""
        if response.status == 401:
            hint = credentials.rejection_hint(credential, dt.datetime.now(dt.UTC))
            hint = hint if self._is_tls else "; none were sent, because the server address is not https"
        return errors.from_answer(
            tried, response.status, response.reason or "", response.headers, await response.read(), hint=hint
        )


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


_VERSION = msgspec.json.Decoder(_Version)
