"""DefaultPreemptionArgs of a scheduler configuration: validated only, because every candidate node is compared."""

from __future__ import annotations

from bayplan.validating.fields import Cause, Field

PLUGIN = "DefaultPreemption"


def validate(written: Field) -> list[Cause]:
    """The errors with which kube-scheduler does not start; absent values count as their defaults."""
    share, number = written["minCandidateNodesPercentage"], written["minCandidateNodesAbsolute"]
    found = [
        *share.check_integer(0, 100, "not in valid range [0, 100]"),
        *number.check_integer(0, None, "not in valid range [0, inf)"),
    ]
    if share.number(10) == 0 and number.number(100) == 0:
        same_time = "cannot be zero at the same time as"
        found.append(share.invalid(f"{same_time} minCandidateNodesAbsolute", "0"))
        found.append(number.invalid(f"{same_time} minCandidateNodesPercentage", "0"))
    return found
