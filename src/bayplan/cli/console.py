"""How a run talks: answers to standard output or a file, everything else to standard error. Knows no answer."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys
import time
from typing import TextIO

import click
import msgspec

from bayplan.cli.progress import ProgressLine
from bayplan.errors import BayplanError, Fault, InputError
from bayplan.writing import untrusted

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


class Console(msgspec.Struct, frozen=True):
    """What the options say about talking; `verbosity` is -1 for quiet, 0 as usual, more for more."""

    color: str = "auto"
    verbosity: int = 0
    log_format: str = "text"
    output_file: str = ""

    # Answers

    def answer(self, text: str) -> None:
        """Write the whole answer, so that a failure never leaves half of it in the file."""
        if not self.output_file:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        try:
            pathlib.Path(self.output_file).write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise InputError(Fault(message, file=self.output_file)) from None

    @property
    def table_width(self) -> int | None:
        """How wide a drawn table may be; None where tables must be plain text."""
        if self.output_file and self.color != "always":
            return None
        return shutil.get_terminal_size().columns if self._colours(sys.stdout) else None

    # Everything else

    def error(self, error: BayplanError) -> None:
        """All faults, each on its own line."""
        faults = error.faults if isinstance(error, InputError) else (Fault(str(error)),)
        for fault in faults:
            self._say("error", str(fault), fault)

    def warning(self, text: str, fault: Fault | None = None) -> None:
        """What is admitted but likely not meant."""
        if self.verbosity >= 0:
            self._say("warning", text, fault)

    def note(self, text: str) -> None:
        """What a person may want to know about the answer."""
        if self.verbosity >= 0:
            self._say("note", text)

    def detail(self, text: str) -> None:
        """What is said only when asked for with -v."""
        if self.verbosity > 0:
            self._say("note", text)

    def progress(self) -> ProgressLine:
        """Shows how far things have come, to a person at a terminal who has waited for a second."""
        wanted = self.verbosity >= 0 and self.log_format == "text" and sys.stderr.isatty()
        return ProgressLine(sys.stderr if wanted else None)

    def _say(self, level: str, text: str, fault: Fault | None = None) -> None:
        if self.log_format == "json":
            line = json.dumps({"time": _now(), "level": level, "message": text, **_fields(fault)}, ensure_ascii=True)
        else:
            shown = click.style(level, fg=_COLOURS[level]) if self._colours(sys.stderr) else level
            line = f"{shown}: {untrusted.clean(text)}"
        sys.stderr.write(f"{line}\n")

    def _colours(self, stream: TextIO) -> bool:
        if self.color != "auto":
            return self.color == "always"
        return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _fields(fault: Fault | None) -> dict[str, object]:
    """Where the fault is, for those who read logs by machine."""
    if fault is None:
        return {}
    place = {"file": fault.file, "line": fault.line, "object": fault.subject, "field": fault.path}
    return {name: value for name, value in place.items() if value}
