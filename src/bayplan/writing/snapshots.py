"""
A cluster as one JSON `List` that gives the same answers: the fields that Bayplan reads of each object, and no others.

Environment, arguments, commands and annotations of other tools are not among these fields, so they are never written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bayplan.controllers import deployments, finding_rollouts, label_keys
from bayplan.controllers.binding_triggers import APPLIED_PLACEMENT
from bayplan.controllers.desired_state import DELETION_COST, INDEX_KEY, ObjectKey
from bayplan.controllers.pod_admission import PodAdmission
from bayplan.controllers.pod_injection import INJECTION_ANNOTATIONS
from bayplan.errors import Fault, InputError
from bayplan.mapping.storage import BIND_COMPLETED, CLASS_ANNOTATION, SELECTED_NODE
from bayplan.reading.cluster_storage import IS_DEFAULT_CLASS
from bayplan.reading.collecting import Inputs
from bayplan.reading.quota_limits import CONFIG_MAP
from bayplan.validating import structure_faults
from bayplan.wire import conversion, kinds
from bayplan.wire.meta import ApiObject
from bayplan.wire.placements import WirePlacement
from bayplan.wire.pods import Pod
from bayplan.wire.storage import PersistentVolumeClaim
from bayplan.writing import versioned
from bayplan.writing.name_hashing import Encoded, Renaming

EXCLUDED_KINDS = frozenset(row.kind for row in kinds.having(kinds.Trait.CONFIDENTIAL))
_READ_PREFIXES = ("bayplan.io/", "propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/")
_READ_ANNOTATIONS = frozenset({
    BIND_COMPLETED, CLASS_ANNOTATION, SELECTED_NODE, IS_DEFAULT_CLASS, INDEX_KEY, APPLIED_PLACEMENT, DELETION_COST,
    deployments.DESIRED, deployments.MAX_REPLICAS, deployments.REVISION, finding_rollouts.GENERATION,
    "kubernetes.io/config.mirror", "cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/machine",
    "cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name", *INJECTION_ANNOTATIONS,
})  # fmt: skip
_BINDINGS = frozenset(row.kind for row in kinds.held_in("bindings"))


class Snapshot(msgspec.Struct):
    """The objects to write; `typed` are the objects from manifests, which are read more strictly than dumps."""

    objects: list[ApiObject]
    typed: frozenset[ObjectKey] = frozenset()

    def text(self, renaming: Renaming | None = None) -> str:
        """The snapshot, one object per line, so that two snapshots can be compared line by line."""
        if renaming is not None:
            self._learn_names(renaming)
        items = (encoded if renaming is None else renaming.renamed(encoded) for encoded in self._encoded())
        lines = ",\n".join(versioned.safe_json(msgspec.json.encode(item)) for item in items)
        return f'{{"apiVersion":"v1","kind":"List","items":[\n{lines}\n]}}\n'

    def _learn_names(self, renaming: Renaming) -> None:
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
    """All objects that were read, with the templates of a fleet; kinds that may hold secrets are excluded."""
    lists: dict[int, list[Any]] = {}
    for row in kinds.decoded():
        found = inputs.list_of(row)
        lists[id(found)] = found  # kinds can share a list
    objects: list[ApiObject] = [one for found in lists.values() for one in found]
    # What is read from a snapshot has been admitted, so pods that have not are admitted here.
    admission = PodAdmission(inputs)
    objects.extend(
        pod if pod.metadata.uid or pod.metadata.resource_version else label_keys.merged(admission.admit(pod).pod)
        for pod in pods
    )
    if inputs.clusters:
        objects.extend(one for one in inputs.templates if one.kind not in EXCLUDED_KINDS)
    return Snapshot(objects, frozenset(inputs.documents))


def left_out(inputs: Inputs) -> list[str]:
    """Notes on what is missing in the snapshot because it is never written, or means something else there."""
    notes: list[str] = []
    applied: list[ApiObject] = [one for one in inputs.cron_jobs if inputs.is_changed(one)]
    applied += [one for one in (*inputs.custom_objects, *inputs.unread_objects) if not one.of_state]
    if applied:
        named = ", ".join(sorted({one.kind for one in applied}))
        notes.append(f"in a snapshot everything runs already: no pods are made for these: {named}")
    n_missing = sum(one.kind in EXCLUDED_KINDS for one in inputs.templates) if inputs.clusters else 0
    if n_missing:
        notes.append(f"{n_missing} Secrets and ConfigMaps were left out, with their placements")
    if any(one.kind == "ConfigMap" and _name(one) == CONFIG_MAP for one in inputs.templates):
        notes.append(f"ConfigMap {CONFIG_MAP} was left out: `quota` finds no limits in this snapshot")
    return notes


def _name(found: ApiObject) -> str:
    return f"{found.metadata.namespace}/{found.metadata.name}"


def reduced(found: ApiObject, *, typed: bool) -> Encoded:
    """
    The object as plain values, with only the fields that Bayplan reads.

    An object of a dump was admitted, so it is written with a version and a status, as a server has it. For bindings it
    matters whether they were `typed` by a person: such a binding follows no policy yet.
    """
    encoded: Encoded = _without_foreign(msgspec.to_builtins(found))
    if found.kind in _BINDINGS and encoded.get("spec", {}).get("placement") is not None:
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
    """The known fields of a placement, which a binding holds as written."""
    try:
        read = structure_faults.convert(conversion.without_nulls(written), WirePlacement, "spec.placement")
    except InputError as error:
        subject = f"{found.kind} {found.metadata.namespace}/{found.metadata.name}"
        raise InputError(Fault(one.message, subject=subject, path=one.path) for one in error.faults) from None
    placement: Encoded = msgspec.to_builtins(read)
    return placement


def _without_foreign(value: Any) -> Any:
    """The value without annotations that Bayplan does not read, and without the content of two untyped fields."""
    if isinstance(value, list):
        return [_without_foreign(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: Encoded = {}
    for key, item in value.items():
        if key == "annotations" and isinstance(item, dict):
            kept[key] = {
                name: _text(name, text)
                for name, text in item.items()
                if name in _READ_ANNOTATIONS or name.startswith(_READ_PREFIXES)
            }
        elif key == "ephemeral" and item is not None:
            kept[key] = _ephemeral(item)
        elif key == "resourceClaims" and item:
            kept[key] = [{"name": claim.get("name", "")} for claim in item]
        else:
            kept[key] = _without_foreign(item)
    return kept


def _ephemeral(written: Any) -> Encoded:
    """The claim template of an ephemeral volume, reduced to known fields."""
    try:
        template = msgspec.convert(written["volumeClaimTemplate"], PersistentVolumeClaim)
    except (msgspec.ValidationError, KeyError, TypeError):
        return {}
    return {"volumeClaimTemplate": _without_foreign(msgspec.to_builtins(template))}


def _text(annotation: str, text: str) -> str:
    """The placement that Karmada applied last, reduced to known fields; text that is not a placement is kept."""
    if annotation != APPLIED_PLACEMENT or not text:
        return text
    try:
        return msgspec.json.encode(msgspec.json.decode(text, type=WirePlacement)).decode()
    except msgspec.MsgspecError:
        return text
