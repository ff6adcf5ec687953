"""
Where the processor time of the running scheduler goes: `python benchmarks/live.py --shares`.

As a program of its own it is `bayplan` with a clock around the parts of a scheduler, from its first decision on; it
prints the share of each part when it ends. A part does not include the parts that it calls. The clock counts the time
of the thread on the processor, so waiting and other processes do not count; reading it adds about a third to the total.
"""

import atexit
import collections
import functools
import sys
import time
from asyncio import sslproto

from aiohttp import client_proto

from bayplan.cli.main import main
from bayplan.kube_api import decoding, http1, reflector
from bayplan.live import binding, event_loop, events, running, scheduler
from bayplan.watching import cluster_state

LOOP = "event loop"
FUNCTIONS = (
    (scheduler.Scheduler, "step", "queue"),
    (scheduler.deciding, "choose", "decide"),
    (cluster_state.ClusterState, "assume", "add the pod to the index"),
    (binding.Binder, "_finish", "metrics"),
    (running.RunningScheduler, "observe_loop_iteration", "metrics"),
    (events.EventRecorder, "record", "compose the event"),
    (event_loop, "collect", "garbage collection"),
    (event_loop.IterationTimer, "select", LOOP),
    (decoding.Decoding, "events", "decode watch events"),
    (client_proto.ResponseHandler, "data_received", "read watches"),
    (http1._Channel, "data_received", "read responses"),  # noqa: SLF001
    (sslproto.SSLProtocol, "buffer_updated", "decrypt and receive"),
    (sslproto.SSLProtocol, "_do_handshake", "open connections"),
    (sslproto._SSLProtocolTransport, "write", "encrypt and send"),  # noqa: SLF001
)
COROUTINES = (
    (scheduler.Scheduler, "_bind", "compose the bind"),
    (events.EventRecorder, "_send_queued", "send the event"),
    (reflector.Reflector, "run", "apply watch events"),
)


class Shares:
    """Seconds of each part; one part is timed at a time, the innermost."""

    def __init__(self):
        self.seconds = collections.Counter()
        self.n_decisions = 0
        self._parts = []
        self._since = 0.0

    def begin(self):
        self._parts, self._since = [LOOP], time.thread_time()

    def enter(self, part):
        if self._parts:
            self._note()
            self._parts.append(part)
            self.n_decisions += part == "decide"
        return bool(self._parts)

    def leave(self):
        self._note()
        self._parts.pop()

    def _note(self):
        now = time.thread_time()
        self.seconds[self._parts[-1]] += now - self._since
        self._since = now

    def report(self):
        total, n = sum(self.seconds.values()), self.n_decisions
        if n:
            print(f"{1e6 * total / n:.0f} µs per pod, clocks included")
            for part, seconds in self.seconds.most_common():
                print(f"{100 * seconds / total:5.1f} %  {part}")


shares = Shares()


def timed(function, part):
    @functools.wraps(function)
    def call(*arguments, **options):
        entered = shares.enter(part)
        try:
            return function(*arguments, **options)
        finally:
            if entered:
                shares.leave()

    return call


class TimedSteps:
    """A coroutine whose steps are timed."""

    def __init__(self, inner, part):
        self.send, self.throw, self.close = timed(inner.send, part), timed(inner.throw, part), inner.close

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)


def timed_coroutine(function, part):
    @functools.wraps(function)
    async def call(*arguments, **options):
        return await TimedSteps(function(*arguments, **options), part)

    return call


def begin_with_the_first_decision():
    attempt = scheduler.Scheduler._attempt  # noqa: SLF001

    def first(self, pending):
        shares.begin()
        scheduler.Scheduler._attempt = attempt  # noqa: SLF001
        attempt(self, pending)

    scheduler.Scheduler._attempt = first  # noqa: SLF001


if __name__ == "__main__":
    for owner, name, part in FUNCTIONS:
        setattr(owner, name, timed(getattr(owner, name), part))
    for owner, name, part in COROUTINES:
        setattr(owner, name, timed_coroutine(getattr(owner, name), part))
    begin_with_the_first_decision()
    atexit.register(shares.report)
    sys.exit(main())
