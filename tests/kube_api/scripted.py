"""
A server that does what a script says, request by request, and remembers what it was asked. It stores nothing.

For what a real API server cannot be made to do on demand: a version that vanishes midway, a stream that dies, a 429.
"""

import asyncio
import base64
import collections
import contextlib
import json

from aiohttp import web

from bayplan.kube_api import kubeconfig, kubeconfig_files
from bayplan.kube_api.access import ConnectOptions
from bayplan.kube_api.connection import Connection


class ScriptedServer:
    """Each request takes the next answer; where the script ends, requests hang until the server stops."""

    def __init__(self):
        self.requests = []
        self.url = ""
        self._answers = collections.deque()
        self._stopped = asyncio.Event()
        self._runner = None
        self._more = asyncio.Condition()

    def then(self, *answers):
        self._answers.extend(answers)
        return self

    async def start(self, tls=None):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        return self

    async def asked(self, n_requests):
        """Until so many requests have come."""
        async with self._more:
            await self._more.wait_for(lambda: len(self.requests) >= n_requests)

    async def stop(self):
        self._stopped.set()
        await self._runner.cleanup()

    async def _answer(self, request):
        self.requests.append(Asked(request, await request.read()))
        async with self._more:
            self._more.notify_all()
        if not self._answers:
            await self._stopped.wait()
            return web.Response(status=500)
        answer = self._answers.popleft()
        return await answer(request) if callable(answer) else answer

    @property
    def unused(self):
        return len(self._answers)


class Asked:
    def __init__(self, request, body):
        self.method, self.path, self.query, self.headers = request.method, request.path, request.query, request.headers
        self.url, self.body = str(request.rel_url), body

    @property
    def json(self):
        return json.loads(self.body)


def answer(content, status=200, **headers):
    return web.json_response(
        content, status=status, headers={key.replace("_", "-"): str(v) for key, v in headers.items()}
    )


def error_response(code, reason, message="", details=None, **headers):
    """A `Status`, as API servers say no."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return answer(status | {"message": message or reason, "details": details or {}}, code, **headers)


def gone():
    return error_response(410, "Expired", "The provided continue parameter is too old")


def pod(name, version, uid=None, **spec):
    meta = {"namespace": "shop", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec}


def page(*items, version=100, more=None, remaining=None):
    meta = {"resourceVersion": str(version)}
    if more:
        meta |= {"continue": more, "remainingItemCount": remaining}
    return answer({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": list(items)})


def event(kind, item):
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def bookmark(version):
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def watch_error(code, reason):
    status = {"kind": "Status", "status": "Failure", "message": "no more", "reason": reason, "code": code}
    return event("ERROR", status)


def watch(*lines, end="close"):
    """A stream of these lines that then is closed, dies in the middle of a chunk, or stays silent."""

    async def run(request):
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for line in lines:
            await response.write(line)
        if end == "die":
            request.transport.write(b'ffff\r\n{"type":')  # a chunk that is announced and never comes
            await asyncio.sleep(0)
            request.transport.close()
        elif end == "silence":
            await asyncio.Event().wait()
        return response

    return run


async def whoami(request):
    """The common name in the client certificate that the server was shown."""
    certificate = request.transport.get_extra_info("peercert") or {}
    names = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return answer({"name": names.get("commonName", "")})


def authorizations(server):
    """What the server was shown, request by request."""
    return [asked.headers.get("Authorization") for asked in server.requests]


def encoded(content):
    return base64.b64encode(content).decode()


@contextlib.asynccontextmanager
async def connected(path, options=None, **clocks):
    """A connection through the kubeconfig at the path, on clocks of the test's own."""
    options = options or ConnectOptions()
    found = {name: clocks[name] for name in ("clock", "now") if name in clocks}
    access = kubeconfig.access_of(kubeconfig_files.load([path]), None, options, **found)
    own = {name: clocks[name] for name in ("clock", "sleep") if name in clocks}
    async with Connection(access, options, **own) as connection:
        yield connection
