"""
Output of a run: answers to standard output or a file, messages and progress to standard error.

The standard streams may be closed, full, or have lost their reader. An answer that cannot be written is an error,
reported in one line. A message that cannot be written is dropped. It knows nothing of commands or answers.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

import click
import msgspec

from bayplan.errors import BayplanError, Fault, InputError
from bayplan.writing import tables

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

PROGRESS_DELAY_SECONDS = 1.0  # a shorter run shows no progress
PROGRESS_INTERVAL_SECONDS = 0.1
_CLEAR_LINE = "\r\x1b[2K"
_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}
_UNENCODABLE = "backslashreplace"  # characters that the terminal cannot show are escaped, not an error


class Console(msgspec.Struct, frozen=True):
    """The output options; `verbosity` is -1 for quiet, 0 by default, above 0 for verbose."""

    color: str = "auto"
    verbosity: int = 0
    log_format: str = "text"
    output_file: str = ""

    # Answers

    def answer(self, text: str) -> None:
        """Write the whole answer at once, so that a failure leaves no partial file."""
        if not self.output_file:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        import pathlib

        try:
            pathlib.Path(self.output_file).write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise InputError(Fault(message, file=self.output_file)) from None

    @property
    def table_width(self) -> int | None:
        """Width of a drawn table; None where tables are plain text."""
        if self.output_file and self.color != "always":
            return None
        if not self._has_color(sys.stdout):
            return None
        import shutil

        return shutil.get_terminal_size().columns

    # Messages

    def error(self, error: BayplanError) -> None:
        """Report every fault, one per line."""
        faults = error.faults if isinstance(error, InputError) else (Fault(str(error)),)
        for fault in faults:
            self._write("error", str(fault), fault)

    def warning(self, text: str, fault: Fault | None = None) -> None:
        """Report something that is admitted but probably a mistake."""
        if self.verbosity >= 0:
            self._write("warning", text, fault)

    def note(self, text: str, *, verbosity: int = 0) -> None:
        """Report a fact about the answer; with `verbosity` 1 only under -v."""
        if self.verbosity >= verbosity:
            self._write("note", text)

    def _write(self, level: str, text: str, fault: Fault | None = None) -> None:
        if self.log_format == "json":
            import json

            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            where = Fault("") if fault is None else fault
            fields = {"file": where.file, "line": where.line, "object": where.subject, "field": where.path}
            known = {name: value for name, value in fields.items() if value}
            line = json.dumps({"time": now, "level": level, "message": text, **known}, ensure_ascii=True)
        else:
            shown = click.style(level, fg=_COLORS[level]) if self._has_color(sys.stderr) else level
            line = f"{shown}: {tables.printable(text)}"
        sys.stderr.write(f"{line}\n")

    def _has_color(self, stream: TextIO) -> bool:
        if self.color != "auto":
            return self.color == "always"
        return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    # Progress

    @contextlib.contextmanager
    def progress(self) -> Iterator[Callable[[Callable[[], str]], None]]:
        """A function that shows how far the block has come; it does nothing unless standard error is a terminal."""
        if self.verbosity < 0 or self.log_format != "text" or not sys.stderr.isatty():
            yield lambda _: None
            return
        line = ProgressLine(sys.stderr)
        try:
            yield line.show
        finally:
            line.clear()


class ProgressLine:
    """One line at a terminal with the latest progress."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._next = clock() + PROGRESS_DELAY_SECONDS
        self._shown = False

    def show(self, text: Callable[[], str]) -> None:
        """Show the text if an update is due; `text` is called only then."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + PROGRESS_INTERVAL_SECONDS
        self._stream.write(f"{_CLEAR_LINE}{tables.printable(text())}")
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Remove the line, so that a message can be written."""
        if self._shown:
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()
            self._shown = False


class ClosedPipeError(Exception):
    """The reader of standard output has closed the pipe."""


class _ClosedInput(io.FileIO):
    """Standard input that was closed before the program started: reading it is an error."""

    def readinto(self, _buffer: WriteableBuffer, /) -> int:
        raise InputError(Fault("cannot be read: it is closed", file="standard input"))

    def readall(self) -> bytes:
        raise InputError(Fault("cannot be read: it is closed", file="standard input"))


class _OutputStream(io.FileIO):
    """Standard output. The first failed write is an error; what follows is discarded."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self._discard_the_rest()
            raise ClosedPipeError from None
        except OSError as error:
            self._discard_the_rest()
            raise InputError(Fault(f"cannot be written: {error.strerror}", file="standard output")) from None

    def _discard_the_rest(self) -> None:
        """Redirect to the null device: buffered text must not fail again while the interpreter exits."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)


class _ErrorStream(io.FileIO):
    """Standard error. A failed write is ignored: there is no other stream to report it on."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def install_streams() -> None:
    """Replace Python's standard streams with these."""
    if sys.stdin is None:
        closed = _ClosedInput(_descriptor(None, os.O_WRONLY), closefd=False)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(closed), "utf-8")
    output = _OutputStream(_descriptor(sys.stdout, os.O_RDONLY), "w", closefd=False)
    errors = _ErrorStream(_descriptor(sys.stderr, os.O_WRONLY), "w", closefd=False)
    sys.stdout = _text_stream(output, sys.stdout, line_buffering=output.isatty())
    sys.stderr = _text_stream(errors, sys.stderr, line_buffering=True)


def _descriptor(stream: TextIO | None, mode: int) -> int:
    """
    The stream's file descriptor; for a closed stream, which is None, one of the null device.

    `os.open` returns the lowest free number, so no file that is opened later takes the stream's number. Closed standard
    input and output are opened in the wrong direction, so that using them fails as it would on the closed stream.
    """
    return os.open(os.devnull, mode) if stream is None else stream.fileno()


def _text_stream(raw: io.FileIO, previous: TextIO | None, *, line_buffering: bool) -> TextIO:
    encoding = "utf-8" if previous is None else previous.encoding
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, _UNENCODABLE, line_buffering=line_buffering)
