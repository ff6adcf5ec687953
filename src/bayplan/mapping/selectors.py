"""Selectors as written → selectors as matched."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model import labels as model
from bayplan.model import node_selectors
from bayplan.wire import meta, pods


def selector_of(written: meta.LabelSelector | None) -> model.Selector | None:
    """What a label selector means; None (matches nothing) where it is absent."""
    if written is None:
        return None
    equal = (model.requirement(key, model.IN, (value,)) for key, value in (written.match_labels or {}).items())
    expressions = (model.requirement(e.key, e.operator, e.values or ()) for e in written.match_expressions or ())
    return model.selector_of((*equal, *expressions))


def with_label_keys(
    selector: model.Selector | None,
    labels: model.Labels,
    same: Iterable[str] | None,
    other: Iterable[str] | None = None,
) -> model.Selector | None:
    """
    The selector with matchLabelKeys and mismatchLabelKeys merged in, as the API server does at creation.

    Keys that the pod lacks are passed over. Merging again changes nothing: objects from an API server stay as they are.
    """
    if selector is None:
        return None
    merged = [model.requirement(key, model.IN, (labels[key],)) for key in same or () if key in labels]
    merged += [model.requirement(key, model.NOT_IN, (labels[key],)) for key in other or () if key in labels]
    return selector.and_also(merged) if merged else selector


def node_term_of(written: pods.NodeSelectorTerm) -> node_selectors.NodeTerm:
    return node_selectors.NodeTerm(
        _node_requirements(written.match_expressions), _node_requirements(written.match_fields)
    )


def node_terms_of(written: pods.NodeSelector | None) -> tuple[node_selectors.NodeTerm, ...] | None:
    """The terms of a node selector; None where there is no selector at all."""
    if written is None:
        return None
    return tuple(node_term_of(term) for term in written.node_selector_terms or ())


def node_affinity_of(
    written: pods.WireNodeAffinity | None, selector: dict[str, str] | None = None
) -> node_selectors.NodeAffinity:
    affinity = written or pods.WireNodeAffinity()
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return node_selectors.NodeAffinity(
        tuple(sorted((selector or {}).items())),
        node_terms_of(affinity.required_during_scheduling_ignored_during_execution),
        tuple(node_selectors.PreferredNodeTerm(wish.weight, node_term_of(wish.preference)) for wish in preferred)
        if preferred
        else None,
    )


def _node_requirements(
    written: list[pods.NodeSelectorRequirement] | None,
) -> tuple[node_selectors.NodeRequirement, ...]:
    return tuple(node_selectors.NodeRequirement(r.key, r.operator, tuple(r.values or ())) for r in written or ())
