"""The small HTTP server of a running scheduler: is it alive, is it ready, what does it count."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from aiohttp import web

from bayplan.errors import InputError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Check = Callable[[], str]  # what is wrong, empty if nothing is


def application(
    healthy: Check, ready: Check, metrics: Callable[[], bytes], further: Mapping[str, Handler] | None = None
) -> web.Application:
    """`/healthz`, `/livez`, `/readyz`, `/metrics`, and what else the caller offers, by path."""

    def probe(check: Check) -> Handler:
        async def answer(_request: web.Request) -> web.Response:
            wrong = check()
            return web.Response(text=wrong or "ok", status=503 if wrong else 200)

        return answer

    async def counted(_request: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    app = web.Application(client_max_size=4 * 2**20)
    app.router.add_get("/healthz", probe(healthy))
    app.router.add_get("/livez", probe(healthy))
    app.router.add_get("/readyz", probe(ready))
    app.router.add_get("/metrics", counted)
    for path, handler in (further or {}).items():
        app.router.add_route("*", path, handler)
    return app


class StatusServer:
    """Serves one application on one address, as an async context manager; `port` is the real one if 0 was asked."""

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
    """The cause alone: the text of a failed bind repeats the address."""
    if error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
