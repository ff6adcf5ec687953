"""
A ResourceBinding or ClusterResourceBinding: which rule looks at which field.

Mirrors Karmada's pkg/webhook/resourcebinding/validating.go, quotas excepted: they need a cluster to ask. Karmada does
not look at the placement again, because a policy brought it. That replicas are counted from 0 on is ours.
"""

from __future__ import annotations

import msgspec

from bayplan.validating import causes, fields, go_text, metadata, names, placement_annotation, shapes
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import fleets
from bayplan.wire import meta as wire_meta
from bayplan.wire import placements as wire

DEPENDENCIES = "resourcebinding.karmada.io/dependencies"
WORKLOAD_LABELS = "bayplan.io/workload-labels"

NOT_JSON = "annotation value must be a valid JSON"
NOT_LABELS = "must be a JSON object of labels: text to text"
NO_NAME = "component names must be non-empty"
SAME_NAME = "component names must be unique"
NEGATIVE = "must be greater than or equal to 0"


def namespaced(field: Field) -> list[Cause]:
    """What is wrong with a ResourceBinding."""
    return _binding(field) or [*_dependencies(field.under("metadata", "annotations")), *_components(field["spec"])]


def cluster_wide(field: Field) -> list[Cause]:
    """What is wrong with a ClusterResourceBinding, at whose content Karmada does not look."""
    return _binding(field)


def _binding(field: Field) -> list[Cause]:
    spec = field["spec"]
    misshapen = [
        *shapes.causes_of(field["metadata"], wire_meta.ObjectMeta),
        *shapes.causes_of(spec, fleets.BindingSpec),
        *shapes.causes_of(spec["placement"], wire.WirePlacement),
    ]
    return misshapen or [
        *metadata.causes_of(field["metadata"], names.dns_subdomain),
        *_replicas(spec),
        *_labels(field.under("metadata", "annotations")),
        *placement_annotation.causes_of(field["metadata"], spec["placement"]),
    ]


def _dependencies(annotations: Field) -> list[Cause]:
    if DEPENDENCIES not in annotations.names():
        return []
    text = annotations.entry(DEPENDENCIES).text()
    if _is_json(text, list[wire.ResourceSelector | None] | None):
        return []
    return [causes.invalid(fields.child(annotations.path, DEPENDENCIES), go_text.quoted(text), NOT_JSON)]


def _labels(annotations: Field) -> list[Cause]:
    if WORKLOAD_LABELS not in annotations.names():
        return []
    field = annotations.entry(WORKLOAD_LABELS)
    if _is_json(field.text(), dict[str, str]):
        return []
    return [causes.invalid(field.path, go_text.quoted(field.text()), NOT_LABELS)]


def _is_json(text: str, expected: object) -> bool:
    try:
        msgspec.json.decode(go_text.whole(text), type=expected)
    except msgspec.DecodeError:
        return False
    return True


def _components(spec: Field) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for component in spec["components"].items():
        name = component["name"]
        if not name.text():
            found.append(causes.invalid(name.path, '""', NO_NAME))
        elif name.text() in seen:
            found.append(causes.invalid(name.path, go_text.quoted(name.text()), SAME_NAME))
        seen.add(name.text())
    return found


def _replicas(spec: Field) -> list[Cause]:
    counted = [spec, *spec["components"].items(), *spec["clusters"].items()]
    return [
        causes.invalid(field.path, str(field.number()), NEGATIVE)
        for field in (item["replicas"] for item in counted)
        if field.number() < 0
    ]
