"""
A cluster as one JSON `List` that gives the same answers: what Bayplan reads of each object and nothing else.

Environment, arguments, commands and foreign annotations are no fields of ours, so they cannot be written. Knows
nothing of files or of servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bayplan.controllers.binding_triggers import APPLIED_PLACEMENT
from bayplan.controllers.desired_state import INDEX_KEY
from bayplan.errors import Fault, InputError
from bayplan.mapping.storage import BIND_COMPLETED, CLASS_ANNOTATION, SELECTED_NODE
from bayplan.reading.cluster import IS_DEFAULT_CLASS
from bayplan.reading.collecting import Inputs, ObjectKey
from bayplan.reading.quota_limits import CONFIG_MAP
from bayplan.wire import conversion, kinds
from bayplan.wire.meta import ApiObject
from bayplan.wire.placements import WirePlacement
from bayplan.wire.pods import Pod
from bayplan.writing.name_hashing import Encoded, Renaming

NEVER = ("Secret", "ConfigMap")
_READ_PREFIXES = ("bayplan.io/", "propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/")
_READ = frozenset({
    BIND_COMPLETED, CLASS_ANNOTATION, SELECTED_NODE, IS_DEFAULT_CLASS, INDEX_KEY, APPLIED_PLACEMENT,
    "kubernetes.io/config.mirror", "cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/machine",
    "cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name",
})  # fmt: skip
_BINDINGS = ("ResourceBinding", "ClusterResourceBinding")


class Snapshot(msgspec.Struct):
    """The objects to be written, as read; `typed` are those that people wrote, which are read more strictly."""

    objects: list[ApiObject]
    typed: frozenset[ObjectKey] = frozenset()

    def text(self, renaming: Renaming | None = None) -> str:
        """The snapshot, one object a line, so that two of them can be compared line by line."""
        if renaming is not None:
            self._teach(renaming)
        items = (encoded if renaming is None else renaming.renamed(encoded) for encoded in self._encoded())
        lines = ",\n".join(msgspec.json.encode(item).decode() for item in items)
        return f'{{"apiVersion":"v1","kind":"List","items":[\n{lines}\n]}}\n'

    def _teach(self, renaming: Renaming) -> None:
        for encoded in self._encoded():
            renaming.learn(encoded)
        for found in self.objects:
            if found.kind == "Pod":
                renaming.learn_pod(msgspec.to_builtins(found))
            elif found.kind == "PersistentVolumeClaim":
                renaming.learn_claim(msgspec.to_builtins(found))

    def _encoded(self) -> Iterator[Encoded]:
        for found in self.objects:
            key = ObjectKey(found.kind, found.metadata.namespace, found.metadata.name)
            yield reduced(found, typed=found.kind in _BINDINGS and key in self.typed)


def snapshot_of(inputs: Inputs, pods: Sequence[Pod]) -> Snapshot:
    """Everything that was read; a fleet's templates of other kinds too, but never what may hold secrets."""
    known = dict.fromkeys((*kinds.BUILT_IN, *kinds.KARMADA))
    lists: dict[int, list[Any]] = {}
    for kind in known:
        found = inputs.list_of(kind)
        lists[id(found)] = found  # two kinds may share a list
    objects: list[ApiObject] = [one for found in lists.values() for one in found]
    objects.extend(pods)
    if inputs.clusters:
        objects.extend(one for one in inputs.templates if one.kind not in NEVER)
    return Snapshot(objects, frozenset(inputs.documents))


def left_out(inputs: Inputs) -> list[str]:
    """What answers from the snapshot will miss, because it is never written."""
    notes: list[str] = []
    n_missing = sum(one.kind in NEVER for one in inputs.templates) if inputs.clusters else 0
    if n_missing:
        notes.append(f"{n_missing} Secrets and ConfigMaps were left out, and so is where they would go")
    if any(one.kind == "ConfigMap" and _name(one) == CONFIG_MAP for one in inputs.templates):
        notes.append(f"ConfigMap {CONFIG_MAP} was left out: quota knows no limits in this snapshot")
    return notes


def _name(found: ApiObject) -> str:
    return f"{found.metadata.namespace}/{found.metadata.name}"


def reduced(found: ApiObject, *, typed: bool) -> Encoded:
    """
    The object as plain values, with only what Bayplan reads.

    What was read has been admitted, so it is written as a server would have: with a version and a status. Only of
    bindings it matters whether people `typed` them: these follow no policy yet.
    """
    encoded: Encoded = _without_foreign(msgspec.to_builtins(found))
    if found.kind in _BINDINGS and encoded["spec"].get("placement") is not None:
        encoded["spec"]["placement"] = _placement(found, encoded["spec"]["placement"])
    if not typed:
        encoded.setdefault("status", {})
        metadata = encoded["metadata"]
        if not metadata.get("uid"):
            metadata.setdefault("resourceVersion", "1")
    elif not encoded.get("status"):
        encoded.pop("status", None)
    return encoded


def _placement(found: ApiObject, written: Encoded) -> Encoded:
    """The fields of ours; a binding keeps its placement as written, whatever it holds."""
    try:
        placement: Encoded = msgspec.to_builtins(conversion.converted(written, WirePlacement))
    except msgspec.ValidationError as error:
        subject = f"{found.kind} {found.metadata.namespace}/{found.metadata.name}"
        raise InputError(Fault(str(error), subject=subject, path="spec.placement")) from None
    return placement


def _without_foreign(value: Any) -> Any:
    """Without annotations that nobody here reads, and without the two fields that our types take as they come."""
    if isinstance(value, list):
        return [_without_foreign(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: Encoded = {}
    for key, item in value.items():
        if key == "annotations" and isinstance(item, dict):
            kept[key] = {name: _text(name, text) for name, text in item.items() if _is_read(name)}
        elif key == "ephemeral" and item is not None:
            kept[key] = {}
        elif key == "resourceClaims" and item:
            kept[key] = [{"name": claim.get("name", "")} for claim in item]
        else:
            kept[key] = _without_foreign(item)
    return kept


def _is_read(annotation: str) -> bool:
    return annotation in _READ or annotation.startswith(_READ_PREFIXES)


def _text(annotation: str, text: str) -> str:
    """What Karmada applied last, in our fields; text that is no placement stays, as it means something to be none."""
    if annotation != APPLIED_PLACEMENT or not text:
        return text
    try:
        return msgspec.json.encode(msgspec.json.decode(text, type=WirePlacement)).decode()
    except msgspec.MsgspecError:
        return text
