"""What an API server would refuse in the objects that people wrote: nothing is placed that could not be created."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.model.semantics import Semantics
from bayplan.reading.documents import Document
from bayplan.reading.inputs import Inputs
from bayplan.validating import admission, policy_schema
from bayplan.validating.causes import Cause


def faults(inputs: Inputs, semantics: Semantics) -> list[Fault]:
    """Everything wrong with the content of hand-written objects; dumps of a server were admitted already."""
    return [
        document.fault(cause.message, cause.field)
        for document in inputs.documents.values()
        for cause in _causes(_content(document))
        if not _allowed_by(semantics, cause)
    ]


def _causes(content: dict[str, Any]) -> list[Cause]:
    return [*admission.causes(content), *policy_schema.causes_of(content)]


def _allowed_by(semantics: Semantics, cause: Cause) -> bool:
    """The seed gives an empty topology key a meaning, which API servers refuse."""
    empty = cause.message.startswith(('Invalid value: "":', "Required value: can not be empty"))
    return semantics.empty_topology_key_means_any and empty and cause.field.endswith(".topologyKey")


def _content(document: Document) -> dict[str, Any]:
    """The object as plain values; of JSON without the lines, which take long to find and are rarely needed."""
    found: dict[str, Any] = msgspec.json.decode(document.text) if document.root is None else dict(document.root)
    return found
