"""
Text from objects, made safe to show: names, labels and messages may hold anything, escape sequences included.

Knows nothing of terminals or HTML beyond what must not reach them raw.
"""

from __future__ import annotations

import re
import unicodedata

# CSI and OSC sequences as a whole, so that no harmless-looking rest such as `[31m` stays behind.
_ESCAPES = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b.?")
_SPACES = re.compile(r"[\t\r\n\v\f\u2028\u2029]+")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def clean(text: str) -> str:
    """The text on one line, without control characters, escape sequences and marks that reorder what is shown."""
    if text.isprintable():
        return text
    flat = _SPACES.sub(" ", _ESCAPES.sub("", text))
    return "".join(char for char in flat if char.isprintable() or unicodedata.category(char) not in _HIDDEN)


def clean_lines(text: str) -> str:
    """Each line of the text clean, the line breaks kept."""
    return "\n".join(clean(line) for line in text.split("\n"))
