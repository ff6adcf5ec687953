"""
The server of the page: its files, the documents of /api/v1, and events that tell when the state has changed.

It only reads. Questions are answered one after another in a thread of their own; more than a few at once are refused,
so that a client cannot make the others wait without bound. Every answer is about one moment.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from bayplan.errors import BayplanError, ClusterError, InputError
from bayplan.serving.limited_server import LimitedServer, ServerLimits
from bayplan.web import access, assets_table, questions
from bayplan.web.access import AccessRules
from bayplan.web.moments import Moment
from bayplan.writing import tables, versioned

API = "/api/v1"
MAX_BODY_BYTES = 4 * 2**20
MAX_QUESTIONS = 16  # that wait or are being answered
MAX_LISTENERS = 32
BODY_SECONDS = 20.0
KEEP_ALIVE_SECONDS = 15.0
WRITE_SECONDS = 10.0  # for an event; a browser that does not read is let go
LIMITS = ServerLimits(connections=256, idle_seconds=60.0)
JSON = "application/json"
GET, POST = "GET", "POST"

QUESTIONS: dict[str, tuple[type[Any], Callable[[Moment, Any], bytes]]] = {
    "place": (questions.PlaceQuestion, Moment.place),
    "explain": (questions.ExplainQuestion, Moment.explain),
    "fix": (questions.FixQuestion, Moment.fix),
    "scale": (questions.ScaleQuestion, Moment.scale),
}
_Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer:
    """
    Answers about the latest of the moments that it is handed.

    `show` is called with a moment when the state has changed, `tell` with what keeps it from being followed; both in
    the event loop of the server.
    """

    def __init__(self, first: Moment, rules: AccessRules, report_bug: Callable[[], None] | None = None) -> None:
        self.moment = first
        self.trouble = ""
        self._rules, self._report_bug = rules, report_bug or traceback.print_exc
        self._changed = asyncio.Condition()
        self._n_questions = self._n_listeners = 0
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "bayplan-questions")
        self.recognise: Callable[[web.BaseRequest], None] = lambda _: None
        self._answers: dict[str, tuple[str, _Answer]] = {
            API: (GET, self._index),
            f"{API}/state": (GET, self._state),
            f"{API}/violations": (GET, self._violations),
            f"{API}/events": (GET, self._events),
            **{f"{API}/{name}": (POST, functools.partial(self._question, name)) for name in QUESTIONS},
        }

    @property
    def title(self) -> str:
        """What is shown, in a few words."""
        return self.moment.title

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._respond)
        return app

    async def show(self, moment: Moment) -> None:
        """The state has changed."""
        self.moment, self.trouble = moment, ""
        await self._wake()

    async def tell(self, trouble: str) -> None:
        """The state cannot be followed for now; the page shows the last one."""
        self.trouble = trouble
        await self._wake()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _respond(self, http: web.Request) -> web.StreamResponse:
        """Every request: checked first, then answered; a refusal is a document too."""
        asset = assets_table.by_path().get(http.path)
        refused = self._rules.refusal(http.headers, is_public=asset is not None)
        if refused is not None:
            return _error(refused.status, refused.message)
        self.recognise(http)
        if asset is not None:
            return _asset(http, asset)
        if http.path not in self._answers:
            return _error(404, f"there is no {http.path[:200]}; see {API}")
        method, answer = self._answers[http.path]
        if http.method != method and not (http.method == "HEAD" and method == GET):
            response = _error(405, f"{http.path} answers {method}")
            response.headers["Allow"] = method
            return response
        try:
            return await answer(http)
        except BayplanError as error:
            return _refused_question(error)
        except web.HTTPRequestEntityTooLarge:
            return _error(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:  # noqa: BLE001  # a bug in one answer: it is reported, and the page goes on
            self._report_bug()
            return _error(500, "this is a bug in bayplan; its traceback is in the output of `bayplan ui`")

    # Documents

    async def _index(self, _: web.Request) -> web.Response:
        found = [{"path": path, "method": method} for path, (method, _) in sorted(self._answers.items())]
        return _json(versioned.json_line(versioned.document("Endpoints", {"endpoints": found})))

    async def _state(self, http: web.Request) -> web.Response:
        moment = self.moment
        tag = f'"{moment.revision}"'
        if http.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=dict(access.HEADERS))
        response = _json(moment.state)
        response.headers["ETag"] = tag
        return response

    async def _violations(self, _: web.Request) -> web.Response:
        return await self._asked(self.moment.violations)

    async def _question(self, name: str, http: web.Request) -> web.Response:
        kind, answer = QUESTIONS[name]
        if http.content_type != JSON:  # which no form of another site can send
            return _error(415, f"expected {JSON}")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await http.read()
        except TimeoutError:
            response = _error(408, f"the body did not arrive within {BODY_SECONDS:.0f} seconds")
            response.force_close()
            return response
        return await self._asked(functools.partial(answer, self.moment, questions.read(body, kind)))

    async def _asked(self, ask: Callable[[], bytes]) -> web.Response:
        if self._n_questions >= MAX_QUESTIONS:
            response = _error(503, "too many questions are waiting; ask again")
            response.headers["Retry-After"] = "1"
            return response
        self._n_questions += 1
        asking = asyncio.get_running_loop().run_in_executor(self._thread, ask)
        asking.add_done_callback(self._answered)  # not before the thread is done with it, even if the client is gone
        return _json(await asyncio.shield(asking))

    def _answered(self, asking: asyncio.Future[bytes]) -> None:
        self._n_questions -= 1
        if not asking.cancelled():
            asking.exception()  # retrieved, also if the client is gone

    # Events

    async def _events(self, http: web.Request) -> web.StreamResponse:
        """The revision now and whenever it changes, as server-sent events."""
        if self._n_listeners >= MAX_LISTENERS:
            return _error(503, "too many pages listen for changes")
        response = web.StreamResponse(
            headers={**access.HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        self._n_listeners += 1
        try:
            await response.prepare(http)
            async for event in self._news():
                async with asyncio.timeout(WRITE_SECONDS):
                    await response.write(event)
        except (TimeoutError, ConnectionError):
            if http.transport is not None:
                http.transport.abort()
        finally:
            self._n_listeners -= 1
        return response

    async def _news(self) -> AsyncIterator[bytes]:
        told: tuple[int, str] | None = None
        while True:
            now = self.moment.revision, self.trouble
            if now != told:
                told = now
                content = versioned.json_line({"revision": now[0], "trouble": now[1]})
                yield b"event: state\ndata: " + content + b"\n"
            else:
                yield b": still here\n\n"
            async with self._changed:
                if (self.moment.revision, self.trouble) == told:
                    try:
                        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                            await self._changed.wait()
                    except TimeoutError:
                        continue


def _asset(http: web.Request, asset: assets_table.Asset) -> web.Response:
    if http.method not in (GET, "HEAD"):
        response = _error(405, f"{http.path} answers {GET}")
        response.headers["Allow"] = GET
        return response
    headers = {**access.HEADERS, "ETag": asset.tag, "Cache-Control": "no-cache"}
    if http.headers.get("If-None-Match") == asset.tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=asset.content, headers={**headers, "Content-Type": asset.content_type})


def _json(content: bytes, status: int = 200) -> web.Response:
    headers = {**access.HEADERS, "Content-Type": JSON, "Cache-Control": "no-store"}
    return web.Response(body=content, status=status, headers=headers)


def _error(status: int, message: str, faults: list[dict[str, Any]] | None = None) -> web.Response:
    content = {"message": tables.printable(message), "faults": faults or []}
    return _json(versioned.json_line(versioned.document("Error", content)), status)


def _refused_question(error: BayplanError) -> web.Response:
    if isinstance(error, ClusterError):
        return _error(502, str(error))
    faults = error.faults if isinstance(error, InputError) else ()
    return _error(400, str(error), [msgspec.to_builtins(one) for one in faults])


@asynccontextmanager
async def opened(
    page: PageServer, host: str, port: int, tls: Callable[[], Any] | None = None, limits: ServerLimits = LIMITS
) -> AsyncIterator[LimitedServer]:
    """Serve the page while the block runs."""
    server = LimitedServer(page.application(), host, port, limits, tls)
    page.recognise = server.recognise
    try:
        async with server:
            yield server
    finally:
        page.close()


def print_bug() -> None:
    """Write the traceback of the current exception to standard error; it may quote the input."""
    sys.stderr.write(tables.printable_lines(traceback.format_exc()))
