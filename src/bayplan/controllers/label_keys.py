"""
`matchLabelKeys` and `mismatchLabelKeys` of pod affinity: what an API server writes into the selectors of a new pod.

Mirrors `applyMatchLabelKeysAndMismatchLabelKeys` in pkg/registry/core/pod/strategy.go. A pod keeps the selectors
that it was created with, whatever its labels become.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.model.labels import IN, NOT_IN
from bayplan.wire.meta import LabelSelector, LabelSelectorRequirement
from bayplan.wire.pods import Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm

_REQUIRED = (
    "required_during_scheduling_required_during_execution",
    "required_during_scheduling_ignored_during_execution",
)
_PREFERRED = "preferred_during_scheduling_ignored_during_execution"


def merged(pod: Pod) -> Pod:
    """The pod with the label keys of its affinity merged into the selectors; the same pod if there are none."""
    affinity, labels = pod.spec.affinity, pod.metadata.labels or {}
    if affinity is None or not labels:
        return pod
    pod_affinity, anti_affinity = (_side(one, labels) for one in (affinity.pod_affinity, affinity.pod_anti_affinity))
    affinity = msgspec.structs.replace(affinity, pod_affinity=pod_affinity, pod_anti_affinity=anti_affinity)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))


def _side(side: PodAffinity | None, labels: dict[str, str]) -> PodAffinity | None:
    if side is None:
        return None
    changed: dict[str, list[PodAffinityTerm] | list[WeightedPodAffinityTerm]] = {
        name: [_term(one, labels) for one in found] for name in _REQUIRED if (found := getattr(side, name))
    }
    if side.preferred_during_scheduling_ignored_during_execution:
        changed[_PREFERRED] = [
            msgspec.structs.replace(one, pod_affinity_term=_term(one.pod_affinity_term, labels))
            for one in side.preferred_during_scheduling_ignored_during_execution
        ]
    return msgspec.structs.replace(side, **changed)


def _term(term: PodAffinityTerm, labels: dict[str, str]) -> PodAffinityTerm:
    selector = term.label_selector
    if selector is None:
        return term
    present = selector.match_expressions or []
    added = [one for one in _requirements(term, labels) if one not in present]
    if not added:
        return term
    found = LabelSelector(match_labels=selector.match_labels, match_expressions=[*present, *added])
    return msgspec.structs.replace(term, label_selector=found)


def _requirements(term: PodAffinityTerm, labels: dict[str, str]) -> Iterator[LabelSelectorRequirement]:
    for operator, keys in ((IN, term.match_label_keys), (NOT_IN, term.mismatch_label_keys)):
        for key in keys or ():
            if key in labels:
                yield LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
