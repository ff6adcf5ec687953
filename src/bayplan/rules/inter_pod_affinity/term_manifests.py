"""
Pod affinity terms in the manifest of a pod, in its spec or its annotation: finds them by path, and loosens them.

A preferred term has the highest weight, so that it is given up only where it cannot be met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import msgspec

from bayplan.mapping import pods
from bayplan.model.terms import PodTerm
from bayplan.rules.remedies import Manifest, child, items
from bayplan.validating import yaml_text
from bayplan.validating.affinity import (
    AFFINITY_ANNOTATION,
    POD_AFFINITY,
    POD_ANTI_AFFINITY,
    PREFERRED,
    REQUIRED,
    REQUIRED_DURING_EXECUTION,
    AnnotatedAffinity,
)
from bayplan.wire.pods import Affinity

MAX_WEIGHT = 100
_HARD_ONLY = ("limit", "tolerateNamespaces")  # fields that no preferred term has
_PATH = re.compile(r"(?P<source>.*)\.(?P<side>podAffinity|podAntiAffinity)\.(?P<list>\w+)\[(?P<number>\d+)\]")
_SPEC = "spec.affinity"


def make_preferred(pod: Manifest, original: Manifest, paths: Iterable[str]) -> None:
    """Make required terms preferred ones, in the same place."""
    for path in paths:
        found = _PATH.fullmatch(path)
        assert found is not None, path
        term = _read(original, found["source"])[found["side"]][found["list"]][int(found["number"])]
        affinity = _read(pod, found["source"])
        side = child(affinity, found["side"])
        if term not in items(side, found["list"]):  # another remedy has changed it
            continue
        side[found["list"]].remove(term)
        if not side[found["list"]]:
            del side[found["list"]]
        preferred = {name: value for name, value in deepcopy(term).items() if name not in _HARD_ONLY}
        items(side, PREFERRED).append({"weight": MAX_WEIGHT, "podAffinityTerm": preferred})
        _write(pod, found["source"], affinity)


def set_limit(pod: Manifest, original: Manifest, path: str, limit: int) -> None:
    """Give a term another limit."""
    found = _PATH.fullmatch(path)
    assert found is not None, path
    term = _read(original, found["source"])[found["side"]][found["list"]][int(found["number"])]
    affinity = _read(pod, found["source"])
    terms = affinity[found["side"]][found["list"]]
    terms[terms.index(term)] = {**term, "limit": limit}
    _write(pod, found["source"], affinity)


def paths_of(pod: Manifest, is_meant: Callable[[PodTerm], bool]) -> list[str]:
    """The paths of the required anti-affinity terms of a pod, or of a template, that are meant."""
    metadata = pod.get("metadata") or {}
    is_stored = bool(metadata.get("uid") or metadata.get("resourceVersion"))
    spec = msgspec.convert(_read(pod, _SPEC), Affinity)
    annotated = msgspec.convert(_read(pod, _annotation_path()), AnnotatedAffinity)
    found = pods.affinity_terms(spec, annotated, metadata.get("labels") or {}, is_stored=is_stored)
    return [term.path for term in found.anti_required if is_meant(term)]


def _annotation_path() -> str:
    return f"metadata.annotations[{AFFINITY_ANNOTATION}]"


def _read(pod: Manifest, source: str) -> Any:
    """The affinity in the spec, or that in the annotation."""
    if source == _SPEC:
        return (pod.get("spec") or {}).get("affinity") or {}
    text = ((pod.get("metadata") or {}).get("annotations") or {}).get(AFFINITY_ANNOTATION)
    return yaml_text.parse(text) if text else {}


def _write(pod: Manifest, source: str, affinity: Manifest) -> None:
    for side in (POD_AFFINITY, POD_ANTI_AFFINITY):
        if side in affinity and not any(affinity[side].get(one) for one in _LISTS):
            del affinity[side]
    if source != _SPEC:
        text = msgspec.json.encode(affinity).decode()
        child(child(pod, "metadata"), "annotations")[AFFINITY_ANNOTATION] = text


_LISTS = (REQUIRED, REQUIRED_DURING_EXECUTION, PREFERRED)
