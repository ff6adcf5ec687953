"""
How much of a pod a decision has to read: its scheduling constraints, counted on the pod as written.

Counting takes microseconds, mapping ten thousand terms a second. So a scheduler can tell an absurd pod from a large one
before it spends any time on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized

import msgspec

from bayplan.model.groups import GROUP_AFFINITY
from bayplan.validating.affinity import AFFINITY_ANNOTATION
from bayplan.wire.meta import LabelSelector
from bayplan.wire.pods import Affinity, Container, NodeSelectorTerm, Pod, PodAffinity, PodAffinityTerm

_HOLDING_TERMS = frozenset((AFFINITY_ANNOTATION, GROUP_AFFINITY))
PER_CONSTRAINT = 10  # values or names of namespaces, each of which costs little


def n_constraints(pod: Pod) -> int:
    """
    The terms, requirements, spread constraints, tolerations, volumes, containers, ports, resources and labels of a pod.

    Ten values of a requirement or ten listed namespaces count as one. Terms of annotations, whose length
    is limited, are not counted.
    """
    spec = pod.spec
    n = _n(spec.node_selector) + _n(spec.tolerations) + _n(spec.volumes) + _n(pod.metadata.labels)
    n += sum(map(_of_container, (*(spec.containers or ()), *(spec.init_containers or ()))))
    n += sum(1 + _of_selector(constraint.label_selector) for constraint in spec.topology_spread_constraints or ())
    return n + (0 if spec.affinity is None else _of_affinity(spec.affinity))


def without_terms(pod: Pod) -> Pod:
    """The pod with its labels and what it requests, and without what takes long: its terms, constraints and volumes."""
    annotations = {key: text for key, text in (pod.metadata.annotations or {}).items() if key not in _HOLDING_TERMS}
    metadata = msgspec.structs.replace(pod.metadata, annotations=annotations or None)
    left_out = {"affinity": None, "topology_spread_constraints": None, "volumes": None, "node_selector": None}
    return msgspec.structs.replace(pod, metadata=metadata, spec=msgspec.structs.replace(pod.spec, **left_out))


def _n(listed: Sized | None) -> int:
    return 0 if listed is None else len(listed)


def _of_container(container: Container) -> int:
    resources = container.resources
    return 1 + _n(container.ports) + (0 if resources is None else _n(resources.requests) + _n(resources.limits))


def _of_affinity(affinity: Affinity) -> int:
    n = _of_peers(affinity.pod_affinity) + _of_peers(affinity.pod_anti_affinity)
    nodes = affinity.node_affinity
    if nodes is not None:
        required = nodes.required_during_scheduling_ignored_during_execution
        preferred = nodes.preferred_during_scheduling_ignored_during_execution
        n += _of_node_terms(required.node_selector_terms or () if required is not None else ())
        n += _of_node_terms(one.preference for one in preferred or ())
    return n


def _of_peers(side: PodAffinity | None) -> int:
    if side is None:
        return 0
    weighted = side.preferred_during_scheduling_ignored_during_execution or ()
    terms: Iterable[PodAffinityTerm] = (
        *(side.required_during_scheduling_required_during_execution or ()),
        *(side.required_during_scheduling_ignored_during_execution or ()),
        *(one.pod_affinity_term for one in weighted),
    )
    return sum(
        1
        + _of_selector(term.label_selector)
        + _of_selector(term.namespace_selector)
        + _n(term.namespaces) // PER_CONSTRAINT
        + _n(term.match_label_keys)
        + _n(term.mismatch_label_keys)
        for term in terms
    )


def _of_selector(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    expressions = selector.match_expressions or ()
    return _n(selector.match_labels) + sum(1 + _n(one.values) // PER_CONSTRAINT for one in expressions)


def _of_node_terms(terms: Iterable[NodeSelectorTerm]) -> int:
    n = 0
    for term in terms:
        requirements = (*(term.match_expressions or ()), *(term.match_fields or ()))
        n += 1 + sum(1 + _n(one.values) // PER_CONSTRAINT for one in requirements)
    return n
