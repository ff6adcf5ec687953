"""
The HTTP of the door: which path is for what, and a fitting refusal for whatever is no review.

A refusal by HTTP code says that the question was wrong; what an API server does then is up to its failurePolicy. "No"
to a good question is an answer like "yes".
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Self

from aiohttp import web

from bayplan.errors import ClusterError, InputError
from bayplan.webhook import reviews
from bayplan.webhook.admission_handler import AdmissionHandler
from bayplan.webhook.reviews import AdmissionRequest, AdmissionResponse

# An API server takes objects of up to 3 MiB, and a review may carry the old one beside the new.
MAX_REVIEW_BYTES = 7 * 2**20
# Longer than Go's clients keep an idle connection (90 s), so that it is never closed under a request on its way.
KEEP_ALIVE_SECONDS = 300.0
PODS, WORKLOADS, POLICIES, BINDINGS = (f"/validate/{what}" for what in ("pods", "workloads", "policies", "bindings"))
MUTATE = "/mutate"

Observe = Callable[[str, bool, float], None]  # path, whether it was allowed, seconds
Review = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]


def application(handler: AdmissionHandler, on_review: Observe | None = None) -> web.Application:
    """Everything the door answers; `on_review` is told of each review."""
    app = web.Application(client_max_size=MAX_REVIEW_BYTES)
    for path in (PODS, WORKLOADS, POLICIES, BINDINGS):
        app.router.add_post(path, _reviewer(handler.validate, on_review))
    app.router.add_post(MUTATE, _reviewer(handler.mutate, on_review))
    app.router.add_get("/readyz", _ready)
    return app


def _reviewer(judge: Review, on_review: Observe | None) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(http: web.Request) -> web.Response:
        started = time.perf_counter()
        if http.content_type != "application/json":
            return web.Response(status=415, text="expected application/json\n")
        try:
            request = reviews.read_request(await http.read())
        except InputError as error:
            return web.Response(status=400, text=f"{error}\n")
        try:
            found = await judge(request)
        except ClusterError as error:  # what had to be asked of the cluster is not known
            return web.Response(status=503, text=f"{error}\n")
        if on_review is not None:
            on_review(http.path, found.allowed, time.perf_counter() - started)
        return web.Response(body=reviews.write_response(request.uid, found), content_type="application/json")

    return answer


async def _ready(_http: web.Request) -> web.Response:
    return web.Response(text="ok\n")


class WebhookServer:
    """
    Serves an application over TLS, as an async context manager; `port` is the real one if 0 was asked for.

    Whoever comes without TLS gets no answer and a closed connection.
    """

    def __init__(self, app: web.Application, context: ssl.SSLContext, host: str, port: int) -> None:
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=KEEP_ALIVE_SECONDS)
        self._context, self._host, self.port = context, host, port

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port, ssl_context=self._context)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            where = f"{self._host}:{self.port}"
            raise InputError(f"the webhook cannot listen on {where}: {error.strerror or error}") from None
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
