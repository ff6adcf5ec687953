"""
The secret segment in the path of every review, by which the webhook recognises its API server.

API servers present no certificate to a webhook unless each of them is configured to. A path that only the webhook
configurations have works on every cluster: a client that can reach the port, but may not read the configurations, does
not know it. Segments are created with serving certificates and rotate with them.
"""

from __future__ import annotations

import asyncio
import hmac
import pathlib
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from bayplan.errors import Fault, InputError

SEGMENT_BYTES = 32
MIN_SEGMENT_LENGTH = 16
NO_SEGMENT = ""  # reviews come without a segment: another check recognises the API server
# API servers accept only DNS labels and the like in the path of a Service (k8s.io/apiserver/pkg/util/webhook).
_VALID_SEGMENT = re.compile(rf"[a-z0-9][a-z0-9-]{{{MIN_SEGMENT_LENGTH - 2},126}}[a-z0-9]")


class PathSegment(msgspec.Struct, frozen=True):
    """A segment that the webhook accepts since `created`, and that API servers use since `used`; None before."""

    value: str
    created: datetime
    used: datetime | None = None


def create_segment(now: datetime) -> PathSegment:
    return PathSegment(secrets.token_hex(SEGMENT_BYTES), now)


def rotated_segments(segments: Sequence[PathSegment], now: datetime, settling: timedelta) -> tuple[PathSegment, ...]:
    """
    Return the segments after what is due now: a new one is used when it has settled, and old ones are dropped later.

    The times are those of the steps, not of a plan: after a downtime no step is skipped.
    """
    found = list(segments)
    if found[-1].used is None and (len(found) == 1 or now - found[-1].created >= settling):
        found[-1] = msgspec.structs.replace(found[-1], used=now)
    current = found.index(in_use(found))
    if now - (found[current].used or now) >= settling:
        del found[:current]
    return tuple(found)


def in_use(segments: Sequence[PathSegment]) -> PathSegment:
    """Return the segment that API servers use."""
    return [one for one in segments if one.used is not None][-1]


class AcceptedPaths:
    """The segments that are accepted now. Replaced as a whole, so another thread may read it at any time."""

    def __init__(self, segments: Iterable[str] = ()) -> None:
        self._segments: tuple[bytes, ...] = ()
        self.accept(segments)

    def accept(self, segments: Iterable[str]) -> None:
        self._segments = tuple(segment.encode() for segment in segments)

    def accepts(self, segment: str) -> bool:
        """Whether a request with this segment is from the API server; the time taken says nothing about the secret."""
        asked = segment.encode(errors="replace")
        found = [hmac.compare_digest(asked, one) for one in self._segments]
        return any(found)


class PathFile:
    """Reads the accepted segments from a file, one per line, again whenever it changes."""

    def __init__(self, paths: AcceptedPaths, file: str) -> None:
        self._paths, self._file = paths, pathlib.Path(file)

    async def run(self, on_error: Callable[[InputError], None], every: float) -> None:
        """Check the file until cancelled. An unusable file is reported, and the segments stay as they are."""
        while True:
            await asyncio.sleep(every)
            try:
                self.reload()
            except InputError as error:
                on_error(error)

    def reload(self) -> None:
        """Accept the segments of the file; InputError, which names none of them, if it is unusable."""
        try:
            segments = self._file.read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "no text"
            raise InputError(Fault(f"cannot be read: {reason}", file=str(self._file))) from None
        expected = f"expected one or more segments of {MIN_SEGMENT_LENGTH} to 128 lower-case letters, digits and dashes"
        if not segments or not all(_VALID_SEGMENT.fullmatch(one) for one in segments):
            raise InputError(Fault(expected, file=str(self._file)))
        self._paths.accept(segments)
