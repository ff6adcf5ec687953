"""
Pods of a dump, decoded many at a time: a good part of a megabyte as one list, in a single pass.

The ends of a batch are found by the indentation that separates items, or without any by how the next pod begins.
Decoding proves them: if what lies between two places is a list of complete values, and the first place begins an item,
then the second ends one. Everything else is left to the reader that takes one item after another, which is the
reference implementation.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable

import msgspec

from bayplan.validating.structure_faults import UNDECODABLE
from bayplan.wire import kinds
from bayplan.wire.pods import Pod

BATCH_BYTES = 1 << 18
_MAX_BATCH_BYTES = 1 << 22
TakePods = Callable[[list[Pod]], bool]  # whether the pods are taken; if not, they are read again one by one
_POD = kinds.KINDS[kinds.POD]
AS_POD = re.compile(rf'\{{\s*"apiVersion":\s*"{_POD.api_version}",\s*"kind":\s*"{_POD.kind}",'.encode())
_OPEN, _CLOSE = b"[]"
_decode: Callable[[memoryview], list[Pod]] = msgspec.json.Decoder(list[Pod]).decode


class PodBatches:
    """Reads batches of a list whose items are separated by `gap`: a line break with an indentation, or nothing."""

    def __init__(self, data: bytes | mmap.mmap, gap: bytes, take: TakePods) -> None:
        self._data, self._take = data, take
        self._is_regular = not gap or (gap.startswith(b"\n") and not gap.strip())
        self._end_of_item, self._between = gap + b"}", gap + b"}," + gap
        self._end_of_list = self._end_of_item if gap else b"}]"
        self._one_by_one_until = 0
        self._view, self._buffer = memoryview(data), bytearray()  # the same memory for each batch

    def read(self, offset: int) -> int:
        """Hand on the pods from the item at `offset`; returns the end of the last of them, 0 if they are not taken."""
        if not self._is_regular or offset < self._one_by_one_until or not (begins := AS_POD.match(self._data, offset)):
            return 0
        end = self._end(offset, begins[0])
        pods = self._decoded(offset, end) if end else None
        if pods is not None and self._take(pods):
            return end
        self._one_by_one_until = end or offset + _MAX_BATCH_BYTES
        return 0

    def _end(self, offset: int, begins: bytes) -> int:
        """Where a batch may end; 0 if no place is near, as more pages of the file would have to be mapped."""
        limit = offset + _MAX_BATCH_BYTES
        last = self._data.find(self._between + begins, offset + BATCH_BYTES, limit)
        if last < 0 and limit >= len(self._data):
            last = self._data.rfind(self._end_of_list, offset)
        return 0 if last < 0 else last + len(self._end_of_item)

    def _decoded(self, offset: int, end: int) -> list[Pod] | None:
        length = end - offset
        if len(self._buffer) < length + 2:
            self._buffer = bytearray(length + 2)
        text = memoryview(self._buffer)[: length + 2]
        text[0], text[1:-1], text[-1] = _OPEN, self._view[offset:end], _CLOSE
        try:
            # The decoder does not look into texts that it skips.
            if not self._buffer.isascii():
                str(text, "utf-8")
            return _decode(text)
        except UNDECODABLE:
            return None
        finally:
            text.release()
