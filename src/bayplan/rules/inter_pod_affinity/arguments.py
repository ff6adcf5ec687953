"""What a scheduler configuration can set for InterPodAffinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from bayplan.rules.arguments import Arguments
from bayplan.validating.fields import Cause, Field
from bayplan.wire.scheduler_config import InterPodAffinityArgs


class InterPodAffinityArguments(Arguments, frozen=True):
    """InterPodAffinityArgs: the weight that the owners of required affinity terms give, and whose soft terms count."""

    written_type = InterPodAffinityArgs
    hard_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    @classmethod
    def validate(cls, written: Field) -> list[Cause]:
        return written["hardPodAffinityWeight"].check_integer(0, 100, "not in valid range [0, 100]")

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        weight = written.get("hardPodAffinityWeight")
        return cls(1 if weight is None else weight, bool(written.get("ignorePreferredTermsOfExistingPods")))
