"""One line at a terminal that says how far things have come. Knows nothing of what is being done."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from bayplan.writing import untrusted

PATIENCE = 1.0  # seconds before a person wants to know
INTERVAL = 0.1
_CLEAR = "\r\x1b[2K"


class ProgressLine:
    """Shows the latest text on one line and leaves nothing behind; without a stream it does nothing."""

    def __init__(self, stream: TextIO | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._next = clock() + PATIENCE
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()

    def show(self, text: Callable[[], str]) -> None:
        """Show the text, which is made only if it is time for it."""
        if self._stream is None or self._clock() < self._next:
            return
        self._next = self._clock() + INTERVAL
        self._stream.write(f"{_CLEAR}{untrusted.clean(text())}")
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the line away, so that something else may be said."""
        if self._stream is not None and self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._shown = False
