"""
The annotation `bayplan.io/affinity`: the seed's affinity, as YAML or JSON text, for API servers without its fields.

A malformed annotation is a cause with its path; it is never passed over.
"""

from __future__ import annotations

import msgspec

from bayplan.validating import causes, pod_affinity, shapes, yaml_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import meta as wire_meta
from bayplan.wire import pods as wire_pods

AFFINITY = "bayplan.io/affinity"
# Room for a hundred terms. Whoever may create a pod can have this text read, and all else waits meanwhile.
LONGEST = 8192


class AnnotatedAffinity(wire_meta.WireObject):
    """What the annotation may hold: node affinity has its field in every API server and is not repeated here."""

    pod_affinity: wire_pods.PodAffinity | None = None
    pod_anti_affinity: wire_pods.PodAffinity | None = None


def causes_of(metadata: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    """What is wrong with the annotation below this metadata; nothing if there is none."""
    annotations = metadata["annotations"]
    if AFFINITY not in annotations.names():
        return []
    written = annotations.entry(AFFINITY)
    if len(written.text()) > LONGEST:
        return [causes.malformed(written.path, f"longer than {LONGEST} characters")]
    try:
        field = Field(written.path, yaml_text.parse(written.text()))
    except ValueError as broken:
        return [causes.malformed(written.path, str(broken))]
    found = _shape(field)
    if any(cause.reason == causes.TYPE_INVALID for cause in found):
        return found
    return found + pod_affinity.causes_of(field, pod_affinity.Rules(pod_labels, empty_topology_key=True))


def read(text: str) -> AnnotatedAffinity:
    """The annotation's content; raises ValueError if it is not of the annotation's form."""
    try:
        return msgspec.convert(_without_nulls(yaml_text.parse(text)), AnnotatedAffinity)
    except msgspec.ValidationError as misshapen:
        raise ValueError(str(misshapen)) from misshapen


def _shape(field: Field) -> list[Cause]:
    if not field.present:
        return [shapes.wrong_type(field, "a mapping with podAffinity or podAntiAffinity")]
    return shapes.causes_of(field, AnnotatedAffinity, closed=True)


def _without_nulls(value: object) -> object:
    """The value with null fields left out, which mean the same and which the wire Structs do not take."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
