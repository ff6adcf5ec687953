"""What a page about a reason says, and when it is meant. Knows none of the pages."""

from __future__ import annotations

import re

import msgspec


class ReasonPage(msgspec.Struct, frozen=True):
    """`id` and `rule` are our names, stable; `plugin` is the scheduler's, `text` what operators search for."""

    id: str
    rule: str
    plugin: str
    text: str
    means: str
    to_do: str

    def says(self, message: str) -> bool:
        """Whether the message is, or holds, this reason's text, or is a piece of it long enough to be meant."""
        if not re.sub(r"<[a-z]+>", "", self.text):  # all of it is filled in, so it says nothing by itself
            return False
        pattern = ".+?".join(re.escape(piece) for piece in re.split(r"<[a-z]+>", self.text))
        return re.search(pattern, message, re.IGNORECASE) is not None or (
            len(message) > 8 and message.casefold() in self.text.casefold()
        )
