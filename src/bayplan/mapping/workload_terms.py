"""
Bayplan's lists of workload affinity terms, mapped to terms over peers.

A term has one of two forms: `labelSelector` with `matchLabelKeys`, or `affinityEnabled` over the configured keys; if
both are given, both must hold. The keys of the scheduler's configuration restrict the labels that terms may select by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.mapping import selectors
from bayplan.model.clusters import CLUSTER, FIELD_KEYS
from bayplan.model.labels import EVERYTHING, IN, Labels, Selector, requirement
from bayplan.model.terms import NO_TERMS, TARGET, AffinityTerms, PodTerm
from bayplan.wire import placements as wire

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PREFIX = "topology.karmada.io/"
SIGNS = {"workloadAffinity": "--affinity-label-keys", "workloadAntiAffinity": "--anti-affinity-label-keys"}


class LabelKeys(msgspec.Struct, frozen=True):
    """The keys that affinity and anti-affinity terms may select by; None for every key."""

    affinity: tuple[str, ...] | None = None
    anti_affinity: tuple[str, ...] | None = None

    def of(self, sign: str) -> tuple[str, ...] | None:
        return self.affinity if sign == "workloadAffinity" else self.anti_affinity


def affinity_of(placement: Mapping[str, Any], labels: Labels, keys: LabelKeys) -> AffinityTerms:
    """The terms of a workload with these labels; raises InputError for an invalid term."""
    found: dict[str, tuple[PodTerm, ...]] = {}
    for sign, role in (("workloadAffinity", ""), ("workloadAntiAffinity", "anti_")):
        side = placement.get(sign) or {}
        found[f"{role}required"] = tuple(
            _term(written, path, 0, labels, keys.of(sign)) for path, written in _listed(side, sign, REQUIRED)
        )
        found[f"{role}preferred"] = tuple(
            _term(
                weighted.get("workloadAffinityTerm") or {},
                f"{path}.workloadAffinityTerm",
                weighted.get("weight") or 0,
                labels,
                keys.of(sign),
            )
            for path, weighted in _listed(side, sign, PREFERRED)
        )
    return AffinityTerms(**found) if any(found.values()) else NO_TERMS


def _listed(side: Mapping[str, Any], sign: str, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    written = side.get(name) or []
    if not isinstance(written, list) or not all(isinstance(entry, Mapping) for entry in written):
        raise InputError(f"placement.{sign}.{name}: expected a list of terms")
    return [(f"{sign}.{name}[{position}]", entry) for position, entry in enumerate(written)]


def _term(
    raw: Mapping[str, Any], path: str, weight: int, labels: Labels, configured: tuple[str, ...] | None
) -> PodTerm:
    term = _decoded(raw, path)
    selector = selectors.selector_of(term.label_selector)
    same = [*(term.match_label_keys or ()), *((configured or ()) if term.affinity_enabled else ())]
    _check_keys(path, term, selector, same, configured)
    return PodTerm(
        _with_same(selector, same, labels, enabled=term.affinity_enabled),
        topology(term.topology_key),
        None if term.namespaces is None else tuple(term.namespaces),
        selectors.selector_of(term.namespace_selector),
        weight=weight,
        path=path,
    )


def _decoded(raw: Mapping[str, Any], path: str) -> wire.WorkloadAffinityTerm:
    try:
        return msgspec.convert(raw, wire.WorkloadAffinityTerm)
    except msgspec.ValidationError as error:
        raise InputError(f"placement.{path}: {error}") from None


def _with_same(selector: Selector | None, same: Sequence[str], labels: Labels, *, enabled: bool) -> Selector | None:
    """The selector with the owner's own values; None, which matches nothing, if the owner lacks a key."""
    if selector is None and enabled:
        selector = EVERYTHING
    if selector is None or any(key not in labels for key in same):
        return None
    return selector.and_also(requirement(key, IN, (labels[key],)) for key in same)


def _check_keys(
    path: str,
    term: wire.WorkloadAffinityTerm,
    selector: Selector | None,
    same: Sequence[str],
    configured: tuple[str, ...] | None,
) -> None:
    flag = SIGNS[path.partition(".")[0]]
    if term.affinity_enabled and not configured:
        raise InputError(f"placement.{path}: affinityEnabled needs keys in {flag}")
    equal = {r.key for r in (selector.requirements if selector else ()) if r.operator == IN and len(r.values) == 1}
    if configured is not None and not {*equal, *same} & set(configured):
        raise InputError(f"placement.{path}: no key of the term is in {flag}")


def topology(key: str) -> str:
    """The column of a topology key; an empty key means the cluster."""
    short = (key or CLUSTER).removeprefix(PREFIX)
    if short == CLUSTER:
        return TARGET
    return FIELD_KEYS.get(short, key)
