"""Objects of custom kinds that make pods, as written."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.wire.meta import ApiObject


class CustomObject(ApiObject):
    """`content` is the whole object as plain values; `of_state` if it runs already and is not about to be applied."""

    content: dict[str, Any] = msgspec.field(default_factory=dict)
    of_state: bool = False
