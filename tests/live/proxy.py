"""
Simulates a bad network and an overloaded server: an HTTP proxy in front of a real API server.

It terminates TLS, so it forwards tokens but not client certificates.
"""

import asyncio
import collections
import dataclasses
import ssl
from collections.abc import Callable

import aiohttp
import yarl
from aiohttp import web

from live.threaded_server import ThreadedServer, hang_up

# Headers of one connection, not of the message: RFC 9110, section 7.6.1. The length is set again.
OF_A_CONNECTION = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host"})


def anything(method, path):
    return True


@dataclasses.dataclass
class Fault:
    """
    A fault of requests: they are answered with `status`; if that is None, they are carried out and the response is lost.

    If `swallowed`, they are neither forwarded nor answered. If `halved`, they are carried out, and half of the response
    is sent as if it were all of it.
    """

    status: int | None
    matching: Callable[[str, str], bool] = anything  # by method and path
    times: int | None = None  # None: until `calm`
    retry_after: int | None = None
    swallowed: bool = False
    halved: bool = False

    def applies_to(self, request):
        if self.times == 0 or not self.matching(request.method, request.path):
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Proxy(ThreadedServer):
    """
    `with Proxy(server) as proxy:` and a client of `proxy.url`, or `proxy.kubeconfig()`.

    `latency` (seconds) delays every response, `bytes_per_second` limits each stream; both may be set at any time.
    """

    def __init__(self, server):
        super().__init__(server.credentials.issue("127.0.0.1", common_name="proxy"))
        self._upstream = server
        self._client = None
        self._faults = []
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._calm = asyncio.Event()
        self.swallowed = 0
        self._replays = 0
        self.replayed = 0
        self.writes = []  # method and path of every request that is no GET
        self.latency = 0.0
        self.bytes_per_second = None
        self.answers = collections.Counter()  # by status; None for lost responses
        self.ca_file = server.ca_file

    def kubeconfig(self, user="admin"):
        return self._upstream.kubeconfig(user, url=self.url)

    def storm(self, status, *, times=None, retry_after=None, matching=anything):
        """Reject requests: the next `times` that `matching(method, path)` selects, or all until `calm`."""
        self._faults.append(Fault(status, matching, times, retry_after))

    def lose_answers(self, *, times=None, matching=anything):
        """Carry requests out and close the connection without a response: the outcome is unknown to the client."""
        self._faults.append(Fault(None, matching, times))

    def swallow(self, *, matching=anything):
        """Neither forward nor answer these requests, and close their connections on `calm`."""
        self._faults.append(Fault(None, matching, swallowed=True))

    def halve_answers(self, *, times=None, matching=anything):
        """Carry requests out and answer with the first half of the body, under the status and headers of the whole."""
        self._faults.append(Fault(None, matching, times, halved=True))

    def replay_watches(self, times):
        """Send everything that a watch has sent so far again, `times` times, each with its next events."""
        self._replays = times

    def calm(self):
        """Remove all faults, latency and limits, and resume streams."""
        self._faults.clear()
        self._loop.call_soon_threadsafe(self._let_go)
        self.latency = 0.0
        self.bytes_per_second = None
        self.flow()

    def stall(self):
        """Stall every response and stream but keep connections, like a network that drops packets."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def flow(self):
        self._loop.call_soon_threadsafe(self._flowing.set)

    def _let_go(self):
        self._calm.set()
        self._calm = asyncio.Event()

    async def open(self):
        tls = ssl.create_default_context(cafile=self._upstream.ca_file)
        self._client = await self._running.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=tls, limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            )
        )

    async def handle(self, request):
        if request.method != "GET":
            self.writes.append((request.method, request.path))
        if self.latency:
            await asyncio.sleep(self.latency)
        fault = next((fault for fault in self._faults if fault.applies_to(request)), None)
        if fault and fault.swallowed:
            self.swallowed += 1
            await self._calm.wait()
            hang_up(request.transport)
            return web.Response(status=502)
        if fault and fault.status:
            self.answers[fault.status] += 1
            return rejection(fault)
        try:
            return await self._pass_on(request, fault)
        except aiohttp.ClientError:  # the API server is down, or stopped during the response
            hang_up(request.transport)
            return web.Response(status=502)

    async def _pass_on(self, request, fault):
        url = yarl.URL(self._upstream.url + request.raw_path, encoded=True)
        body = await request.read()
        headers = without_connection(request.headers)
        async with self._client.request(request.method, url, headers=headers, data=body or None) as answer:
            if fault and fault.halved and answer.status < 300:
                body = await answer.read()
                self.answers[answer.status] += 1
                headers = [(name, value) for name, value in answer.headers.items() if name.lower() == "content-type"]
                return web.Response(status=answer.status, headers=headers, body=body[: len(body) // 2])
            if fault and not fault.halved:
                await answer.read()
                self.answers[None] += 1
                hang_up(request.transport)
                return web.Response(status=502)
            self.answers[answer.status] += 1
            await self._flowing.wait()
            response = web.StreamResponse(status=answer.status, headers=without_connection(answer.headers))
            await response.prepare(request)
            sent = b""
            async for piece in answer.content.iter_any():
                if self.bytes_per_second:
                    await asyncio.sleep(len(piece) / self.bytes_per_second)
                await self._flowing.wait()
                await response.write(piece)
                if "watch" in request.query:
                    sent += piece
                    if self._replays and sent.endswith(b"\n") and len(sent) > len(piece):
                        self._replays -= 1
                        self.replayed += 1
                        await response.write(sent)
            await response.write_eof()
            return response


def rejection(fault):
    """The Status object that an API server sends with a 429 or 503."""
    reasons = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
    content = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reasons.get(fault.status, ""),
        "message": "a fault of the test",
        "code": fault.status,
    }
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
    return web.json_response(content, status=fault.status, headers=headers)


def without_connection(headers):
    return [(name, value) for name, value in headers.items() if name.lower() not in OF_A_CONNECTION]
