"""
The HTTP servers of a running scheduler, with health, readiness and metrics.

They run in a thread of their own. What they ask the loop of the scheduler for is shared by all requests that wait for
it, so that its cost does not depend on how many there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

from aiohttp import web

from bayplan.serving.limited_server import LimitedServer, ServerLimits
from bayplan.serving.server_thread import ServerThread

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Check = Callable[[], str]  # why the check fails, empty if it passes
Answer = TypeVar("Answer")

LIMITS = ServerLimits(connections=64, idle_seconds=75.0)
PROCESSOR_SHARE = 0.1
MAX_AGE_SECONDS = 0.25  # of an answer that another request gets too
MAX_PROBE_SECONDS = 10.0
_HELD = "the event loop of the scheduler does not respond"


class SharedAnswer(Generic[Answer]):
    """The answer of a function on the owner of a thread, one call at a time; requests meanwhile share the call."""

    def __init__(
        self, thread: ServerThread, function: Callable[[], Answer], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._thread, self._function, self._clock = thread, function, clock
        self._asked: asyncio.Task[Answer] | None = None
        self._answered_at = 0.0

    async def get(self) -> Answer:
        asked = self._asked
        if asked is None or (asked.done() and self._clock() - self._answered_at > MAX_AGE_SECONDS):
            asked = self._asked = asyncio.get_running_loop().create_task(self._ask())
        return await asyncio.shield(asked)

    async def _ask(self) -> Answer:
        answer = await self._thread.on_owner(self._call())
        self._answered_at = self._clock()
        return answer

    async def _call(self) -> Answer:
        return self._function()


def application(thread: ServerThread, ready: Check, metrics: Callable[[], bytes]) -> web.Application:
    """Serve `/healthz`, `/livez`, `/readyz` and `/metrics`. A process whose event loop responds is healthy."""
    collected = SharedAnswer(thread, metrics)

    def probe(check: Check) -> Handler:
        shared = SharedAnswer(thread, check)

        async def answer(_request: web.Request) -> web.Response:
            try:
                async with asyncio.timeout(MAX_PROBE_SECONDS):
                    failure = await shared.get()
            except TimeoutError:
                failure = _HELD
            return web.Response(text=failure or "ok", status=503 if failure else 200)

        return answer

    async def write_metrics(_request: web.Request) -> web.Response:
        return web.Response(
            body=await collected.get(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    app = web.Application(client_max_size=1024)
    alive = probe(lambda: "")
    app.router.add_get("/healthz", alive)
    app.router.add_get("/livez", alive)
    app.router.add_get("/readyz", probe(ready))
    app.router.add_get("/metrics", write_metrics)
    return app


def on_owner(thread: ServerThread, respond: Callable[[web.Request], Awaitable[web.Response]]) -> Handler:
    """Return a handler that responds in the loop of the scheduler."""

    async def call(request: web.Request) -> web.Response:
        return await respond(request)

    return lambda request: thread.on_owner(call(request))


@contextlib.asynccontextmanager
async def served(thread: ServerThread, app: web.Application, host: str, port: int) -> AsyncIterator[int]:
    """Serve an application in the thread inside the block; yields the port, which replaces port 0."""
    async with thread.entered(LimitedServer(app, host, port, LIMITS)) as server:
        yield server.port
