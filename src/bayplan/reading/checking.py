"""
Misspelt fields and values of the wrong type in hand-written documents: all of them, each with its place.

Describes documents to `validating.structure` by tables of every field of Kubernetes 1.36 and 1.37 and Karmada 1.18,
which the scripts in `tools/` generate: most fields of a pod do not affect scheduling and are not part of `wire`. The
meaning of values and their combinations is checked elsewhere in `validating`.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from bayplan.errors import Fault
from bayplan.reading import json_documents
from bayplan.reading.documents import Document
from bayplan.validating import structure, structure_faults
from bayplan.validating.structure import Problem
from bayplan.wire import kinds
from bayplan.wire.pods import OWN_TERM_FIELDS

if TYPE_CHECKING:
    from bayplan.model.kubernetes_versions import KubernetesVersion

_TABLES = ("field_table.json", "karmada_field_table.json")
_TERM_LISTS = {
    "requiredDuringSchedulingRequiredDuringExecution": "[WorkloadTerm]",
    "requiredDuringSchedulingIgnoredDuringExecution": "[WorkloadTerm]",
    "preferredDuringSchedulingIgnoredDuringExecution": "[WeightedWorkloadTerm]",
}
# Fields of an earlier version that is still served; the generated table has one version of each kind.
_EARLIER_FIELDS = {
    "HorizontalPodAutoscalerSpec": {"targetCPUUtilizationPercentage": "int"},
    "HorizontalPodAutoscalerStatus": {"currentCPUUtilizationPercentage": "int"},
}
# Bayplan's own fields, which Kubernetes and Karmada do not have: see docs/differences.md.
_BAYPLAN_FIELDS = {
    "PodAffinityTerm": OWN_TERM_FIELDS,
    "PodAffinity": {"requiredDuringSchedulingRequiredDuringExecution": "[PodAffinityTerm]"},
    "PodAntiAffinity": {"requiredDuringSchedulingRequiredDuringExecution": "[PodAffinityTerm]"},
    "policy.Placement": {
        "workloadAntiAffinity": "WorkloadTerms",
        "affinityStrategy": "AffinityStrategy",
        "preferredClusterAffinities": "[policy.ClusterAffinityTerm]",
    },
    "policy.ClusterAffinity": {"supplements": "[policy.ClusterAffinity]"},
    "policy.ClusterAffinityTerm": {"supplements": "[policy.ClusterAffinity]"},
    "policy.WorkloadAffinity": _TERM_LISTS,
    "WorkloadTerms": _TERM_LISTS,
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
# Fields of hand-written objects that the tables have and Kubernetes 1.36 does not.
_ADDED_IN_1_37 = {
    "ClusterTrustBundleProjection": ("user",),
    "ConfigMapVolumeSource": ("defaultUser",),
    "DownwardAPIVolumeFile": ("user",),
    "DownwardAPIVolumeSource": ("defaultUser",),
    "EmptyDirVolumeSource": ("mode",),
    "GRPCAction": ("mode",),
    "HTTPGetAction": ("protocol",),
    "JobSpec": ("scheduling",),
    "KeyToPath": ("user",),
    "NodeSpec": ("podPreemptionPolicy",),
    "PodCertificateProjection": ("user",),
    "PodSpec": ("evictionResponders",),
    "ProjectedVolumeSource": ("defaultUser",),
    "SecretVolumeSource": ("defaultUser",),
    "ServiceAccountTokenProjection": ("user",),
    "VolumeMount": ("bindMountOptions",),
}
# Go's integers; an API server cannot decode anything beyond.
_INT32 = structure.Whole(-(2**31), 2**31 - 1, from_float=True)
_SIMPLE: Mapping[str, structure.Shape] = {
    "string": structure.Text(),
    "int": structure.Whole(-(2**63), 2**63 - 1, from_float=True),
    "int32": _INT32,
    "bool": structure.Truth(),
    "number": structure.Number(),
    "IntOrString": structure.Either((_INT32, structure.Text())),
    "Quantity": structure.Quantity(),
}

Table = Mapping[str, Mapping[str, str]]


def check(document: Document, *, types_only: bool = False) -> list[Fault]:
    """
    Everything wrong with the structure of a document.

    With `types_only`, unknown fields, duplicate keys and former versions are allowed, as for objects that an API server
    wrote.
    """
    row = kinds.handling_of(document.api_version, document.kind).row
    if row is not None and row.api_version != document.api_version and not types_only:
        from bayplan.model.kubernetes_versions import DEFAULT_VERSION  # few manifests have another version
        from bayplan.validating import served_versions

        missing = served_versions.no_match(document.api_version, document.kind, DEFAULT_VERSION)
        if missing:  # its fields may be others
            return [document.fault(missing, "apiVersion")]
    root = document.plain()
    faults = [
        document.fault(structure_faults.message(finding), finding.path)
        for finding in structure.walk(root, shapes().get(document.kind, structure.ANYTHING))
        if not (types_only and finding.problem is Problem.UNKNOWN_FIELD)
    ]
    if document.root is None and not types_only:
        faults.extend(json_documents.duplicate_keys(document))
    return faults


def later_fields(document: Document, version: KubernetesVersion) -> list[Fault]:
    """The fields that an API server of this version does not know, and one of a later version does."""
    from bayplan.model.kubernetes_versions import V1_37  # only `validate` needs it

    if version >= V1_37:
        return []
    root, kind = document.plain(), document.kind
    unknown = [
        {
            f.path
            for f in structure.walk(root, table.get(kind, structure.ANYTHING))
            if f.problem is Problem.UNKNOWN_FIELD
        }
        for table in (shapes(with_later_fields=False), shapes())
    ]
    message = f"{structure_faults.UNKNOWN_FIELD_PREFIX}: it is new in Kubernetes {V1_37}"
    return [document.fault(message, path) for path in sorted(unknown[0] - unknown[1])]


def has_right_types(root: object, kind: str) -> bool:
    """Whether every value of an object of this kind has the type of its field; unknown fields may have any."""
    found = structure.walk(root, shapes().get(kind, structure.ANYTHING))
    return all(finding.problem is Problem.UNKNOWN_FIELD for finding in found)


@functools.cache
def shapes(*, with_later_fields: bool = True) -> Mapping[str, structure.Shape]:
    """The shapes of all types in the tables, by name; a type that the tables lack is not checked."""
    table = field_table() if with_later_fields else _without_later_fields()
    records = {name: structure.Record({}, closed=True) for name in table}

    def shape(type_name: str) -> structure.Shape:
        if type_name.startswith("["):
            return structure.ListOf(shape(type_name[1:-1]))
        if type_name.startswith("{"):
            return structure.MapOf(shape(type_name[1:-1]))
        return _SIMPLE.get(type_name) or records.get(type_name) or structure.ANYTHING

    for name, record in records.items():
        record.fields.update((field, shape(type_name)) for field, type_name in table[name].items())
    return records


def _without_later_fields() -> Table:
    return {
        name: {field: kind for field, kind in fields.items() if field not in _ADDED_IN_1_37.get(name, ())}
        for name, fields in field_table().items()
    }


@functools.cache
def field_table() -> Table:
    """Fields and their types by type: `[T]` is a list, `{T}` a map from strings; unlisted types are not checked."""
    fields: dict[str, dict[str, str]] = {}
    for name in _TABLES:
        # importlib.resources would do the same, but is slow to import.
        table = pkgutil.get_data("bayplan.reading", name)
        assert table is not None, f"{name} is part of the package"
        fields |= msgspec.json.decode(table, type=dict[str, dict[str, str]])
    for type_name, further in (*_EARLIER_FIELDS.items(), *_BAYPLAN_FIELDS.items()):
        fields[type_name] = fields.get(type_name, {}) | further
    return fields
