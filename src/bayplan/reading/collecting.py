"""
Documents, one by one, decoded into the objects of one cluster or fleet.

Rejects what cannot be read, assigns namespaces and generated names, reports objects that are given twice, and stores
each object by its kind. Does not know files beyond their names.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bayplan.controllers import custom_kinds, pod_creation
from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.errors import Fault, InputError
from bayplan.reading import checking, json_documents
from bayplan.reading.documents import Document
from bayplan.validating import pods, structure_faults
from bayplan.validating.fields import Field
from bayplan.wire import conversion, kinds
from bayplan.wire.custom import CustomObject
from bayplan.wire.kinds import ApiKind, GroupKind, KindHandling, Trait, WireType
from bayplan.wire.meta import ApiObject

Sink = Callable[[Any], None]
_ANNOTATIONS_READ_OF_TEMPLATES = (
    "bayplan.io/", "propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/",
)  # fmt: skip
_POD = kinds.KINDS[kinds.POD]


class Inputs(DesiredState, kw_only=True):
    """
    The objects of the whole input.

    `documents` holds the hand-written objects, for the line of each field. `misread` lists the faults of objects that
    only a fleet reads. `skipped` counts objects that are not decoded by their kinds, `unknown` those of kinds
    that are not in the registry either. `hints` are notes for the user.
    """

    misread: list[Fault] = msgspec.field(default_factory=list)
    documents: dict[ObjectKey, Document] = msgspec.field(default_factory=dict)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    unknown: Counter[str] = msgspec.field(default_factory=Counter)
    hints: list[str] = msgspec.field(default_factory=list)

    def fault(self, owner: ApiObject, message: str, path: str) -> Fault:
        """A fault of one object, with its file and line if the object is hand-written."""
        meta = owner.metadata
        document = self.documents.get(ObjectKey(owner.kind, meta.namespace, meta.name))
        return super().fault(owner, message, path) if document is None else document.fault(message, path)


@dataclass(slots=True, eq=False, kw_only=True)
class Collector:
    """
    Stores objects in `inputs` or passes them to the sink for their group and kind; faults are appended to `faults`.

    A sink for a kind that is not decoded receives the document. Once `is_live` is set, all further objects are a live
    cluster's: they were not written by hand, and objects of the files replace them.
    """

    namespace: str
    strict: bool
    sinks: Mapping[GroupKind, Sink]
    inputs: Inputs = field(default_factory=Inputs)
    faults: list[Fault] = field(default_factory=list)
    is_live: bool = False
    _files: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)
    # Kinds that a fleet only propagates, by name and in any group. Unknown kinds count as namespaced.
    _cluster_wide_templates: frozenset[str] = field(
        default_factory=lambda: frozenset(r.kind for r in kinds.having(Trait.CLUSTER_WIDE) if r.wire_type is None)
    )

    def add(self, item: Document | Fault) -> None:
        """Store one object, or record one fault."""
        if isinstance(item, Fault):
            self.faults.append(item)
            return
        if item.typed is not None:  # a pod of a dump, already decoded and with nothing to check
            item.namespace = item.typed.metadata.namespace = item.namespace or self.namespace
            if self._is_first(item):
                self._store(item, item.typed, _POD)
            return
        handling = kinds.handling_of(item.api_version, item.kind)
        if handling.problem:
            self.faults.append(item.fault(handling.problem, handling.path))
        elif handling.row is None or handling.wire_type is None:
            self._skip(item, handling)
        else:
            item.namespace = "" if handling.row.cluster_wide else item.namespace or self.namespace
            self._decode(item, handling.row, handling.wire_type)

    def _skip(self, document: Document, handling: KindHandling) -> None:
        row = handling.row
        sink = None if row is None else self.sinks.get(row.key)
        if handling.template and document.name:
            self._keep_template(document)
        if row is None and self._reads_custom(document):
            return
        if sink is None:
            (self.inputs.skipped if row is not None else self.inputs.unknown)[document.kind] += 1
        if sink is not None:
            self._send(sink, document, document)

    def _reads_custom(self, document: Document) -> bool:
        """Keep an object of a custom kind that makes pods, or the name of one that does so in an unknown way."""
        kind = self.inputs.custom_kinds.get((document.api_version.rpartition("/")[0], document.kind))
        of_state = document.server_made or self.is_live
        if not document.name or (kind is None and of_state):  # the pods of a dump are in the dump
            return False
        content = dict(document.root if document.root is not None else json_documents.root_of(document))
        if kind is None:
            has_template = custom_kinds.has_pod_template(content.get("spec"))
            if has_template:
                self.inputs.unread_objects.append(ObjectKey(document.kind, document.namespace, document.name))
            return has_template
        if self.strict and not of_state:
            for one in custom_kinds.templates_of(kind, content):
                causes = pods.validate_pod_template(Field(one.path, one.content))
                self.faults.extend(document.fault(cause.message, cause.field) for cause in causes)
        metadata = decode(document, ApiObject)
        if not isinstance(metadata, list):  # what is wrong with its metadata is reported already
            found = CustomObject(content=content, of_state=of_state, kind=document.kind, metadata=metadata.metadata)
            found.api_version = document.api_version
            found.metadata.name, found.metadata.namespace = document.name, document.namespace
            self.inputs.custom_objects.append(found)
        return True

    def _keep_template(self, document: Document) -> None:
        """Keep the metadata, which only a fleet reads; its faults count only there."""
        if document.kind in self._cluster_wide_templates:
            document.namespace = ""
        elif not document.server_made:  # an object that a server returns without a namespace is cluster-wide
            document.namespace = document.namespace or self.namespace
        try:
            found = decode(document, ApiObject)
        except structure_faults.UNDECODABLE as error:
            found = [document.fault(structure_faults.decoding_message(error))]
        if isinstance(found, list):
            self.inputs.misread.extend(found)
            return
        annotations = found.metadata.annotations or {}
        # Annotations may be long, and most are never read.
        kept = {key: text for key, text in annotations.items() if key.startswith(_ANNOTATIONS_READ_OF_TEMPLATES)}
        found.metadata.annotations = kept or None
        found.api_version, found.kind = document.api_version, document.kind
        found.metadata.name, found.metadata.namespace = document.name, document.namespace
        self.inputs.templates.append(found)

    def _decode(self, document: Document, row: ApiKind, wire_type: WireType) -> None:
        """Decode the object, give it the name and namespace that it will have in the cluster, and store it."""
        is_handwritten = self.strict and not document.server_made and not self.is_live
        try:
            found = (is_handwritten and checking.check(document)) or decode(document, wire_type)
        except structure_faults.UNDECODABLE as error:
            found = [document.fault(structure_faults.decoding_message(error))]
        if not document.name and not isinstance(found, list):
            found = [document.fault("expected a name", "metadata.name")]
        if isinstance(found, list):
            self.faults.extend(found)
            return
        metadata = found.metadata
        if not metadata.name:
            taken = self.inputs.inventory.names
            metadata.name = document.name = next(pod_creation.unique_names(document.name, taken, document.namespace))
        metadata.namespace = document.namespace
        # The items of a typed list name neither version nor kind.
        found.api_version, found.kind = document.api_version, document.kind
        if not self._is_first(document):
            return
        if is_handwritten:
            self.inputs.documents[ObjectKey(document.kind, document.namespace, document.name)] = document
        self._store(document, found, row)

    def _is_first(self, document: Document) -> bool:
        """Whether no earlier object has this identity; in files a second one is a fault."""
        key = f"{document.kind}/{document.namespace}/{document.name}"
        if not self._files or self._files[-1] != document.file:
            self._files.append(document.file)
        first = self._places.get(key)
        if first is None:
            line = document.begins if isinstance(document.begins, int) else 0  # counting lines is not worth it yet
            self._places[key] = (len(self._files) - 1) << 32 | line
            return True
        if self.is_live:
            return False
        file, line = self._files[first >> 32], first & 0xFFFFFFFF
        where = f"{file}:{line}" if line else file
        self.faults.append(document.fault(f"the same object is given twice, first in {where}"))
        return False

    def _store(self, document: Document, found: Any, row: ApiKind) -> None:
        if row is _POD:
            self.inputs.inventory.add(found)
        sink = self.sinks.get(row.key)
        if sink is None:
            self.inputs.list_of(row).append(found)
        else:
            self._send(sink, found, document)

    def _send(self, sink: Sink, found: Any, document: Document) -> None:
        try:
            sink(found)
        except InputError as error:  # a sink does not know the place in the file
            self.faults.extend(f if f.file else document.fault(f.message, f.path) for f in error.faults)


@functools.cache
def _decoder(wire_type: Any) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(wire_type).decode


def decode(document: Document, wire_type: Any) -> Any:
    """The object in its wire type, or a list of all faults that prevent it."""
    if isinstance(document.typed, wire_type):
        return document.typed
    try:
        if document.root is None:
            return _decoder(wire_type)(document.text)
        return msgspec.convert(document.root, wire_type)
    except (msgspec.ValidationError, UnicodeDecodeError):
        pass
    root = document.root if document.root is not None else json_documents.root_of(document)
    try:
        return structure_faults.convert(conversion.without_nulls(root), wire_type)
    except InputError as error:
        # The tables know more fields than the wire type; the wire type may be of a kind that they do not have.
        found = checking.check(document, types_only=True)
        return found or [document.fault(fault.message, fault.path) for fault in error.faults]
