"""
A binding's placement with the fields that Karmada lacks, typed or from the annotation `bayplan.io/placement`.

A field of `spec.placement` comes before the binding's annotation, and that before the template's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayplan.errors import InputError
from bayplan.validating import placement_annotation
from bayplan.wire.fleets import ResourceBinding

ANNOTATION = placement_annotation.PLACEMENT


def merged(written: ResourceBinding, template: Mapping[str, Any] | None) -> dict[str, Any]:
    """The placement with every field in its place; raises InputError where an annotation makes no sense."""
    placement: dict[str, Any] = dict(written.spec.placement or {})
    metadata = (template or {}).get("metadata") or {}
    for noted in (written.metadata.annotations or {}, metadata.get("annotations") or {}):
        if ANNOTATION in noted:
            placement = _with(placement, noted[ANNOTATION])
    return placement


def _with(placement: dict[str, Any], text: str) -> dict[str, Any]:
    try:
        return placement_annotation.merged(placement, placement_annotation.read(text))
    except ValueError as error:
        raise InputError(str(error)) from None
