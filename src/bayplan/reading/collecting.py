"""
Puts documents in their place: refuses what is wrong, settles namespaces, finds doubles, hands objects on.

Knows nothing of files beyond their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bayplan import errors
from bayplan.controllers import generated_names
from bayplan.errors import Fault
from bayplan.reading import checking, decoding, json_documents
from bayplan.reading.documents import Document
from bayplan.reading.inputs import Inputs, ObjectKey
from bayplan.wire import kinds, meta

Sink = Callable[[Any], None]
_READ_OF_TEMPLATES = ("bayplan.io/", "propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/")


class Collector:
    """
    Objects go into `inputs` or to the sink for their kind; what is wrong gathers in `faults`.

    A sink for a kind that nobody else reads gets the document.
    """

    def __init__(self, *, namespace: str, strict: bool, sinks: Mapping[str, Sink]) -> None:
        self.inputs = Inputs()
        self.faults: list[Fault] = []
        self._namespace, self._strict, self._sinks = namespace, strict, sinks
        self._files: list[str] = []
        self._places: dict[str, int] = {}
        self._live = False

    def begin_live(self) -> None:
        """What follows is a cluster's: nobody typed it, and where a file had the same object, the file's counts."""
        self._live = True

    def add(self, item: Document | Fault) -> None:
        """Take in what a reader found."""
        if isinstance(item, Fault):
            self.faults.append(item)
            return
        if item.typed is not None:
            self._take_typed(item)
            return
        reading = kinds.handling_of(item.api_version, item.kind)
        if reading.problem:
            self.faults.append(item.fault(reading.problem, reading.path))
        elif reading.wire_type is None:
            self._skip(item)
            if reading.template and item.name:
                self._keep_template(item)
            if item.kind in self._sinks:
                self._pour(self._sinks[item.kind], item, item)
        else:
            self._settle_namespace(item, template=False)
            self._take(item, reading.wire_type)

    def _skip(self, document: Document) -> None:
        if document.kind not in self._sinks:
            self.inputs.skipped[document.kind] += 1
        # A CronJob makes no pods yet, but a misspelt field in it is worth knowing all the same.
        if document.kind == "CronJob" and self._is_handwritten(document):
            self.faults.extend(checking.check(document))

    def _keep_template(self, document: Document) -> None:
        """Keep what a fleet would want to know; only there do its faults count."""
        self._settle_namespace(document, template=True)
        try:
            found = decoding.decode(document, meta.ApiObject)
        except json_documents.UNDECODABLE as error:
            found = [document.fault(json_documents.invalid(error))]
        if isinstance(found, list):
            self.inputs.misread.extend(found)
        else:
            annotations = found.metadata.annotations or {}
            # They may be long, and most say nothing to us.
            kept = {key: text for key, text in annotations.items() if key.startswith(_READ_OF_TEMPLATES)}
            found.metadata.annotations = kept or None
            found.api_version, found.kind = document.api_version, document.kind
            found.metadata.name, found.metadata.namespace = document.name, document.namespace
            self.inputs.templates.append(found)

    def _settle_namespace(self, document: Document, *, template: bool) -> None:
        if kinds.is_cluster_wide(document.kind, template=template):
            document.namespace = ""
        elif not (template and document.server_made):  # what a server knows without a namespace has none
            document.namespace = document.namespace or self._namespace

    def _is_handwritten(self, document: Document) -> bool:
        return self._strict and not document.server_made and not self._live

    def _take(self, document: Document, wire_type: kinds.WireType) -> None:
        found = self._checked(document, wire_type)
        if isinstance(found, list):
            self.faults.extend(found)
        elif self._name(document, found) and self._is_first(document):
            self._hand_on(document, found)

    def _take_typed(self, document: Document) -> None:
        """A pod that a server made and that is read already: nobody typed it, so nothing is to be checked."""
        found = document.typed
        assert found is not None
        document.namespace = found.metadata.namespace = document.namespace or self._namespace
        if self._is_first(document):
            self._hand_on(document, found)

    def _checked(self, document: Document, wire_type: kinds.WireType) -> Any:
        """The typed object, or a list of what is wrong with it."""
        try:
            wrong = checking.check(document) if self._is_handwritten(document) else []
            return wrong or decoding.decode(document, wire_type)
        except json_documents.UNDECODABLE as error:
            return [document.fault(json_documents.invalid(error))]

    def _name(self, document: Document, found: Any) -> bool:
        """Give the object the name and namespace that it will have in the cluster; false if it has no name."""
        if not document.name:
            self.faults.append(document.fault("expected a name", "metadata.name"))
            return False
        metadata = found.metadata
        if not metadata.name:
            taken = self.inputs.inventory.names
            metadata.name = document.name = next(generated_names.unique(document.name, taken, document.namespace))
        metadata.namespace = document.namespace
        # The items of a typed list do not say what they are.
        found.api_version, found.kind = document.api_version, document.kind
        return True

    def _is_first(self, document: Document) -> bool:
        key = f"{document.kind}/{document.namespace}/{document.name}"
        if not self._files or self._files[-1] != document.file:
            self._files.append(document.file)
        first = self._places.get(key)
        if first is None:
            line = document.begins if isinstance(document.begins, int) else 0  # not worth counting yet
            self._places[key] = (len(self._files) - 1) << 32 | line
            return True
        if self._live:
            return False
        file, line = self._files[first >> 32], first & 0xFFFFFFFF
        where = f"{file}:{line}" if line else file
        self.faults.append(document.fault(f"the same object is given twice, first in {where}"))
        return False

    def _hand_on(self, document: Document, found: Any) -> None:
        if self._is_handwritten(document):
            self.inputs.documents[ObjectKey(document.kind, document.namespace, document.name)] = document
        if document.kind == "Pod":
            self.inputs.inventory.add(found)
        sink = self._sinks.get(document.kind)
        if sink is None:
            self.inputs.list_of(document.kind).append(found)
        else:
            self._pour(sink, found, document)

    def _pour(self, sink: Sink, found: Any, document: Document) -> None:
        try:
            sink(found)
        except errors.InputError as error:
            self.faults.extend(_placed(document, fault) for fault in error.faults)


def _placed(document: Document, fault: Fault) -> Fault:
    """A sink's fault with the place in the file, which a sink cannot know."""
    if fault.file:
        return fault
    return document.fault(fault.message, fault.path)
