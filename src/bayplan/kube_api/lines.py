"""Whole lines out of a stream of chunks, however long a line is. aiohttp's own reader refuses lines over its buffer."""

from __future__ import annotations


class LineBuffer:
    """Keeps what comes after the last line end until the rest of that line arrives."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # joined only once the line ends: a long one is copied once

    def feed(self, chunk: bytes) -> bytes:
        """All lines that end within the chunk, as one piece; empty if none does."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._begun.append(chunk)
            return b""
        whole = b"".join((*self._begun, chunk[:end]))
        self._begun = [chunk[end:]] if end < len(chunk) else []
        return whole
