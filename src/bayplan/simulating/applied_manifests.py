"""Manifests to apply: validated, decoded, and as they are written."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.reading import cluster, files
from bayplan.reading.documents import Source
from bayplan.reading.files import ReadOptions
from bayplan.simulating.store import key_of
from bayplan.simulating.timeline import AppliedObject
from bayplan.wire import kinds


def read(paths: list[str], written: list[Source], namespace: str, **options: Any) -> tuple[AppliedObject, ...]:
    """The objects of manifests, validated, in the order of their kinds in the registry; raises InputError."""
    inputs = files.load(ReadOptions(paths, written, namespace=namespace or "default", **options))
    rejected = cluster.admission_faults(inputs, ReadOptions().semantics)
    if rejected:
        raise InputError(rejected)
    found = []
    for row in kinds.decoded():
        for one in inputs.list_of(row):
            if one.kind != row.kind:
                continue
            document = inputs.documents.get(key_of(one))
            # A dump has no documents: what is decoded is all that is known of it.
            plain = msgspec.to_builtins(one) if document is None else document.plain()
            found.append(AppliedObject(one, plain))
    return tuple(found)
