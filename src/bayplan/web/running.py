"""Runs the page over a state that is followed: read again in a thread of its own whenever it changes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from bayplan.errors import BayplanError
from bayplan.library.inputs import InputSpec, Supposed
from bayplan.library.watched import POLL_SECONDS, WatchedState
from bayplan.web import serving
from bayplan.web.access import AccessRules
from bayplan.web.moments import Moment
from bayplan.web.serving import PageServer


class PageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown, where it is served, and who may ask. Unless it `follows`, the state is read once."""

    spec: InputSpec
    host: str
    port: int
    rules: AccessRules
    tls: Callable[[], Any] | None = None
    follows: bool = True


class _StoppedError(Exception):
    """The page is no longer served."""


class StateFollower:
    """
    Hands a moment to `on_moment` for the first state and for each that follows, in a thread.

    An error of the first one ends it; later ones are told, since a file may be half written.
    """

    def __init__(
        self, settings: PageSettings, on_moment: Callable[[Moment], None], on_trouble: Callable[[str], None]
    ) -> None:
        self._settings, self._on_moment, self._on_trouble = settings, on_moment, on_trouble
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bayplan-state", daemon=True)
        self._watched = WatchedState(settings.spec, Supposed(), on_trouble, self._look)

    def start(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _look(self) -> None:
        if self._stopped.is_set():
            raise _StoppedError

    def _run(self) -> None:
        revision = 0
        try:
            with self._watched as watched:
                while True:
                    revision += 1
                    try:
                        self._on_moment(Moment(watched.reading(), revision, source_of(self._settings.spec)))
                    except BayplanError as error:
                        if revision == 1:
                            raise
                        self._on_trouble(str(error))
                    if not self._settings.follows:
                        return
                    watched.wait()
                    self._look()
        except _StoppedError:
            return
        except BaseException as error:  # noqa: BLE001  # the loop of the server raises it
            self._failed(error)


def source_of(spec: InputSpec) -> Mapping[str, Any]:
    """What is shown, for the heading of the page."""
    names = [spec.live_name, *spec.state.paths, *spec.change.paths]
    return {"source": ", ".join(filter(None, names)), "live": spec.connect is not None}


@contextlib.asynccontextmanager
async def served(settings: PageSettings) -> AsyncIterator[tuple[PageServer, int, asyncio.Future[None]]]:
    """The page with its port while the block runs, once the first state is read; the future fails if following does."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[Moment] = loop.create_future()
    ended: asyncio.Future[None] = loop.create_future()
    page: PageServer | None = None

    def show(moment: Moment) -> None:
        if not first.done():
            first.set_result(moment)
        elif page is not None:
            loop.create_task(page.show(moment))  # noqa: RUF006  # it ends at once

    def trouble(text: str) -> None:
        if page is not None:
            loop.create_task(page.tell(text))  # noqa: RUF006

    def failed(error: BaseException) -> None:
        for future in (first, ended):
            if not future.done():
                future.set_exception(error)
                break

    def soon(function: Callable[[Any], None]) -> Callable[[Any], None]:
        def call(argument: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
                loop.call_soon_threadsafe(function, argument)

        return call

    follower = StateFollower(settings, soon(show), soon(trouble))
    follower.start(soon(failed))
    try:
        page = PageServer(await first, settings.rules, serving.print_bug)
        async with serving.opened(page, settings.host, settings.port, settings.tls) as server:
            yield page, server.port, ended
    finally:
        follower.stop()
        await loop.run_in_executor(None, follower.join, 10 * POLL_SECONDS)
        ended.cancel()
