"""
What happened in a simulation, in order, and how often.

What every pod goes through is counted only, unless everything is asked for: a day of a large cluster has hundreds of
thousands of such events. Knows nothing of what they mean.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

MAX_EVENTS = 20_000  # that are kept
ROUTINE = frozenset(("Scheduled", "Created", "Started", "Deleted", "Killing", "Removed"))


class SimulatedEvent(msgspec.Struct, frozen=True, gc=False):
    """What happened to an object, in the words of the controller that reports it; `at` is in seconds."""

    at: float
    subject: str
    reason: str
    note: str


class LogRemarks(logging.Handler):
    """Turns errors that the live parts log into remarks; warnings have events of their own."""

    def __init__(self, events: EventLog) -> None:
        super().__init__(logging.ERROR)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Remark one record, with the exception that it is about."""
        error = record.exc_info[1] if record.exc_info else None
        self._events.remark(record.getMessage() + ("" if error is None else f": {error!r}"))

    @contextlib.contextmanager
    def instead_of_others(self) -> Iterator[None]:
        """Receive the logs of the live parts while the block runs, and let no other handler do so."""
        logger = logging.getLogger("bayplan")
        before = logger.handlers[:], logger.propagate
        logger.handlers[:], logger.propagate = [self], False
        try:
            yield
        finally:
            logger.handlers[:], logger.propagate = before


class EventLog:
    """Records events. `is_complete` asks for the routine ones too."""

    def __init__(self, clock: Callable[[], float], *, is_complete: bool = False) -> None:
        self._clock, self._is_complete = clock, is_complete
        self.events: list[SimulatedEvent] = []
        self.counts: Counter[str] = Counter()
        self.n_left_out = 0
        self.remarks: dict[str, None] = {}

    def record(self, subject: str, reason: str, note: str = "") -> None:
        """Record one event now."""
        self.counts[reason] += 1
        if reason in ROUTINE and not self._is_complete:
            return
        if len(self.events) >= MAX_EVENTS:
            self.n_left_out += 1
            return
        self.events.append(SimulatedEvent(round(self._clock(), 3), subject, reason, note))

    def remark(self, text: str) -> None:
        """Say once what the simulation leaves out or cannot know."""
        self.remarks.setdefault(text)
