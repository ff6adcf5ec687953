"""The HTTP servers of a running scheduler, and the application with health, readiness and metrics."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from typing import Self

from aiohttp import web

from bayplan.errors import InputError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Check = Callable[[], str]  # why the check fails, empty if it passes


def application(ready: Check, metrics: Callable[[], bytes]) -> web.Application:
    """Serve `/healthz`, `/livez`, `/readyz` and `/metrics`. A process that answers is healthy."""

    def probe(check: Check) -> Handler:
        async def answer(_request: web.Request) -> web.Response:
            failure = check()
            return web.Response(text=failure or "ok", status=503 if failure else 200)

        return answer

    async def write_metrics(_request: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    app = web.Application(client_max_size=4 * 2**20)
    app.router.add_get("/healthz", probe(lambda: ""))
    app.router.add_get("/livez", probe(lambda: ""))
    app.router.add_get("/readyz", probe(ready))
    app.router.add_get("/metrics", write_metrics)
    return app


class StatusServer:
    """Serves one application on one address, as an async context manager; port 0 is replaced by the chosen port."""

    def __init__(self, app: web.Application, host: str, port: int) -> None:
        self._runner = web.AppRunner(app, access_log=None)
        self._host, self.port = host, port

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise InputError(f"cannot listen on {self._host}:{self.port}: {_cause(error)}") from None
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


def _cause(error: OSError) -> str:
    """Return the cause alone: the message of a failed bind repeats the address."""
    if error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
