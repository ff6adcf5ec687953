"""
The direct members of a JSON value as raw pieces, without descending: for values nested deeper than decoders go.

Slow, and only met where a decoder has given up. Trusts that the text is JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]')


def members(value: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each member of an object or array: its key with quotes (empty in an array) and its value as written."""
    depth, start, key, last_string = 0, 0, b"", b""
    for token in _TOKENS.finditer(value):
        text = token.group()
        if text in b"[{":
            depth += 1
            start = token.end() if depth == 1 else start
        elif text in b"]}":
            depth -= 1
            if depth == 0 and value[start : token.start()].strip():
                yield key, value[start : token.start()].strip()
        elif depth == 1 and text == b",":
            yield key, value[start : token.start()].strip()
            start, key = token.end(), b""
        elif depth == 1 and text == b":":
            start, key = token.end(), last_string
        elif depth == 1:
            last_string = text
