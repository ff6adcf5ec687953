"""
What a scheduler configuration can set for a rule (kube-scheduler: the `args` of an entry in `pluginConfig`).

A rule with arguments has a subclass beside it; this one is for rules without any. Knows nothing of profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import msgspec

from bayplan.validating.fields import Cause, Field
from bayplan.wire.scheduler_config import WrittenArguments


class Arguments(msgspec.Struct, frozen=True):
    """The arguments of a rule, each with kube-scheduler's default; `written_type` is their type as written."""

    written_type: ClassVar[type[WrittenArguments]] = WrittenArguments

    @classmethod
    def validate(cls, written: Field) -> list[Cause]:
        """The errors with which kube-scheduler does not start; absent values count as their defaults."""
        del written
        return []

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        """The arguments from valid ones as written; what is absent has its default."""
        del written
        return cls()
