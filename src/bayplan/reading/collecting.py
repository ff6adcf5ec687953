"""
Documents, one by one, decoded into the objects of one cluster or fleet.

Rejects what cannot be read, assigns namespaces and generated names, reports objects that are given twice, and stores
each object by its kind. Does not know files beyond their names.
"""

from __future__ import annotations

import enum
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.controllers import custom_kinds, pod_templates
from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.errors import Fault, InputError
from bayplan.reading import checking, json_documents
from bayplan.reading.documents import Document, JsonObject, Source
from bayplan.validating import pods, structure_faults
from bayplan.validating.fields import Field
from bayplan.wire import conversion, kinds
from bayplan.wire.custom import CustomObject
from bayplan.wire.kinds import ApiKind, GroupKind, KindHandling, Trait, WireType
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod

if TYPE_CHECKING:
    from bayplan.reading.changes import HeldChange, HeldChanges

Sink = Callable[[Any], None]
_ANNOTATIONS_READ_OF_TEMPLATES = (
    "bayplan.io/", "propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/",
)  # fmt: skip
_POD = kinds.KINDS[kinds.POD]
_MAX_SET_ASIDE_SHOWN = 3


class Inputs(DesiredState, kw_only=True):
    """
    The objects of the whole input.

    `documents` holds the hand-written objects, for the line of each field. `misread` lists the faults of objects that
    only a fleet reads. `skipped` counts objects that are not decoded by their kinds, `unknown` those of kinds
    that are not in the registry either. `hints` are notes for the user. `kept` has the fields of pod templates
    that a manifest lacks and that stay because it is not known which manifest was applied before.
    """

    misread: list[Fault] = msgspec.field(default_factory=list)
    documents: dict[ObjectKey, Document] = msgspec.field(default_factory=dict)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    unknown: Counter[str] = msgspec.field(default_factory=Counter)
    n_unknown_in_change: int = 0
    hints: list[str] = msgspec.field(default_factory=list)
    kept: dict[ObjectKey, list[str]] = msgspec.field(default_factory=dict)

    def fault(self, owner: ApiObject, message: str, path: str) -> Fault:
        """A fault of one object, with its file and line if the object is hand-written."""
        meta = owner.metadata
        document = self.documents.get(ObjectKey(owner.kind, meta.namespace, meta.name))
        return super().fault(owner, message, path) if document is None else document.fault(message, path)

    def state_notes(self) -> list[str]:
        """What the change replaces, and what in the state cannot be read, in a few lines."""
        found = []
        n = len(self.replaced.keys() - set(self.assumed_changed))
        if n:
            found.append("1 object of the state is replaced" if n == 1 else f"{n} objects of the state are replaced")
        for key, fields in list(self.kept.items())[:_MAX_SET_ASIDE_SHOWN]:
            shown = ", ".join(fields[:_MAX_SET_ASIDE_SHOWN]) + (" …" if len(fields) > _MAX_SET_ASIDE_SHOWN else "")
            found.append(
                f"{key.kind} {key.namespace}/{key.name} has no last-applied configuration, so it keeps what its "
                f"manifest lacks: {shown}; Helm and server-side apply remove what they have set"
            )
        if len(self.kept) > _MAX_SET_ASIDE_SHOWN:
            found.append(f"{len(self.kept) - _MAX_SET_ASIDE_SHOWN} more objects keep fields that their manifests lack")
        return [*found, *set_aside_notes(self.set_aside)]


def set_aside_notes(faults: Sequence[Fault]) -> Iterator[str]:
    """The first objects that cannot be read, and how many more there are."""
    yield from (f"set aside: {fault}" for fault in faults[:_MAX_SET_ASIDE_SHOWN])
    n_more = len(faults) - _MAX_SET_ASIDE_SHOWN
    if n_more > 0:
        yield f"set aside: {n_more} more {'object' if n_more == 1 else 'objects'} of the state"


class Phase(enum.Enum):
    """
    What the objects that are read are.

    With `BOTH` there is no division. Objects of a change are held until those of the state are read, and then applied.
    """

    BOTH = enum.auto()
    CHANGE = enum.auto()
    STATE = enum.auto()
    APPLYING = enum.auto()


@dataclass(slots=True, eq=False, kw_only=True)
class Collector:
    """
    Stores objects in `inputs` or passes them to the sink for their group and kind; faults are appended to `faults`.

    A sink for a kind that is not decoded receives the document. Objects of the state were admitted by an API server:
    they are not checked, and one that cannot be read is set aside.
    """

    namespace: str
    strict: bool
    sinks: Mapping[GroupKind, Sink]
    inputs: Inputs = field(default_factory=Inputs)
    faults: list[Fault] = field(default_factory=list)
    phase: Phase = Phase.BOTH
    _change: HeldChanges | None = None
    _n_given_twice: int = 0
    _files: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)
    # Kinds that a fleet only propagates, by name and in any group. Unknown kinds count as namespaced.
    _cluster_wide_templates: frozenset[str] = field(
        default_factory=lambda: frozenset(r.kind for r in kinds.having(Trait.CLUSTER_WIDE) if r.wire_type is None)
    )

    def begin_change(self) -> None:
        """All further objects are about to be applied on a state, which is read after them."""
        from bayplan.reading.changes import HeldChanges  # only a state needs it

        self.phase, self._change, self.inputs.change = Phase.CHANGE, HeldChanges(), set()

    def begin_state(self) -> None:
        """All further objects are those of the state."""
        self.phase, self.inputs.has_state = Phase.STATE, True

    def end_state(self) -> None:
        """All objects are added: the change is merged into the state and stored."""
        self.phase = Phase.APPLYING
        if self._n_given_twice:
            counted = "1 object" if self._n_given_twice == 1 else f"{self._n_given_twice} objects"
            self.inputs.hints.append(f"the state has {counted} more than once; the first of each is used")
        for held in () if self._change is None else self._change.objects():
            self._apply(held)

    def _apply(self, held: HeldChange) -> None:
        """Store one object of the change, merged with the state's if there is one."""
        from bayplan.reading import changes

        document, row, wire_type = held.document, held.handling.row, held.handling.wire_type
        before = None if held.current is None else _decoded(held.current, wire_type or ApiObject)
        if isinstance(before, list):  # what cannot be read is set aside, and the change creates the object
            self.inputs.set_aside.extend(before[:1])
            before = held.current = None
        if before is None:
            changes.create(held)
        kept = [] if before is None else changes.kept_fields(held)
        refused = [] if before is None else changes.merge(held)
        self.faults.extend(refused)
        if refused:
            return
        if kept:
            self.inputs.kept[ObjectKey(document.kind, document.namespace, document.name)] = kept
        self._accept(document, held.handling)
        key = ObjectKey(document.kind, document.namespace, document.name)
        assert self.inputs.change is not None
        self.inputs.change.add(key)
        if before is None or changes.is_altered(held):
            self.inputs.altered.add(key)
        if before is None:
            return
        before.api_version, before.kind, before.metadata.namespace = document.api_version, *key[:2]
        if row is None and held.current is not None:  # if it makes pods, what it makes them of is compared
            before = _custom_object(held.current, before, of_state=True)
        if wire_type is not None or key not in self.inputs.replaced:  # kinds of other groups may share the name
            self.inputs.replaced[key] = before
        if row is not None and changes.is_rolled_out(held, row):
            self.inputs.rolled_out.add(key)

    def add(self, item: Document | Fault) -> None:
        """Store one object, or record one fault."""
        if isinstance(item, Fault):
            self.faults.append(item)
            return
        handling = kinds.handling_of(item.api_version, item.kind)
        if handling.problem:
            self._reject([item.fault(handling.problem, handling.path)])
            return
        self._assign_namespace(item, handling)
        if self._change is None:
            self._accept(item, handling)
        elif self.phase is Phase.CHANGE:
            self._hold(item, handling, self._change)
        elif not self._change.take(item):
            self._accept(item, handling)

    def add_pods(self, pods: list[Pod], source: Source) -> bool:
        """
        Store pods of the state, or of a dump, all at once.

        False, and nothing is stored, if one of them needs a closer look.
        """
        is_state, inventory, keys = self.phase is Phase.STATE, self.inputs.inventory, []
        if self.phase is Phase.CHANGE:
            return False
        for pod in pods:
            meta = pod.metadata
            if pod.kind != _POD.kind or pod.api_version != _POD.api_version or not meta.name:
                return False
            if not is_state and not json_documents.is_dumped(pod):
                return False
            meta.namespace = meta.namespace or self.namespace
            keys.append(f"{meta.namespace}/{meta.name}")
        distinct = set(keys)
        replaced = set() if self._change is None else self._change.pods()
        if len(distinct) < len(keys) or not inventory.names.isdisjoint(distinct) or not replaced.isdisjoint(distinct):
            return False
        if not is_state:  # for the message about a pod that is given again
            place = self._file_number(source.name) << 32
            self._places.update((f"{_POD.kind}/{key}", place) for key in keys)
        sink = self.sinks.get(kinds.POD, self.inputs.pods.append)
        inventory.names |= distinct
        for pod in pods:
            inventory.add_named(pod)
            try:
                sink(pod)
            except InputError as error:
                faults = [self.inputs.fault(pod, one.message, one.path) for one in error.faults]
                self._reject([msgspec.structs.replace(fault, file=source.name) for fault in faults])
        return True

    def _accept(self, item: Document, handling: KindHandling) -> None:
        if item.typed is not None:  # a pod of a dump, already decoded and with nothing to check
            item.typed.metadata.namespace = item.namespace
            if self._is_first(item):
                self._store(item, item.typed, _POD)
        elif handling.row is None or handling.wire_type is None:
            self._skip(item, handling)
        else:
            self._decode(item, handling.row, handling.wire_type)

    def _assign_namespace(self, document: Document, handling: KindHandling) -> None:
        row = handling.row
        if row is not None and handling.wire_type is not None:
            document.namespace = "" if row.cluster_wide else document.namespace or self.namespace
        elif not handling.template or not document.name:
            return
        elif document.kind in self._cluster_wide_templates:
            document.namespace = ""
        elif not document.server_made:  # an object that a server returns without a namespace is cluster-wide
            document.namespace = document.namespace or self.namespace

    def _hold(self, document: Document, handling: KindHandling, change: HeldChanges) -> None:
        """Check an object of the change, and hold it until the state is read."""
        row = handling.row
        is_checked = handling.wire_type is not None or (row is not None and row.pod_path)
        found = _checked(document) if is_checked and self.strict and not document.server_made else []
        if not found and not document.name and handling.wire_type is not None:
            found = [document.fault("expected a name", "metadata.name")]
        self.faults.extend(found)
        if not found and (not document.is_named() or self._is_first(document)):
            change.hold(document, handling)

    def _reject(self, found: list[Fault]) -> None:
        """An object cannot be read: a fault of the input, except in the state, where it is set aside."""
        if self.phase is Phase.STATE:
            self.inputs.set_aside.extend(found[:1])
        else:
            self.faults.extend(found)

    def _skip(self, document: Document, handling: KindHandling) -> None:
        row = handling.row
        sink = None if row is None else self.sinks.get(row.key)
        if handling.template and document.name:
            self._keep_template(document)
        if row is None and self._reads_custom(document):
            return
        if sink is None:
            group = document.api_version.rpartition("/")[0]
            is_known = row is not None or (group, document.kind) in custom_kinds.WITHOUT_PODS
            (self.inputs.skipped if is_known else self.inputs.unknown)[document.kind] += 1
            if not is_known and self.phase is Phase.APPLYING:
                self.inputs.n_unknown_in_change += 1
        if sink is not None:
            self._send(sink, document, document)

    def _reads_custom(self, document: Document) -> bool:
        """Keep an object of a custom kind that makes pods, or the name of one that does so in an unknown way."""
        kind = self.inputs.custom_kinds.get((document.api_version.rpartition("/")[0], document.kind))
        of_state = self.phase is Phase.STATE or (self.phase is Phase.BOTH and document.server_made)
        if not document.name or (kind is None and of_state):  # the pods of a dump are in the dump
            return False
        metadata = _decoded(document, ApiObject)
        if isinstance(metadata, list):  # what is wrong with its metadata is reported already
            return False
        try:
            found = _custom_object(document, metadata, of_state=of_state)
        except structure_faults.UNDECODABLE as error:  # in a field that is not read
            self._reject([document.fault(structure_faults.decoding_message(error))])
            return True
        if kind is None:
            has_template = custom_kinds.has_pod_template(found.content.get("spec"))
            self.inputs.unread_objects.extend([found] if has_template else ())
            return has_template
        if self.strict and not of_state:
            for path, value in custom_kinds.miscounted(kind, found.content):
                self.faults.append(document.fault(f"expected a whole number that is not negative, got {value!r}", path))
            for one in custom_kinds.templates_of(kind, found.content):
                causes = pods.validate_pod_template(Field(one.path, one.content))
                self.faults.extend(document.fault(cause.message, cause.field) for cause in causes)
        self.inputs.custom_objects.append(found)
        return True

    def _keep_template(self, document: Document) -> None:
        """Keep the metadata, which only a fleet reads; its faults count only there."""
        found = _decoded(document, ApiObject)
        is_read_whole = kinds.KINDS.get((document.api_version.rpartition("/")[0], document.kind)) is None
        content: JsonObject = {}
        try:
            content = document.plain() if is_read_whole else content
        except structure_faults.UNDECODABLE as error:  # in a field of which the metadata knows nothing
            found = [document.fault(structure_faults.decoding_message(error))]
        if isinstance(found, list):
            if self.phase is Phase.STATE:
                self._reject(found)
            else:
                self.inputs.misread.extend(found)
            return
        annotations = found.metadata.annotations or {}
        # Annotations may be long, and most are never read.
        kept = {key: text for key, text in annotations.items() if key.startswith(_ANNOTATIONS_READ_OF_TEMPLATES)}
        found.metadata.annotations = kept or None
        found.api_version, found.kind = document.api_version, document.kind
        found.metadata.name, found.metadata.namespace = document.name, document.namespace
        self.inputs.templates.append(found)
        if is_read_whole:
            key = document.api_version, document.kind, document.namespace, document.name
            self.inputs.template_contents[key] = content

    def _decode(self, document: Document, row: ApiKind, wire_type: WireType) -> None:
        """Decode the object, give it the name and namespace that it will have in the cluster, and store it."""
        found = (self._is_to_be_checked(document) and _checked(document)) or _decoded(document, wire_type)
        if not document.name and not isinstance(found, list):
            found = [document.fault("expected a name", "metadata.name")]
        if isinstance(found, list):
            self._reject(found)
            return
        metadata = found.metadata
        if not metadata.name:
            taken = self.inputs.inventory.names
            metadata.name = document.name = next(pod_templates.unique_names(document.name, taken, document.namespace))
        metadata.namespace = document.namespace
        # The items of a typed list name neither version nor kind.
        found.api_version, found.kind = document.api_version, document.kind
        if not self._is_first(document):
            return
        if self.strict and not document.server_made and self.phase is not Phase.STATE:
            self.inputs.documents[ObjectKey(document.kind, document.namespace, document.name)] = document
        self._store(document, found, row)

    def _is_to_be_checked(self, document: Document) -> bool:
        """Whether fields and types are checked now; those of a change were checked when it was read."""
        return self.strict and not document.server_made and self.phase is Phase.BOTH

    def _is_first(self, document: Document) -> bool:
        """Whether no earlier object has this identity; in files a second one is a fault."""
        if self.phase is Phase.APPLYING:
            return True
        if self.phase is Phase.STATE and self._is_stored_pod(document):
            self._n_given_twice += 1
            return False
        key = f"{document.kind}/{document.namespace}/{document.name}"
        if self.phase is Phase.CHANGE:  # kinds that are not decoded may share a name with others
            key = f"{document.api_version.rpartition('/')[0]}/{key}"
        first = self._places.get(key)
        if first is None:
            line = document.begins if isinstance(document.begins, int) else 0  # counting lines is not worth it yet
            self._places[key] = self._file_number(document.file) << 32 | line
            return True
        if self.phase is Phase.STATE:
            self._n_given_twice += 1
            return False
        file, line = self._files[first >> 32], first & 0xFFFFFFFF
        where = f"{file}:{line}" if line else file
        if self.phase is Phase.CHANGE:
            message = f"the same object is changed twice, first in {where}"
        else:
            message = f"the same object is given twice, first in {where}; give what runs with --state instead of -f"
        self.faults.append(document.fault(message))
        return False

    def _file_number(self, name: str) -> int:
        if not self._files or self._files[-1] != name:
            self._files.append(name)
        return len(self._files) - 1

    def _is_stored_pod(self, document: Document) -> bool:
        """Whether it is a pod that may have been stored with many others, without its place."""
        is_pod = document.kind == _POD.kind and kinds.handling_of(document.api_version, document.kind).row is _POD
        return is_pod and f"{document.namespace}/{document.name}" in self.inputs.inventory.names

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
            self._reject([f if f.file else document.fault(f.message, f.path) for f in error.faults])


def _custom_object(document: Document, decoded: ApiObject, *, of_state: bool) -> CustomObject:
    """The object with its whole content; `decoded` has its metadata."""
    metadata = msgspec.structs.replace(decoded.metadata, name=document.name, namespace=document.namespace)
    return CustomObject(
        api_version=document.api_version,
        kind=document.kind,
        metadata=metadata,
        content=dict(document.plain()),
        of_state=of_state,
    )


def _checked(document: Document) -> list[Fault]:
    """Misspelt fields and values of the wrong type, or why the document is not even JSON."""
    try:
        return checking.check(document)
    except structure_faults.UNDECODABLE as error:
        return [document.fault(structure_faults.decoding_message(error))]


def _decoded(document: Document, wire_type: Any) -> Any:
    """The object in its wire type, or all faults that prevent it, with reasons why it is not even JSON."""
    try:
        return decode(document, wire_type)
    except structure_faults.UNDECODABLE as error:
        return [document.fault(structure_faults.decoding_message(error))]


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
    root = document.plain()
    try:
        return structure_faults.convert(conversion.without_nulls(root), wire_type)
    except InputError as error:
        # The tables know more fields than the wire type; the wire type may be of a kind that they do not have.
        found = checking.check(document, types_only=True)
        return found or [document.fault(fault.message, fault.path) for fault in error.faults]
