"""
What a person got wrong in a file: misspelt fields and values of the wrong type, all of them, each with its place.

Compares the document with the tables of every field that Kubernetes 1.36 and 1.37 and Karmada 1.18 know (made by the
scripts in `tools/`), because most fields of a pod have no part in placing it and so no place in `wire`.
What values mean, and which go together, is `validating`'s.
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.model import quantities
from bayplan.reading import json_documents
from bayplan.reading.documents import Document

_TABLES = ("field_table.json", "karmada_field_table.json")
_TERMS = {
    "requiredDuringSchedulingIgnoredDuringExecution": "[WorkloadTerm]",
    "preferredDuringSchedulingIgnoredDuringExecution": "[WeightedWorkloadTerm]",
}
# Fields of the seeds that Kubernetes and Karmada never had: see docs/differences.md.
_OURS = {
    "PodAffinityTerm": {"limit": "int", "tolerateNamespaces": "[string]"},
    "PodAffinity": {"requiredDuringSchedulingRequiredDuringExecution": "[PodAffinityTerm]"},
    "PodAntiAffinity": {"requiredDuringSchedulingRequiredDuringExecution": "[PodAffinityTerm]"},
    "policy.Placement": {
        "workloadAntiAffinity": "WorkloadTerms",
        "affinityStrategy": "AffinityStrategy",
        "preferredClusterAffinities": "[policy.ClusterAffinityTerm]",
    },
    "policy.ClusterAffinity": {"supplements": "[policy.ClusterAffinity]"},
    "policy.ClusterAffinityTerm": {"supplements": "[policy.ClusterAffinity]"},
    "policy.WorkloadAffinity": _TERMS,
    "WorkloadTerms": _TERMS,
    "WeightedWorkloadTerm": {"weight": "int", "workloadAffinityTerm": "WorkloadTerm"},
    "WorkloadTerm": {
        "labelSelector": "LabelSelector",
        "matchLabelKeys": "[string]",
        "affinityEnabled": "bool",
        "topologyKey": "string",
        "namespaces": "[string]",
        "namespaceSelector": "LabelSelector",
    },
    "AffinityStrategy": {"mode": "string"},
}
_EXPECTED = {
    "string": "a string",
    "int": "a whole number",
    "int32": "a whole number",
    "bool": "true or false",
    "number": "a number",
    "IntOrString": "a whole number or a string",
    "Quantity": "a quantity such as 500m or 1.5Gi",
}
# How far whole numbers go in Go; a server cannot even read what lies beyond.
_RANGES = {"int": range(-(2**63), 2**63), "int32": range(-(2**31), 2**31), "IntOrString": range(-(2**31), 2**31)}
_LONGEST_SHOWN = 40
UNKNOWN = "unknown field"  # how messages about misspelt names begin

Table = Mapping[str, Mapping[str, str]]


class FieldFinding(msgspec.Struct, frozen=True):
    """One thing wrong at one place within an object."""

    path: str
    message: str
    unknown_field: bool = False


def check(document: Document) -> list[Fault]:
    """Everything wrong with the structure of a document that a person wrote."""
    faults = [document.fault(finding.message, finding.path) for finding in _findings(document)]
    if document.root is None:
        faults.extend(json_documents.duplicate_keys(document))
    return faults


def wrong_types(document: Document) -> list[Fault]:
    """What is of the wrong type; unknown fields pass, for a server wrote them."""
    found = (finding for finding in _findings(document) if not finding.unknown_field)
    return [document.fault(finding.message, finding.path) for finding in found]


def _findings(document: Document) -> Iterator[FieldFinding]:
    root = document.root if document.root is not None else json_documents.root_of(document)
    yield from walk(root, document.kind)


def walk(value: Any, type_name: str, path: str = "") -> Iterator[FieldFinding]:
    """What in the value does not fit the type, in the order it is written. Null fits everything: it means absent."""
    if value is None:
        return
    if type_name.startswith("["):
        yield from _walk_list(value, type_name[1:-1], path)
    elif type_name.startswith("{"):
        yield from _walk_map(value, type_name[1:-1], path)
    elif type_name in _EXPECTED:
        if not _fits(value, type_name):
            yield FieldFinding(
                path, f"expected {_expected(value, type_name)}, got {_shown(value)}{_advice(value, type_name)}"
            )
    elif type_name in table():
        yield from _walk_object(value, table()[type_name], path)


def _walk_list(value: Any, inner: str, path: str) -> Iterator[FieldFinding]:
    if not isinstance(value, list):
        yield FieldFinding(path, f"expected a list, got {_shown(value)}")
        return
    for place, item in enumerate(value):
        yield from walk(item, inner, f"{path}[{place}]")


def _walk_map(value: Any, inner: str, path: str) -> Iterator[FieldFinding]:
    if not isinstance(value, dict):
        yield FieldFinding(path, f"expected a mapping, got {_shown(value)}")
        return
    for key, item in value.items():
        yield from walk(item, inner, f"{path}[{key}]")


def _walk_object(value: Any, fields: Mapping[str, str], path: str) -> Iterator[FieldFinding]:
    if not isinstance(value, dict):
        yield FieldFinding(path, f"expected a mapping, got {_shown(value)}")
        return
    for key, item in value.items():
        inner = f"{path}.{key}" if path else key
        if key in fields:
            yield from walk(item, fields[key], inner)
        else:
            yield FieldFinding(inner, f"{UNKNOWN}{_nearest(key, fields)}", unknown_field=True)


def _fits(value: Any, type_name: str) -> bool:
    match type_name:
        case "string":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "Quantity":
            return _is_quantity(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    text = type_name == "IntOrString" and isinstance(value, str)
    return text or (_is_whole(value) and int(value) in _RANGES[type_name])


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _expected(value: Any, type_name: str) -> str:
    """What the field takes; of a whole number that is too large, how large it may be."""
    if type_name in _RANGES and _is_whole(value):
        allowed = _RANGES[type_name]
        return f"a whole number from {allowed.start} to {allowed.stop - 1}"
    return _EXPECTED[type_name]


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        quantities.parse(value)
    except ValueError:
        return False
    return True


def _nearest(key: str, fields: Mapping[str, str]) -> str:
    by_folded = {name.casefold(): name for name in fields}
    near = difflib.get_close_matches(key.casefold(), by_folded, n=1, cutoff=0.75)
    return f", did you mean {by_folded[near[0]]}?" if near else ""


def _shown(value: Any) -> str:
    """The value as people would say it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        short = value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}…"
        return f"the string {json.dumps(short, ensure_ascii=False)}"
    return "a list" if isinstance(value, list) else "a mapping"


def _advice(value: Any, type_name: str) -> str:
    """The usual slip: YAML reads unquoted numbers, yes and on as something else than text."""
    return " (put it in quotes)" if type_name == "string" and not isinstance(value, dict | list | str) else ""


@functools.cache
def table() -> Table:
    """Fields and their types by type: `[T]` is a list, `{T}` a map from strings; a type that is not listed is free."""
    folder = importlib.resources.files(__package__ or "bayplan.reading")
    fields: dict[str, dict[str, str]] = {}
    for name in _TABLES:
        fields |= msgspec.json.decode(folder.joinpath(name).read_bytes(), type=dict[str, dict[str, str]])
    for type_name, further in _OURS.items():
        fields[type_name] = fields.get(type_name, {}) | further
    return fields
