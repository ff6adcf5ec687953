"""
Objects that are about to be applied on a state, held until the state is read.

An object that the state has is merged with it, as `kubectl apply` does, and checked against what an API server refuses
to change. Does not know files.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import msgspec

from bayplan.controllers import applying
from bayplan.controllers.desired_state import ObjectKey
from bayplan.errors import Fault
from bayplan.reading import checking
from bayplan.reading.documents import Document, JsonObject
from bayplan.validating import canonical_form, structure_faults, updates
from bayplan.wire import kinds
from bayplan.wire.kinds import ApiKind, KindHandling, Trait

_TEMPLATE_TYPE = "PodTemplateSpec"
# Metadata that a server sets itself, whatever a manifest says that was once written by `kubectl get`.
_OF_DELETION = frozenset(("deletionTimestamp", "deletionGracePeriodSeconds"))
_OF_SERVER = _OF_DELETION | {"uid", "resourceVersion", "creationTimestamp", "managedFields"}
# Fields of a pod spec that placements depend on and that no server sets by itself.
_PLACING = (
    "affinity", "hostNetwork", "initContainers", "nodeName", "nodeSelector", "overhead", "priorityClassName",
    "resourceClaims", "resources", "runtimeClassName", "schedulingGates", "tolerations", "topologySpreadConstraints",
    "volumes",
)  # fmt: skip
_NAMED_LISTS = ("containers", "initContainers", "volumes")
Identity = tuple[str, ObjectKey]  # the API group tells kinds of the same name apart


class HeldChange(msgspec.Struct, eq=False):
    """An object to apply, and the document of the state's object with its identity, if there is one."""

    document: Document
    handling: KindHandling
    current: Document | None = None


class HeldChanges(msgspec.Struct, eq=False):
    """The objects to apply, by identity; `unnamed` are those whose name the server will generate."""

    held: dict[Identity, HeldChange] = msgspec.field(default_factory=dict)
    unnamed: list[HeldChange] = msgspec.field(default_factory=list)

    def hold(self, document: Document, handling: KindHandling) -> None:
        """Hold one object until the state is read."""
        held = HeldChange(document, handling)
        if document.is_named():
            self.held[identity_of(document)] = held
        else:
            self.unnamed.append(held)

    def take(self, document: Document) -> bool:
        """Whether an object of the state is one that the change replaces; it is kept to be merged."""
        held = self.held.get(identity_of(document))
        if held is None:
            return False
        held.current = held.current or document
        return True

    def pods(self) -> set[str]:
        """The pods that the change replaces, as namespace/name."""
        return {f"{key.namespace}/{key.name}" for group, key in self.held if (group, key.kind) == kinds.POD}

    def objects(self) -> Iterator[HeldChange]:
        """Every object to apply, in the order given but for those without a name, which are last."""
        yield from self.held.values()
        yield from self.unnamed


def identity_of(document: Document) -> Identity:
    """What no two objects of a cluster share."""
    key = ObjectKey(document.kind, document.namespace, document.name)
    return document.api_version.rpartition("/")[0], key


def merge(held: HeldChange) -> list[Fault]:
    """
    Replace the held document's content by the merged object.

    Returns what an API server refuses in the change; the document then keeps its content.
    """
    assert held.current is not None, "only an object that the state has is merged"
    document, row = held.document, held.handling.row
    try:
        manifest, current = document.plain(), held.current.plain()
    except structure_faults.UNDECODABLE as error:  # in a field that is not read
        return [document.fault(structure_faults.decoding_message(error))]
    uids = [_uid(root) for root in (manifest, current)]
    if all(uids) and uids[0] != uids[1]:
        message = f"expected {uids[1]}, the uid of this object in the state, got {uids[0]}: it is of another cluster"
        return [document.fault(message, "metadata.uid")]
    is_own = row is not None and not row.is_karmada
    manifest = _without(_OF_DELETION, manifest, row)
    types = checking.field_table() if is_own else {}
    merged = applying.applied(current, manifest, types, document.kind)
    # Rules about updates read what has the right types; anything else is reported when the object is decoded.
    is_judged = is_own and all(checking.has_right_types(root, document.kind) for root in (current, merged))
    causes = updates.validate_update(document.kind, current, merged, types) if is_judged else []
    if not causes:
        document.root, document.text, document.typed = merged, b"", None
    return [document.fault(cause.message, cause.field) for cause in causes]


def kept_fields(held: HeldChange) -> list[str]:
    """
    Fields of the pod template that the state has, the manifest lacks and placements depend on.

    Only if it is not known which manifest was applied before: then the merge keeps them, while a tool that remembers
    what it has applied would remove its own.
    """
    row = held.handling.row
    if row is None or not row.pod_path or held.current is None:
        return []
    try:
        manifest, current = held.document.plain(), held.current.plain()
    except structure_faults.UNDECODABLE:  # reported by the merge
        return []
    if applying.last_applied(current):
        return []
    old, new = (_at(root, (*row.pod_path, "spec")) for root in (current, manifest))
    path = ".".join((*row.pod_path, "spec"))
    if not isinstance(old, dict) or not isinstance(new, dict):
        return []
    found = [f"{path}.{name}" for name in _PLACING if old.get(name) and name not in new]
    for name in _NAMED_LISTS:
        before, after = (_by_name(spec.get(name)) for spec in (old, new))
        if name not in new:
            continue
        found += [f"{path}.{name}[{item}]" for item in before if item not in after]
        for item in (one for one in before if one in after):
            amounts = (_at(one, ("resources",)) for one in (before[item], after[item]))
            found += [f"{path}.{name}[{item}].resources.{at}" for at in _lacking(*amounts)]
    for name in ("nodeSelector", "affinity"):
        found += [f"{path}.{name}.{at}" for at in _lacking(old.get(name), new.get(name))]
    return found


def _lacking(old: Any, new: Any) -> Iterator[str]:
    """The paths of fields that the first map has and the second, which is a map too, lacks."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    for name, value in old.items():
        if name not in new:
            yield name
        else:
            yield from (f"{name}.{inner}" for inner in _lacking(value, new[name]))


def _by_name(items: Any) -> dict[str, Any]:
    listed = items if isinstance(items, list) else []
    return {one["name"]: one for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)}


def create(held: HeldChange) -> None:
    """Leave out of a new object what its server sets, so that a finished Job that was dumped begins anew."""
    document = held.document
    if held.handling.row is not None and held.handling.row.is_karmada:
        return  # a fleet is tried out with bindings and clusters as they are
    try:
        written = document.plain()
    except structure_faults.UNDECODABLE:  # reported when the object is decoded
        return
    sent = _without(_OF_SERVER, written, held.handling.row)
    if sent != written:
        document.root, document.text, document.typed, document.server_made = sent, b"", None, False


def _without(metadata_fields: Container[str], manifest: JsonObject, row: ApiKind | None) -> JsonObject:
    """The manifest without these fields and its status; but nodes and clusters may be tried out with a status."""
    has_status = row is not None and Trait.TARGET in row.traits
    sent = {key: value for key, value in manifest.items() if key != "status" or has_status}
    if isinstance(metadata := sent.get("metadata"), dict):
        sent["metadata"] = {key: value for key, value in metadata.items() if key not in metadata_fields}
    return sent


def _uid(root: JsonObject) -> str:
    metadata = root.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return uid if isinstance(uid, str) else ""


def is_altered(held: HeldChange) -> bool:
    """Whether the merged object says anything else than the one in the state, apart from what its server sets."""
    if held.current is None:
        return True
    row = held.handling.row
    old, new = (_without(_OF_SERVER, one.plain(), row) for one in (held.current, held.document))
    return old != new


def is_rolled_out(held: HeldChange, row: ApiKind) -> bool:
    """Whether the merged controller has another pod template than the one in the state."""
    if not row.pod_path or held.current is None:
        return False
    types = checking.field_table()
    old, new = (
        canonical_form.canonical(_at(one.plain(), row.pod_path), _TEMPLATE_TYPE, types)
        for one in (held.current, held.document)
    )
    return bool(old != new)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
