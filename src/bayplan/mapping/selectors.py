"""Label selectors, node selectors and node affinity, mapped to the values that are matched."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model import labels as model
from bayplan.model import node_selectors
from bayplan.validating import go_text, names
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
    """The term; one that kube-scheduler cannot parse matches no node, as one without requirements."""
    if _parse_fault(written):
        return node_selectors.NodeTerm()
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
    faults = (
        f"[{position}].{fault}"
        for position, one in enumerate(preferred)
        if one.weight and (fault := _parse_fault(one.preference))
    )
    return node_selectors.NodeAffinity(
        labels,
        node_terms_of(written.required_during_scheduling_ignored_during_execution),
        tuple(node_selectors.PreferredNodeTerm(p.weight, _node_term(p.preference)) for p in preferred) or None,
        next(faults, ""),
    )


def _parse_fault(term: pods.NodeSelectorTerm) -> str:
    """Why kube-scheduler cannot parse a term; empty if it can (apimachinery: labels.NewRequirement)."""
    for position, one in enumerate(term.match_expressions or ()):
        at, values = f"matchExpressions[{position}]", one.values or ()
        if one.operator not in _ARITY or not _ARITY[one.operator](len(values)):
            return f"{at}.operator: Invalid value: {go_text.quoted(one.operator)}: not a valid selector operator"
        for number, value in enumerate(values):
            if one.operator in _COMPARING and node_selectors.parse_integer(value) is None:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                return f"{at}.values[{number}]: Invalid value: {go_text.quoted(value)}: {detail}"
            for detail in names.label_value(value):
                return f"{at}.values[{number}]: Invalid value: {go_text.quoted(value)}: {detail}"
    for position, one in enumerate(term.match_fields or ()):
        if one.operator not in (model.IN, model.NOT_IN) or len(one.values or ()) != 1:
            return f"matchFields[{position}].values: Invalid value: must have one element"
    return ""


_COMPARING = (node_selectors.GT, node_selectors.LT)
_ARITY = {
    model.IN: lambda n: n > 0,
    model.NOT_IN: lambda n: n > 0,
    "Exists": lambda n: n == 0,
    "DoesNotExist": lambda n: n == 0,
    node_selectors.GT: lambda n: n == 1,
    node_selectors.LT: lambda n: n == 1,
}


def _node_requirements(
    written: list[pods.NodeSelectorRequirement] | None,
) -> tuple[node_selectors.NodeRequirement, ...]:
    return tuple(node_selectors.NodeRequirement(r.key, r.operator, tuple(r.values or ())) for r in written or ())
