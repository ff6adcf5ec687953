"""
What would lift the rejection of a node by NodeAffinity: the rule loosened to the least that admits it, or a label.

A required expression that lists values gets the node's value too; any other one that the node fails is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.node_selectors import NAME_FIELD, NodeAffinity, NodeRequirement, NodeTerm
from bayplan.model.targets import Target
from bayplan.model.workloads import Workload
from bayplan.rules.remedies import (
    Alternatives,
    Edit,
    Manifest,
    Remedy,
    change_needs,
    child,
    label_target,
    on_workload,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def alternatives(
    affinity: NodeAffinity, slot: int, index: PlacementIndex, *, is_daemon: bool = False
) -> list[Alternatives]:
    """
    One list for each label of the node selector that the node lacks, and one for the required terms.

    The terms of a daemon are made by its DaemonSet: they name the node that it is for.
    """
    target = index.slots.at(slot)
    found = [
        [_without_selector(key, value), label_target(slot, key, value, index)]
        for key, value in affinity.selector
        if target.labels.get(key) != value
    ]
    terms = affinity.required
    if terms is not None and not any(term.matches(target.name, target.labels) for term in terms):
        found.append([] if is_daemon else _loosen_term(terms, slot, index))
    return found


def _without_selector(key: str, value: str) -> Remedy:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        affinity = workload.needs.node_affinity
        left = tuple(pair for pair in affinity.selector if pair[0] != key)
        return change_needs(node_affinity=msgspec.structs.replace(affinity, selector=left))(workload, index)

    def revise(pod: Manifest, _: Manifest) -> None:
        child(child(pod, "spec"), "nodeSelector").pop(key, None)

    return Remedy(f"drop nodeSelector {key}={value}", edit, revisions=on_workload(revise))


def _loosen_term(terms: tuple[NodeTerm, ...], slot: int, index: PlacementIndex) -> Alternatives:
    """The term that needs the fewest changes, loosened; then the labels that a node may be given; then no rule."""
    target = index.slots.at(slot)
    failed = {n: _failed(term, target) for n, term in enumerate(terms) if term.expressions or term.fields}
    found: Alternatives = []
    if failed:
        number = min(failed, key=lambda n: (len(failed[n]), n))
        found.append(_with_term(number, terms[number], failed[number], target))
        (only,) = failed[number] if len(failed[number]) == 1 else (None,)
        if only is not None and only.operator == "In" and only.key != NAME_FIELD and only.values:
            found.append(label_target(slot, only.key, only.values[0], index))
    found.append(Remedy("drop the required node affinity", _set_terms(None), revisions=on_workload(_revised(None))))
    return found


def _failed(term: NodeTerm, target: Target) -> list[NodeRequirement]:
    return [
        *(one for one in term.expressions if not one.matches(target.labels.get(one.key))),
        *(one for one in term.fields if one.key != NAME_FIELD or not one.matches(target.name)),
    ]


def _with_term(number: int, term: NodeTerm, failed: list[NodeRequirement], target: Target) -> Remedy:
    """The remedy in which the term admits the target; a term without anything left admits nothing and is dropped."""
    changes = {one: _loosened(one, target) for one in failed}
    expressions = tuple(new for one in term.expressions if (new := changes.get(one, one)) is not None)
    fields = tuple(new for one in term.fields if (new := changes.get(one, one)) is not None)
    loosened = NodeTerm(expressions, fields) if expressions or fields else None
    what = " and ".join(
        f"drop {one}" if new is None else f"allow {one.key}={new.values[-1]} too" for one, new in changes.items()
    )
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{number}]"

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        terms = list(workload.needs.node_affinity.required or ())
        if loosened is None:
            return _set_terms(None)(workload, index)
        terms[number] = loosened
        return _set_terms(tuple(terms))(workload, index)

    def revise(term: Manifest) -> None:
        for name in ("matchExpressions", "matchFields"):
            written = [_revised_requirement(one, changes) for one in term.get(name) or ()]
            term[name] = [one for one in written if one is not None]
            if not term[name]:
                del term[name]

    revised = _revised(None if loosened is None else lambda terms: revise(terms[number]))
    return Remedy(f"{what} in {path}", edit, revisions=on_workload(revised))


def _loosened(requirement: NodeRequirement, target: Target) -> NodeRequirement | None:
    value = target.name if requirement.key == NAME_FIELD else target.labels.get(requirement.key)
    # A field selector takes one value only.
    if requirement.operator == "In" and value is not None and requirement.key != NAME_FIELD:
        return msgspec.structs.replace(requirement, values=(*requirement.values, value))
    return None


def _revised_requirement(
    written: Manifest, changes: dict[NodeRequirement, NodeRequirement | None]
) -> dict[str, Any] | None:
    was = NodeRequirement(written.get("key") or "", written.get("operator") or "", tuple(written.get("values") or ()))
    if was not in changes:
        return written
    new = changes[was]
    return None if new is None else {**written, "values": list(new.values)}


def _set_terms(terms: tuple[NodeTerm, ...] | None) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        affinity = msgspec.structs.replace(workload.needs.node_affinity, required=terms)
        return change_needs(node_affinity=affinity)(workload, index)

    return edit


def _revised(change: Callable[[list[Manifest]], None] | None) -> Callable[[Manifest, Manifest], None]:
    """A change of the list of terms in the manifest of a pod; None drops it."""

    def revise(pod: Manifest, _: Manifest) -> None:
        affinity = child(child(pod, "spec"), "affinity")
        node_affinity = child(affinity, "nodeAffinity")
        if change is not None:
            change(child(node_affinity, _REQUIRED).get("nodeSelectorTerms") or [])
            return
        node_affinity.pop(_REQUIRED, None)
        if not node_affinity:
            del affinity["nodeAffinity"]

    return revise
