"""Label selectors, node selectors and node affinity, mapped to the values that are matched."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model import labels as model
from bayplan.model import node_selectors
from bayplan.wire import meta, pods


def selector_of(written: meta.LabelSelector | None) -> model.Selector | None:
    """The label selector; None, which matches nothing, if it is absent."""
    if written is None:
        return None
    equal = (model.Requirement(key, model.IN, (value,)) for key, value in (written.match_labels or {}).items())
    expressions = (model.requirement(e.key, e.operator, e.values or ()) for e in written.match_expressions or ())
    return model.selector_of((*equal, *expressions))


def with_label_keys(
    selector: model.Selector | None,
    labels: model.Labels,
    same: Iterable[str] | None,
    other: Iterable[str] | None = None,
) -> model.Selector | None:
    """
    The selector with matchLabelKeys (`same`) and mismatchLabelKeys (`other`) merged in, as the API server does.

    Keys that the pod lacks are ignored. Merging twice changes nothing, so objects from an API server stay as they are.
    """
    if selector is None:
        return None
    merged = [model.requirement(key, model.IN, (labels[key],)) for key in same or () if key in labels]
    merged += [model.requirement(key, model.NOT_IN, (labels[key],)) for key in other or () if key in labels]
    return selector.and_also(merged) if merged else selector


def _node_term(written: pods.NodeSelectorTerm) -> node_selectors.NodeTerm:
    return node_selectors.NodeTerm(
        _node_requirements(written.match_expressions), _node_requirements(written.match_fields)
    )


def node_terms_of(written: pods.NodeSelector | None) -> tuple[node_selectors.NodeTerm, ...] | None:
    """The terms of a node selector; None if there is no selector."""
    if written is None:
        return None
    return tuple(_node_term(term) for term in written.node_selector_terms or ())


def node_affinity_of(
    written: pods.WireNodeAffinity | None, selector: dict[str, str] | None = None
) -> node_selectors.NodeAffinity:
    """A pod's node affinity, together with its node selector."""
    labels = tuple(sorted((selector or {}).items()))
    if written is None:
        return node_selectors.NodeAffinity(labels)
    preferred = written.preferred_during_scheduling_ignored_during_execution or ()
    return node_selectors.NodeAffinity(
        labels,
        node_terms_of(written.required_during_scheduling_ignored_during_execution),
        tuple(node_selectors.PreferredNodeTerm(p.weight, _node_term(p.preference)) for p in preferred) or None,
    )


def _node_requirements(
    written: list[pods.NodeSelectorRequirement] | None,
) -> tuple[node_selectors.NodeRequirement, ...]:
    return tuple(node_selectors.NodeRequirement(r.key, r.operator, tuple(r.values or ())) for r in written or ())
