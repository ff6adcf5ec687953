"""Everything that was read, sorted by kind. Knows nothing of files, and changes nothing in the objects."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import msgspec

from bayplan.controllers.desired_state import DesiredState
from bayplan.errors import Fault
from bayplan.model.semantics import Semantics
from bayplan.reading.documents import Document
from bayplan.validating import admission
from bayplan.validating.causes import Cause
from bayplan.wire.meta import ApiObject


class ObjectKey(NamedTuple):
    """What makes an object one: no two of the input have the same."""

    kind: str
    namespace: str
    name: str


class Inputs(DesiredState, kw_only=True):
    """
    The objects of all files.

    `documents` has the hand-written objects, for the line of each field. `misread` lists what is wrong with objects
    that only a fleet reads. `skipped` counts objects of kinds that no decision depends on. `hints` are notes for the
    user.
    """

    misread: list[Fault] = msgspec.field(default_factory=list)
    documents: dict[ObjectKey, Document] = msgspec.field(default_factory=dict)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    hints: list[str] = msgspec.field(default_factory=list)

    def fault(self, owner: ApiObject, message: str, path: str) -> Fault:
        """A fault of one object, with its file and line if the object is hand-written."""
        meta = owner.metadata
        document = self.documents.get(ObjectKey(owner.kind, meta.namespace, meta.name))
        return super().fault(owner, message, path) if document is None else document.fault(message, path)


# RF merged from reading.admitting: What an API server would refuse in the objects that people wrote: nothing is
# placed that could not be created.


def faults(inputs: Inputs, semantics: Semantics) -> list[Fault]:
    """Everything wrong with the content of hand-written objects; dumps of a server were admitted already."""
    return [
        document.fault(cause.message, cause.field)
        for document in inputs.documents.values()
        for cause in _causes(_content(document))
        if not _allowed_by(semantics, cause)
    ]


def _causes(content: dict[str, Any]) -> list[Cause]:
    return [*admission.causes_of(content), *admission.schema_causes(content)]


def _allowed_by(semantics: Semantics, cause: Cause) -> bool:
    """The seed gives an empty topology key a meaning, which API servers refuse."""
    empty = cause.message.startswith(('Invalid value: "":', "Required value: can not be empty"))
    return semantics.empty_topology_key_means_any and empty and cause.field.endswith(".topologyKey")


def _content(document: Document) -> dict[str, Any]:
    """The object as plain values; of JSON without the lines, which take long to find and are rarely needed."""
    found: dict[str, Any] = msgspec.json.decode(document.text) if document.root is None else dict(document.root)
    return found
