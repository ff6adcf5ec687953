"""
Standard input, output and error of the program as others may have left them: closed, full, or with nobody behind.

An answer that cannot be written is an error of its own, told in one line. A message that cannot be written is lost, and
nothing else changes. Knows nothing of commands.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from bayplan.errors import Fault, InputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_ERRORS = "backslashreplace"  # a name in any script is better shown in escapes than not at all


class NobodyReadsError(Exception):
    """Whoever read our answers has gone."""


class _Questions(io.FileIO):
    """Standard input that was closed before we began: an error only for those who read it."""

    def readinto(self, _buffer: WriteableBuffer, /) -> int:
        raise _closed()

    def readall(self) -> bytes:
        raise _closed()


def _closed() -> InputError:
    return InputError(Fault("cannot be read: it is closed", file="standard input"))


class _Answers(io.FileIO):
    """Standard output. What it cannot take is told once; whatever comes after that goes nowhere."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self._let_go()
            raise NobodyReadsError from None
        except OSError as error:
            self._let_go()
            raise InputError(Fault(f"cannot be written: {error.strerror}", file="standard output")) from None

    def _let_go(self) -> None:
        """What is still in buffers must not fail again while the interpreter ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


class _Messages(io.FileIO):
    """Standard error, which takes everything: there is nobody left to complain to."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def take() -> None:
    """Put these streams in the place of Python's own."""
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_Questions(_number(None, os.O_WRONLY), closefd=False)), "utf-8")
    answers = _Answers(_number(sys.stdout, os.O_RDONLY), "w", closefd=False)
    messages = _Messages(_number(sys.stderr, os.O_WRONLY), "w", closefd=False)
    sys.stdout = _text(answers, sys.stdout, by_line=answers.isatty())
    sys.stderr = _text(messages, sys.stderr, by_line=True)


def _number(stream: TextIO | None, mode: int) -> int:
    """
    The stream's own number; of a closed one, which is None, one that leads nowhere.

    That is the lowest that is free, so no file that we open later is mistaken for the stream. Standard input and
    output are opened the wrong way round: they fail, as closed ones do.
    """
    return os.open(os.devnull, mode) if stream is None else stream.fileno()


def _text(raw: io.FileIO, before: TextIO | None, *, by_line: bool) -> TextIO:
    encoding = "utf-8" if before is None else before.encoding
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, _ERRORS, line_buffering=by_line)
