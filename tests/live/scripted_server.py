"""
An API server that plays a script, for behaviour that a real one does not show on demand. It has no store.

    with ScriptedServer() as server:
        server.on("GET", "/api/v1/pods", page("Pod", first, "7", token="more"), gone())
        server.on("GET", "/api/v1/pods", stream(event("ADDED", pod), ending=CUT))

Each step is played once, in the order given, per method and path. A request without a remaining step gets a 500 and is
recorded in `surprises`; a fixture or test asserts that there are none.
"""

import asyncio
import collections
import dataclasses
import json

from aiohttp import web

from live.threaded_server import ThreadedServer, hang_up

END, CUT, STALL = "end", "cut", "stall"


@dataclasses.dataclass(frozen=True)
class Seen:
    """One received request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class ScriptedServer(ThreadedServer):
    """`requests` has all received requests, in order."""

    def __init__(self, certificate=None):
        super().__init__(certificate)
        self._steps = collections.defaultdict(collections.deque)
        self._always = {}
        self.requests = []
        self.surprises = []

    def on(self, method, path, *steps):
        """Add steps to play after the earlier ones; the query is not part of the path."""
        self._steps[method, path].extend(steps)

    def always(self, method, path, step):
        """Play this step when no other is left."""
        self._always[method, path] = step

    @property
    def unplayed(self):
        """Return how many steps are left, by method and path."""
        return {key: len(steps) for key, steps in self._steps.items() if steps}

    async def handle(self, request):
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = Seen(request.method, request.path, dict(request.query), headers, await request.read())
        self.requests.append(seen)
        key = (request.method, request.path)
        step = self._steps[key].popleft() if self._steps[key] else self._always.get(key)
        if step is None:
            self.surprises.append(seen)
            step = rejection(500, "InternalError", f"no step is left for {request.method} {request.path}")
        return await step(request)


def answer(content, status=200, headers=None):
    async def step(request):
        return web.json_response(content, status=status, headers=headers)

    return step


def rejection(status, reason="", message="", *, retry_after=None):
    """An error response with a Status object."""
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else None
    return answer(status_object(status, reason, message), status, headers)


def gone(message="The provided continue parameter is too old to display a consistent list result."):
    return rejection(410, "Expired", message)


def page(kind, items, version, *, token="", left=None):
    """One page of a list; `token` continues it."""
    meta = {"resourceVersion": version} | ({"continue": token} if token else {})
    meta |= {} if left is None else {"remainingItemCount": left}
    return answer({"kind": f"{kind}List", "apiVersion": "v1", "metadata": meta, "items": items})


def stream(*lines, ending=END, pause=0.0):
    """
    A watch: one line per event (a dict, or bytes as they are), `pause` seconds before each.

    Then it ends like a watch that timed out, is cut within a line, or stays open without data.
    """

    async def step(request):
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for line in lines:
            await asyncio.sleep(pause)
            await response.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        if ending == CUT:
            await response.write(b'{"type":"MODIFIED","object":{"kind":')
            hang_up(request.transport)
        elif ending == STALL:
            await asyncio.Event().wait()  # until the client disconnects or the server stops
        return response

    return step


def slowly(content, *, piece=1, pause=0.01):
    """A complete response, sent `piece` bytes at a time."""

    async def step(request):
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        data = json.dumps(content).encode()
        for start in range(0, len(data), piece):
            await response.write(data[start : start + piece])
            await asyncio.sleep(pause)
        return response

    return step


def hang_up_at_once():
    """Close the connection without a response."""

    async def step(request):
        hang_up(request.transport)
        return web.Response()

    return step


def event(change, content):
    """One line of a watch; `change` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""
    return {"type": change, "object": content}


def bookmark(kind, version, *, initial_events_end=False):
    notes = {"annotations": {"k8s.io/initial-events-end": "true"}} if initial_events_end else {}
    return event("BOOKMARK", {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": version, **notes}})


def error_event(status, reason="", message=""):
    """The error event that ends a watch, such as 410 within a 200 response."""
    return event("ERROR", status_object(status, reason, message))


def status_object(status, reason="", message=""):
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }
