"""An HTTP server of ours in a thread with a loop of its own: a test that blocks does not block it. Decides no answer."""

import asyncio
import contextlib
import ssl
import threading

from aiohttp import web

from live.processes import free_port


class ThreadedServer:
    """
    `with` starts it and stops it; a subclass says in `handle` what is answered.

    With a certificate (the files of chain and key) it speaks TLS, else plain HTTP.
    """

    def __init__(self, certificate=None):
        self._tls = None
        if certificate:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(*certificate)
        self._port = free_port()
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self._port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__, daemon=True)
        self._running = contextlib.AsyncExitStack()
        self._server = None

    async def open(self):
        """What must be made on the loop before the first request; things to close go onto `_running`."""

    def __enter__(self):
        self._thread.start()
        self._do(self._start())
        return self

    def __exit__(self, *failure):
        self._do(self._running.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self):
        """Break every connection there is, as a network does: no farewell. Returns how many."""
        return self._do(self._cut())

    async def _start(self):
        await self.open()
        self._server = web.Server(self.handle, handler_cancellation=True)
        runner = web.ServerRunner(self._server, shutdown_timeout=0)
        await runner.setup()
        self._running.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", self._port, ssl_context=self._tls).start()

    async def _cut(self):
        connections = list(self._server.connections)
        for connection in connections:
            hang_up(connection.transport)
        return len(connections)

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def hang_up(transport):
    if transport is not None:
        transport.abort()
