"""The page served in a thread of the test, and Debian's Chromium to look at it."""

import asyncio
import contextlib
import os
import queue
import shutil
import threading
import time

from bayplan.library.arguments import Given
from bayplan.library.inputs import InputSpec
from bayplan.web import running
from bayplan.web.access import AccessRules
from bayplan.web.running import PageSettings

CHROMIUM = os.environ.get("BAYPLAN_TEST_CHROMIUM") or shutil.which("chromium") or ""
NO_CHROMIUM = (
    "no Chromium: `make chromium` installs it where apt-get works as root; BAYPLAN_TEST_CHROMIUM names another"
)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ON_LOOPBACK = AccessRules(is_loopback=True)


def manifests(*paths):
    return InputSpec(change=Given(tuple(map(str, paths))))


def state(*paths):
    return InputSpec(state=Given(tuple(map(str, paths))))


@contextlib.contextmanager
def served(spec, *, rules=ON_LOOPBACK, follows=False):
    """The address of the page while the block runs."""
    told, stop = queue.Queue(), threading.Event()

    async def serve():
        settings = PageSettings(spec=spec, host="127.0.0.1", port=0, rules=rules, follows=follows)
        try:
            async with running.served(settings) as (page, port, _):
                told.put((page, port, asyncio.get_running_loop()))
                while not stop.is_set():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        except BaseException as error:  # noqa: BLE001
            told.put(error)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        found = told.get(timeout=120)
        if isinstance(found, BaseException):
            raise found
        yield f"http://127.0.0.1:{found[1]}/"
    finally:
        stop.set()
        thread.join(30)


@contextlib.contextmanager
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield chromium
        finally:
            chromium.close()


@contextlib.contextmanager
def opened(chromium, url, *, width=1280, height=800, **how):
    """A page that is ready; at the end it must have logged no error and have asked no other server."""
    context = chromium.new_context(viewport={"width": width, "height": height}, **how)
    try:
        page = context.new_page()
        page.set_default_timeout(20_000)
        problems = []
        origin = "/".join(url.split("/")[:3])
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((origin, "data:", "blob:")) else problems.append(asked.url),
        )
        page.expected = []  # errors that a test brings about
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        settled(page)
        yield page
        assert [one for one in problems if not any(part in one for part in page.expected)] == []
    finally:
        context.close()


def settled(page):
    """Wait until the page asks nothing any more and has drawn what it knows."""
    until(page, "!document.body.hasAttribute('data-busy') && !bayplan.drawing.isRequested")


def until(page, expression, seconds=30):
    """Wait until an expression is true. Playwright's own way evaluates text in the page, which its policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"not within {seconds} seconds: {expression}"
        page.wait_for_timeout(20)
