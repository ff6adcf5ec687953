"""
A Karmada placement, mapped to groups of clusters with their tiers, spread constraints and division.

Bayplan's own fields may also come from the annotation `bayplan.io/placement`. Does not know the clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.caching import memoised
from bayplan.errors import InputError
from bayplan.mapping import selectors
from bayplan.model import placements as model
from bayplan.model.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Selector, Toleration
from bayplan.model.node_selectors import NodeRequirement
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.targets import ZONE
from bayplan.validating import names, placement_annotation
from bayplan.wire.meta import LabelSelector

KNOWN_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)


def merged_placement(written: Mapping[str, Any], annotations: Iterable[str | None]) -> dict[str, Any]:
    """
    A binding's placement with Bayplan's own fields; raises InputError for an invalid annotation.

    A field of the placement takes precedence over the first annotation, which is the binding's, and that over the
    second, which is the template's.
    """
    placement: dict[str, Any] = dict(written)
    for text in annotations:
        if text is None:
            continue
        read = _remembered_content if len(text) <= placement_annotation.MAX_LENGTH else _read_content
        content, error = read(text)
        if content is None:
            raise InputError(error)
        try:
            placement = placement_annotation.merge(placement, content)
        except ValueError as contradiction:
            raise InputError(str(contradiction)) from None
    return placement


def _read_content(text: str) -> tuple[dict[str, object] | None, str]:
    """The content of an annotation, which stays as it is, or what is wrong with it."""
    try:
        return placement_annotation.read_annotation(text), ""
    except ValueError as error:
        return None, str(error)


# All bindings of a policy have its text, and are read with it again and again: also one that is malformed.
_remembered_content = memoised(512)(_read_content)


def placement_of(written: Mapping[str, Any], semantics: Semantics = UPSTREAM) -> model.Placement:
    """The placement; raises InputError if its tiers contradict each other."""
    _check_forms(written)
    return model.Placement(
        _groups(written, semantics),
        tuple(
            Toleration(t.get("key") or "", t.get("operator") or "", t.get("value") or "", t.get("effect") or "")
            for t in written.get("clusterTolerations") or ()
        ),
        tuple(_spread(constraint) for constraint in written.get("spreadConstraints") or ()),
        _division(written.get("replicaScheduling")),
    )


def cluster_affinity(written: Mapping[str, Any]) -> model.ClusterAffinity:
    """The conditions of one group or tier; an invalid selector makes them impossible."""
    labels = _labels(written.get("labelSelector"))
    fields = tuple(
        NodeRequirement(e.get("key") or "", e.get("operator") or "", tuple(e.get("values") or ()))
        for e in (written.get("fieldSelector") or {}).get("matchExpressions") or ()
    )
    return model.ClusterAffinity(
        labels,
        fields,
        tuple(written.get("clusterNames") or ()),
        tuple(written.get("exclude") or ()),
        impossible=(labels is None and written.get("labelSelector") is not None) or not all(map(_is_valid, fields)),
    )


def _is_valid(field: NodeRequirement) -> bool:
    """Whether a requirement on a field is valid; Karmada crashes on some that are not."""
    if field.key != ZONE and names.label_key(field.key):
        return False
    if field.operator in (EXISTS, DOES_NOT_EXIST):
        return not field.values or field.key == ZONE
    if field.operator in (IN, NOT_IN):
        return field.key == ZONE or (bool(field.values) and not any(map(names.label_value, field.values)))
    return field.operator in ("Gt", "Lt") and field.key != ZONE and len(field.values) == 1


def _labels(written: Mapping[str, Any] | None) -> Selector | None:
    """The label selector; None if there is none or it is invalid."""
    if written is None:
        return None
    selector = selectors.selector_of(msgspec.convert(written, LabelSelector))
    assert selector is not None
    return selector if is_valid_selector(selector) else None


def is_valid_selector(selector: Selector) -> bool:
    """Whether apimachinery can parse it: nothing checks the selectors of a policy when it is admitted."""
    for requirement in selector.requirements:
        listed = requirement.operator in (IN, NOT_IN)
        if requirement.operator not in KNOWN_OPERATORS or listed != bool(requirement.values):
            return False
        if names.label_key(requirement.key) or any(map(names.label_value, requirement.values)):
            return False
    return True


def _groups(written: Mapping[str, Any], semantics: Semantics) -> tuple[model.AffinityGroup, ...]:
    """The groups with ordered tiers, from any of the five forms; an inherited group has the name of its first term."""
    single, terms = written.get("clusterAffinity"), written.get("clusterAffinities")
    inherited = written.get("preferredClusterAffinities") or (terms if _inherits(written) else None)
    if inherited:
        return (_design_group(inherited[0].get("affinityName") or "", inherited),)
    if terms is None:
        supplements = (single or {}).get("supplements") or ()
        if single is not None and supplements:
            return (_design_group("", [single, *supplements]),)
        return (model.AffinityGroup("", (cluster_affinity(single) if single is not None else model.ANY_CLUSTER,)),)
    names = [term.get("affinityName") or "" for term in terms]
    if single is not None:  # takes precedence if both are given
        tier = cluster_affinity(single)
        return tuple(model.AffinityGroup(name, (tier,)) for name in names)
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for name, term in zip(names, terms, strict=True):
        by_name.setdefault(name, []).append(term)
    groups = {name: _group(name, same, semantics) for name, same in by_name.items()}
    return tuple(groups[name] for name in names)


def _group(name: str, same: Sequence[Mapping[str, Any]], semantics: Semantics) -> model.AffinityGroup:
    """The group of the terms of one name. Karmada finds terms by name, so the first is used for all of them."""
    if same[0].get("supplements"):
        return _design_group(name, [same[0], *same[0]["supplements"]])
    tiers = [same[0], *(same[0].get("overflowAffinities") or ())]
    # An empty list also counts: one tier, filled by capacity.
    overflows = name != "" and any(term.get("overflowAffinities") is not None for term in same)
    return model.AffinityGroup(
        name,
        tuple(cluster_affinity(tier) for tier in tiers),
        model.OVERFLOW if overflows else model.PLAIN,
        first_only=not semantics.first_tier_alone,
    )


def _design_group(name: str, tiers: Sequence[Mapping[str, Any]]) -> model.AffinityGroup:
    """A group with tiers in one of the four forms of the design document."""
    return model.AffinityGroup(name, tuple(cluster_affinity(tier) for tier in tiers), model.DESIGN)


def _inherits(written: Mapping[str, Any]) -> bool:
    return (written.get("affinityStrategy") or {}).get("mode") == "Inherited"


def _check_forms(written: Mapping[str, Any]) -> None:
    """Raise InputError unless the placement has at most one form of tiers, and none nested."""
    single, terms = written.get("clusterAffinity") or {}, written.get("clusterAffinities") or []
    preferred = written.get("preferredClusterAffinities") or []
    forms = {
        "supplements of clusterAffinity": bool(single.get("supplements")),
        "supplements of clusterAffinities": any(term.get("supplements") for term in terms),
        "overflowAffinities": any(term.get("overflowAffinities") for term in terms),
        "affinityStrategy": _inherits(written),
        "preferredClusterAffinities": bool(preferred),
    }
    used = [form for form, is_used in forms.items() if is_used]
    if len(used) > 1:
        raise InputError(f"placement: more than one form of tiers: {', '.join(used)}")
    mode = (written.get("affinityStrategy") or {}).get("mode") or "Exclusive"
    if mode not in ("Exclusive", "Inherited"):
        raise InputError(f"placement.affinityStrategy.mode: expected Exclusive or Inherited, got {mode}")
    if _inherits(written) and (not terms or single):
        raise InputError("placement.affinityStrategy: Inherited needs clusterAffinities and no clusterAffinity")
    if preferred and (terms or single):
        raise InputError(
            "placement.preferredClusterAffinities: cannot co-exist with clusterAffinity or clusterAffinities"
        )
    supplements = [tier for term in (single, *terms) for tier in term.get("supplements") or ()]
    if any(tier.get("supplements") for tier in (*supplements, *preferred)):
        raise InputError("placement: supplements cannot be nested")


def _spread(written: Mapping[str, Any]) -> model.SpreadField:
    return model.SpreadField(
        written.get("spreadByField") or "",
        written.get("spreadByLabel") or "",
        written.get("minGroups") or 0,
        written.get("maxGroups") or 0,
    )


def _division(written: Mapping[str, Any] | None) -> model.Division:
    if written is None:
        return model.Division()
    kind, preference = written.get("replicaSchedulingType") or "", written.get("replicaDivisionPreference") or ""
    weights = written.get("weightPreference")
    strategy = _strategy(kind, preference, weights or {})
    listed = (weights or {}).get("staticWeightList") or ()
    return model.Division(
        strategy,
        kind,
        preference,
        tuple((cluster_affinity(rule.get("targetCluster") or {}), rule.get("weight") or 0) for rule in listed),
        honors_spread=strategy != model.STATIC_WEIGHT or (weights is not None and not listed),
        counts_capacity=kind != model.DUPLICATED,
    )


def _strategy(kind: str, preference: str, weights: Mapping[str, Any]) -> str:
    if kind == model.DUPLICATED:
        return model.DUPLICATED
    if kind != "Divided":
        return ""
    if preference == "Aggregated":
        return model.AGGREGATED
    if preference == "Weighted":
        return model.DYNAMIC_WEIGHT if weights.get("dynamicWeight") else model.STATIC_WEIGHT
    return ""
