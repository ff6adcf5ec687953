"""
What a scheduler configuration can set for a rule (kube-scheduler: the `args` of an entry in `pluginConfig`).

A rule with arguments has a subclass beside it; this one is for rules without any. Knows nothing of profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import msgspec

from bayplan.model.kubernetes_versions import KubernetesVersion
from bayplan.validating.fields import Cause, Field
from bayplan.wire.scheduler_config import WrittenArguments


class Arguments(msgspec.Struct, frozen=True):
    """The arguments of a rule, each with kube-scheduler's default; `written_type` is their type as written."""

    written_type: ClassVar[type[WrittenArguments]] = WrittenArguments
    gated: ClassVar[Mapping[str, tuple[KubernetesVersion, str]]] = {}  # field → since when, and its feature gate

    @classmethod
    def validate_for(cls, version: KubernetesVersion, written: Field) -> list[Cause]:
        """The errors with which kube-scheduler of this version does not start."""
        return cls.validate(written) + [
            written[name].invalid(f"unexpected field `{name}`, remove it or turn on the feature gate {gate}")
            for name, (since, gate) in cls.gated.items()
            if version < since and written[name].present
        ]

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
