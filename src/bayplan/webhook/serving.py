"""
The HTTPS server of the webhook: its paths, and an error status for anything that is not a review.

An HTTP error means that the request cannot be answered, and the failurePolicy of the API server applies. A rejected
object is a normal response.
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

# API servers accept objects of up to 3 MiB, and a review may have both the old and the new object.
MAX_REVIEW_BYTES = 7 * 2**20
# Longer than Go clients keep an idle connection (90 s), so that no connection is closed as a request arrives.
KEEP_ALIVE_SECONDS = 300.0
PODS, WORKLOADS, POLICIES, BINDINGS = (f"/validate/{what}" for what in ("pods", "workloads", "policies", "bindings"))
MUTATE = "/mutate"

OnReview = Callable[[str, bool, float], None]  # path, whether it was allowed, seconds
Review = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]


def application(handler: AdmissionHandler, on_review: OnReview | None = None) -> web.Application:
    """Return the HTTP application; `on_review` is called after each review."""
    app = web.Application(client_max_size=MAX_REVIEW_BYTES)
    for path in (PODS, WORKLOADS, POLICIES, BINDINGS):
        app.router.add_post(path, _review_handler(handler.validate, on_review))
    app.router.add_post(MUTATE, _review_handler(handler.mutate, on_review))
    app.router.add_get("/readyz", _ready)
    return app


def _review_handler(review: Review, on_review: OnReview | None) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(http: web.Request) -> web.Response:
        started = time.perf_counter()
        if http.content_type != "application/json":
            return web.Response(status=415, text="expected application/json\n")
        try:
            request = reviews.read_request(await http.read())
        except InputError as error:
            return web.Response(status=400, text=f"{error}\n")
        try:
            found = await review(request)
        except ClusterError as error:  # the state of the cluster that the review needs is not available
            return web.Response(status=503, text=f"{error}\n")
        if on_review is not None:
            on_review(http.path, found.allowed, time.perf_counter() - started)
        return web.Response(body=reviews.write_response(request.uid, found), content_type="application/json")

    return answer


async def _ready(_http: web.Request) -> web.Response:
    return web.Response(text="ok\n")


class WebhookServer:
    """
    Serves an application over TLS, as an async context manager; port 0 is replaced by the chosen port.

    A client without TLS gets no answer and its connection is closed.
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
