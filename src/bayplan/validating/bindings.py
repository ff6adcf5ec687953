"""
ResourceBinding and ClusterResourceBinding.

Mirrors Karmada's pkg/webhook/resourcebinding/validating.go except quotas, which need a cluster. Karmada does not
validate the placement again, because it comes from a validated policy. Rejecting negative replicas is Bayplan's own
rule.
"""

from __future__ import annotations

import msgspec

from bayplan.validating import go_text, names, placement_annotation, type_checks
from bayplan.validating.fields import Cause, Field
from bayplan.wire import fleets
from bayplan.wire import meta as wire_meta
from bayplan.wire import placements as wire

DEPENDENCIES = "resourcebinding.karmada.io/dependencies"
WORKLOAD_LABELS = "bayplan.io/workload-labels"

NOT_JSON = "annotation value must be a valid JSON"
NOT_LABELS = "must be a JSON object of labels: text to text"
NO_NAME = "component names must be non-empty"
SAME_NAME = "component names must be unique"


def validate_resource_binding(binding: Field) -> list[Cause]:
    """The causes for rejecting a ResourceBinding."""
    if found := validate_cluster_resource_binding(binding):
        return found
    annotations = binding["metadata"]["annotations"]
    dependencies = annotations.entry(DEPENDENCIES).text()
    if DEPENDENCIES in annotations.names() and not _is_json(dependencies, list[wire.ResourceSelector | None] | None):
        found.append(Field(annotations[DEPENDENCIES].path, dependencies).invalid(NOT_JSON))
    seen: set[str] = set()
    for component in binding["spec"]["components"].items():
        name = component["name"]
        if not name.text():
            found.append(name.invalid(NO_NAME))
        elif name.text() in seen:
            found.append(name.invalid(SAME_NAME))
        seen.add(name.text())
    return found


def validate_cluster_resource_binding(binding: Field) -> list[Cause]:
    """The causes for rejecting a ClusterResourceBinding, whose content Karmada does not validate."""
    metadata, spec = binding["metadata"], binding["spec"]
    undecodable = [
        *type_checks.validate_types(metadata, wire_meta.ObjectMeta),
        *type_checks.validate_types(spec, fleets.BindingSpec),
        *type_checks.validate_types(spec["placement"], wire.WirePlacement),
    ]
    if undecodable:
        return undecodable
    found = names.validate_metadata(metadata, names.dns_subdomain)
    for counted in (spec, *spec["components"].items(), *spec["clusters"].items()):
        found += counted["replicas"].check_not_negative()
    labels = metadata["annotations"].entry(WORKLOAD_LABELS)
    if WORKLOAD_LABELS in metadata["annotations"].names() and not _is_json(labels.text(), dict[str, str]):
        found.append(labels.invalid(NOT_LABELS))
    return found + placement_annotation.validate_extensions(metadata, spec["placement"])


def _is_json(text: str, expected: object) -> bool:
    try:
        msgspec.json.decode(go_text.without_surrogates(text), type=expected)
    except msgspec.DecodeError:
        return False
    return True
