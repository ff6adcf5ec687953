"""
What fixes of bindings change in manifests: the placement of the policy, or the annotation that adds to it.

An edit raises LookupError where the policy does not have what it changes: that is in another object then, such as the
annotation of a template. Knows nothing of the index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from bayplan.model.labels import Toleration
from bayplan.rules.remedies import Manifest, Revision, child
from bayplan.validating import tiers, yaml_text
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION

REPLICAS_OF = ("Deployment", "ReplicaSet", "StatefulSet")  # kinds whose replicas are `spec.replicas`
PREFERRED_TIER = "preferred"  # the name of a clusterAffinity without one, when it gets a further tier
_TERM = re.compile(r"(\w+)\.(\w+)\[(\d+)\]")
Revisions = tuple[Revision, ...]
Edit = Callable[[Manifest, Manifest], None]  # of the placement, and of the content of the annotation


def without_term(path: str) -> Revisions:
    """Drop a workload affinity term; those of the annotation are counted after those of the placement."""

    def edit(placement: Manifest, own: Manifest) -> None:
        found = _TERM.fullmatch(path)
        if found is None:
            raise LookupError(path)
        field, when, position = found[1], found[2], int(found[3])
        for holder in (placement, own):
            terms = (holder.get(field) or {}).get(when) or []
            if position < len(terms):
                del terms[position]
                _drop_empty(holder, field, when)
                return
            position -= len(terms)
        raise LookupError(path)

    return _revisions(edit)


def without_group(name: str) -> Revisions:
    """Drop `affinity` or `antiAffinity` of Karmada's `workloadAffinity`."""

    def edit(placement: Manifest, _: Manifest) -> None:
        del placement["workloadAffinity"][name]
        if not placement["workloadAffinity"]:
            del placement["workloadAffinity"]

    return _revisions(edit)


def with_toleration(added: Toleration) -> Revisions:
    written = {"key": added.key, "operator": added.operator, "value": added.value, "effect": added.effect}

    def edit(placement: Manifest, _: Manifest) -> None:
        placement["clusterTolerations"] = [
            *(placement.get("clusterTolerations") or ()),
            {name: text for name, text in written.items() if text},
        ]

    return _revisions(edit)


def with_spread(position: int, field: str, number: int) -> Revisions:
    """Another `minGroups` or `maxGroups`."""

    def edit(placement: Manifest, _: Manifest) -> None:
        placement["spreadConstraints"][position][field] = number

    return _revisions(edit)


def with_cluster(group: int, name: str) -> Revisions:
    """A further name in the list of the first tier of a group."""

    def edit(placement: Manifest, own: Manifest) -> None:
        _, first = _group(placement, own, group)
        first["clusterNames"] = [*first["clusterNames"], name]

    return _revisions(edit)


def with_tier(group: int, name: str) -> Revisions:
    """A cluster as a further tier of a group, in the form that its tiers have, or else as Karmada's."""

    def edit(placement: Manifest, own: Manifest) -> None:
        tier, (holder, first) = {"affinityName": name, "clusterNames": [name]}, _group(placement, own, group)
        supplemented = _supplemented(own, first)
        inherited = (placement.get("affinityStrategy") or own.get("affinityStrategy") or {}).get("mode") == "Inherited"
        if supplemented is not None:
            supplemented.append({"clusterNames": [name]})
        elif "preferredClusterAffinities" in holder:
            holder["preferredClusterAffinities"].append(tier)
        elif inherited:
            placement[tiers.TERMS].append(tier)
        elif tiers.SINGLE in holder:
            del holder[tiers.SINGLE]
            holder[tiers.TERMS] = [{"affinityName": PREFERRED_TIER, **first, "overflowAffinities": [tier]}]
        else:
            first["overflowAffinities"] = [*(first.get("overflowAffinities") or ()), tier]

    return _revisions(edit)


def with_replicas(kind: str, number: int) -> Revisions | None:
    """Another number of replicas in the resource template; None for a kind of which it is not known where that is."""

    def revise(template: Manifest, _: Manifest) -> None:
        child(template, "spec")["replicas"] = number

    return (Revision(revise, of_template=True),) if kind in REPLICAS_OF else None


def _revisions(edit: Edit) -> Revisions:
    def revise(policy: Manifest, _: Manifest) -> None:
        placement = child(child(policy, "spec"), "placement")
        annotations: dict[str, Any] = (policy.get("metadata") or {}).get("annotations") or {}
        text = annotations.get(PLACEMENT_ANNOTATION)
        own: Any = yaml_text.parse(text) if text else {}
        before = deepcopy(own)
        edit(placement, own)
        if own != before:
            annotations[PLACEMENT_ANNOTATION] = json.dumps(own)
            if not own:
                del annotations[PLACEMENT_ANNOTATION]

    return (Revision(revise),)


def _group(placement: Manifest, own: Manifest, number: int) -> tuple[Manifest, Manifest]:
    """Where a group is written, and its first tier there."""
    for holder in (placement, own):
        if preferred := holder.get("preferredClusterAffinities"):
            return holder, preferred[0]
        if holder.get(tiers.SINGLE):
            return holder, holder[tiers.SINGLE]
        if terms := holder.get(tiers.TERMS):
            name = terms[number].get("affinityName")  # Karmada finds a term by its name: the first one
            return holder, next(one for one in terms if one.get("affinityName") == name)
    raise LookupError("the placement names no clusters")


def _supplemented(own: Manifest, first: Manifest) -> list[Any] | None:
    """The supplements of a term: its own, or those that the annotation has for it, in one of three places."""
    name, beside = first.get("affinityName"), own.get(tiers.SUPPLEMENTS)
    if beside:
        found: list[Any] | None = beside.get(name) if isinstance(beside, dict) else beside
        return found
    terms = [first, own.get(tiers.SINGLE), *(own.get(tiers.TERMS) or ())]
    of_term = [one for one in terms if one and one.get("affinityName") == name]
    return next((one[tiers.SUPPLEMENTS] for one in of_term if one.get(tiers.SUPPLEMENTS)), None)


def _drop_empty(holder: Manifest, field: str, when: str) -> None:
    if not holder[field][when]:
        del holder[field][when]
    if not holder[field]:
        del holder[field]
