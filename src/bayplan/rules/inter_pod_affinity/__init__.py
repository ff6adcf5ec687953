"""InterPodAffinity: required and preferred affinity and anti-affinity to other pods, in both directions."""

from bayplan.rules.inter_pod_affinity.arguments import InterPodAffinityArguments
from bayplan.rules.inter_pod_affinity.evidence import elsewhere, show_term
from bayplan.rules.inter_pod_affinity.rule import InterPodAffinity
from bayplan.rules.inter_pod_affinity.state import (
    CountedTerm,
    ExistingPodTerm,
    InterPodAffinityPart,
    InterPodAffinityState,
    RequiredAffinity,
    first_by_term,
    in_detail,
    meets_affinity,
    rejected_by_existing,
)

__all__ = [
    "CountedTerm",
    "ExistingPodTerm",
    "InterPodAffinity",
    "InterPodAffinityArguments",
    "InterPodAffinityPart",
    "InterPodAffinityState",
    "RequiredAffinity",
    "elsewhere",
    "first_by_term",
    "in_detail",
    "meets_affinity",
    "rejected_by_existing",
    "show_term",
]
