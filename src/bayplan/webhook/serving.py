"""
The HTTPS server of the webhook: who is answered, its paths, and an error status for anything that is not a review.

An HTTP error means that the request is not answered, and the failurePolicy of the API server applies. This is also how
reviews are shed under overload: the API server knows which failure mode its operator chose, and records that it was
applied. A rejected object is a normal response.
"""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Self

import msgspec
from aiohttp import web

from bayplan.errors import ClusterError, InputError
from bayplan.serving.limited_server import LimitedServer, ServerLimits
from bayplan.webhook import reviews
from bayplan.webhook.admission_handler import AdmissionHandler
from bayplan.webhook.certificates import ServerTls
from bayplan.webhook.reviews import AdmissionRequest, AdmissionResponse
from bayplan.webhook.secret_paths import AcceptedPaths

# API servers accept objects of up to 3 MiB, and a review may have both the old and the new object.
MAX_REVIEW_BYTES = 7 * 2**20
# Idle: longer than Go clients keep a connection (90 s), so that none is closed as a request arrives.
LIMITS = ServerLimits(connections=1024, idle_seconds=300.0)
READY = "/readyz"
PODS, WORKLOADS, POLICIES, BINDINGS, TEMPLATES = (
    f"/validate/{what}" for what in ("pods", "workloads", "policies", "bindings", "templates")
)
MUTATE = "/mutate"
SHED_TEXT = "the webhook is overloaded\n"

OnReview = Callable[[str, bool, float], None]  # path without the secret, whether it was allowed, seconds
Review = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]


class ReviewLimits(msgspec.Struct, frozen=True, kw_only=True):
    """
    How much is reviewed at once; more is shed.

    By default an API server has 200 changing requests in flight, and a cluster three API servers. The time for a review
    ends before an API server stops waiting for it (`timeoutSeconds: 5`).
    """

    at_once: int = 600
    bytes_at_once: int = 64 * 2**20
    body_seconds: float = 4.0
    review_seconds: float = 4.0


class ReviewEndpoint:
    """
    Answers the requests of API servers that know an accepted path.

    With `client_names`, the client certificate must have one of these names. `refused` counts requests that are not
    from an API server of this webhook, `shed` those that were not reviewed because of overload, each by cause.
    """

    def __init__(
        self,
        handler: AdmissionHandler,
        paths: AcceptedPaths,
        on_review: OnReview | None = None,
        client_names: Collection[str] = (),
        limits: ReviewLimits = ReviewLimits(),  # noqa: B008  # frozen
    ) -> None:
        validating = dict.fromkeys((PODS, WORKLOADS, POLICIES, BINDINGS, TEMPLATES), handler.validate)
        self._reviews: dict[str, Review] = {**validating, MUTATE: handler.mutate}
        self._paths, self._on_review, self._client_names = paths, on_review, frozenset(client_names)
        self._limits = limits
        self._at_once = self._bytes_at_once = 0
        self.refused: collections.Counter[str] = collections.Counter()
        self.shed: collections.Counter[str] = collections.Counter()
        self.recognise: Callable[[web.Request], None] = lambda _http: None

    async def respond(self, http: web.Request) -> web.Response:
        if http.path == READY:
            return web.Response(text="ok\n")
        path = next((one for one in self._reviews if http.path.endswith(one)), "")
        if not self._paths.accepts(http.path[1 : -len(path)] if path else http.path) or not path:
            self.refused["path"] += 1
            return web.Response(status=404)
        if self._client_names and not self._client_names & _certificate_names(http):
            self.refused["client"] += 1
            return web.Response(status=403)
        self.recognise(http)
        if http.method != "POST":
            return web.Response(status=405, headers={"Allow": "POST"})
        if http.content_type != "application/json":
            return web.Response(status=415, text="expected application/json\n")
        size = MAX_REVIEW_BYTES if http.content_length is None else http.content_length
        if size > MAX_REVIEW_BYTES:
            return web.Response(status=413)
        if self._at_once >= self._limits.at_once:
            return self._shed("reviews")
        if self._bytes_at_once and self._bytes_at_once + size > self._limits.bytes_at_once:
            return self._shed("bytes")
        self._at_once, self._bytes_at_once = self._at_once + 1, self._bytes_at_once + size
        try:
            return await self._answer(http, path)
        finally:
            self._at_once, self._bytes_at_once = self._at_once - 1, self._bytes_at_once - size

    async def _answer(self, http: web.Request, path: str) -> web.Response:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                body = await http.read()
        except TimeoutError:
            response = web.Response(status=408)
            response.force_close()  # the rest of the body may still come
            return response
        try:
            request = reviews.read_request(body)
        except InputError as error:
            return web.Response(status=400, text=f"{error}\n")
        try:
            async with asyncio.timeout(self._limits.review_seconds):
                found = await self._reviews[path](request)
        except TimeoutError:
            return self._shed("time")
        except ClusterError as error:  # the state of the cluster that the review needs is not available
            return web.Response(status=503, text=f"{error}\n")
        if self._on_review is not None:
            self._on_review(path, found.allowed, time.perf_counter() - started)
        return web.Response(body=reviews.write_response(request.uid, found), content_type="application/json")

    def _shed(self, cause: str) -> web.Response:
        # Without Retry-After, which would make API servers try again at once within the timeout.
        self.shed[cause] += 1
        return web.Response(status=503, text=SHED_TEXT)


def _certificate_names(http: web.Request) -> set[str]:
    """Return the common name and the DNS names of the client certificate, which the TLS handshake has verified."""
    certificate: dict[str, Any] = http.get_extra_info("peercert") or {}
    subject = (pair for group in certificate.get("subject", ()) for pair in group)
    names = (*subject, *certificate.get("subjectAltName", ()))
    return {value for kind, value in names if kind in ("commonName", "DNS")}


class WebhookServer:
    """
    Serves an endpoint over TLS, as an async context manager; port 0 is replaced by the chosen port.

    A client without TLS gets no answer and its connection is closed.
    """

    def __init__(
        self, endpoint: ReviewEndpoint, tls: ServerTls, host: str, port: int, limits: ServerLimits = LIMITS
    ) -> None:
        app = web.Application(client_max_size=MAX_REVIEW_BYTES)
        app.router.add_route("*", "/{path:.*}", endpoint.respond)
        self.endpoint, self.tls = endpoint, tls
        self.server = LimitedServer(app, host, port, limits, lambda: tls.context, close_strangers=True)
        endpoint.recognise = self.server.recognise

    @property
    def port(self) -> int:
        return self.server.port

    async def __aenter__(self) -> Self:
        try:
            await self.server.__aenter__()
        except InputError as error:
            raise InputError(f"the webhook {error}") from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()
