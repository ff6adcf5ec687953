"""
Why an API server refuses to change an object that exists: fields that are fixed once it is created.

Compares the object before and after, both as plain values, in their canonical form. What is wrong with the new object
by itself is checked elsewhere.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from bayplan.model import quantities
from bayplan.validating import canonical_form, go_text
from bayplan.validating.canonical_form import FieldTypes
from bayplan.validating.fields import FORBIDDEN, INVALID, Cause

IMMUTABLE = "field is immutable"
_Object = dict[str, Any]
_MAX_SHOWN_LENGTH = 80
_MAX_DIFFERENCES = 3
# Tolerations that admission adds to every pod, at an update too: plugin/pkg/admission/defaulttolerationseconds.
_ADDED_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_STATEFUL_SET_FIELDS = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_POD_FIELDS = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_JOB_FIELDS = (
    "selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy",
)  # fmt: skip
# Fields that are fixed and nothing else: `spec.selector` of a Deployment, the parameters of a StorageClass, …
_FIXED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "DaemonSet"), (("spec", "selector"),)),
    "Job": tuple(("spec", name) for name in _JOB_FIELDS),
    "StorageClass": tuple((name,) for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")),
    "PriorityClass": (("preemptionPolicy",),),
    "VolumeAttachment": (("spec",),),
    "CSIDriver": (("spec", "attachRequired"), ("spec", "volumeLifecycleModes")),
    "RuntimeClass": (("handler",),),
}
# What the server fills in for these, where the object leaves them out.
_DEFAULTS: Mapping[tuple[str, str], Any] = {
    ("StorageClass", "reclaimPolicy"): "Delete",
    ("StorageClass", "volumeBindingMode"): "Immediate",
    ("PriorityClass", "preemptionPolicy"): "PreemptLowerPriority",
    ("Job", "completionMode"): "NonIndexed",
    ("CSIDriver", "attachRequired"): True,
    ("CSIDriver", "volumeLifecycleModes"): ["Persistent"],
}


class Update(msgspec.Struct, frozen=True):
    """One object before and after the change, as plain values and in canonical form."""

    kind: str
    written: tuple[_Object, _Object]
    old: _Object
    new: _Object


def validate_update(kind: str, old: _Object, new: _Object, types: FieldTypes) -> list[Cause]:
    """The causes for refusing to change the object: none if it may be changed so."""
    forms = [canonical_form.canonical(one, kind, types) for one in (old, new)]
    update = Update(kind, (old, new), *(form if isinstance(form, dict) else {} for form in forms))
    found = [cause for path in _FIXED.get(kind, ()) for cause in _fixed(update, path)]
    return [*found, *(_RULES[kind](update) if kind in _RULES else ())]


def _fixed(update: Update, path: tuple[str, ...]) -> Iterator[Cause]:
    default = _DEFAULTS.get((update.kind, path[-1]))
    old, new = (_at(form, path) for form in (update.old, update.new))
    if (default if old is None else old) != (default if new is None else new):
        yield _immutable(".".join(path), _at(update.written[1], path), old, new)


def _immutable(path: str, value: Any, old: Any, new: Any) -> Cause:
    shown = go_text.as_json(value)
    if len(shown) > _MAX_SHOWN_LENGTH:
        shown = f"{shown[:_MAX_SHOWN_LENGTH]}…"
    places = _differences(old, new)
    return Cause(INVALID, path, f"Invalid value: {shown}: {IMMUTABLE}{f' ({places})' if places else ''}")


def _differences(old: Any, new: Any) -> str:
    """The first places where two values differ, below them; empty if they differ as a whole."""
    found = list(dict.fromkeys(_places(old, new, "")))
    if not found or found == [""]:
        return ""
    more = ", …" if len(found) > _MAX_DIFFERENCES else ""
    return f"{', '.join(place.lstrip('.') for place in found[:_MAX_DIFFERENCES])}{more}"


def _places(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            if old.get(key) != new.get(key):
                yield from _places(old.get(key), new.get(key), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                yield from _places(one, other, f"{path}[{index}]")
    elif old != new:
        yield path


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _forbidden(path: str, detail: str, old: Any = None, new: Any = None) -> Cause:
    places = _differences(old, new)
    return Cause(FORBIDDEN, path, f"Forbidden: {detail}{f' ({places})' if places else ''}")


def _stateful_set(update: Update) -> Iterator[Cause]:
    specs = [
        {key: value for key, value in (_at(form, ("spec",)) or {}).items() if key not in _STATEFUL_SET_FIELDS}
        for form in (update.old, update.new)
    ]
    for spec in specs:
        spec.setdefault("podManagementPolicy", "OrderedReady")
    if specs[0] != specs[1]:
        listed = ", ".join(f"'{name}'" for name in _STATEFUL_SET_FIELDS[:-1])
        detail = f"updates to statefulset spec for fields other than {listed} and 'minReadySeconds' are forbidden"
        yield _forbidden("spec", detail, *specs)


def _job(update: Update) -> Iterator[Cause]:
    """The template of a Job is fixed, but for a suspended one that runs nothing; so are its completions."""
    old, new = (_at(form, ("spec",)) or {} for form in (update.old, update.new))
    if old.get("completions") != new.get("completions"):
        written = _at(update.written[1], ("spec", "completions"))
        if new.get("completionMode") != "Indexed":
            yield _immutable("spec.completions", written, None, None)
        elif written is not None and written != new.get("parallelism", 1):
            detail = "can only be modified in tandem with spec.parallelism"
            yield Cause(INVALID, "spec.completions", f"Invalid value: {written}: {detail}")
    template = copy.deepcopy(old.get("template") or {})
    if _may_change_template(update):
        template = _with_changes_of_suspended(template, new.get("template") or {})
    if template != (new.get("template") or {}):
        written = _at(update.written[1], ("spec", "template"))
        yield _immutable("spec.template", written, template, new.get("template") or {})


def _may_change_template(update: Update) -> bool:
    """As shouldAllowMutablePodTemplate in pkg/registry/batch/job/strategy.go."""
    status = _at(update.written[0], ("status",)) or {}
    conditions = [one for one in status.get("conditions") or () if one is not None]
    suspended = any((one.get("type"), one.get("status")) == ("Suspended", "True") for one in conditions)
    is_idle = not status.get("startTime") or suspended
    return _at(update.written[0], ("spec", "suspend")) is True and is_idle and not status.get("active")


def _with_changes_of_suspended(old: _Object, new: _Object) -> _Object:
    """The old template with what a suspended Job may change taken from the new one."""
    spec, changed = dict(old.get("spec") or {}), new.get("spec") or {}
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        _take(spec, changed, name)
    affinity = dict(spec.get("affinity") or {})
    _take(affinity, changed.get("affinity") or {}, "nodeAffinity")
    spec["affinity"] = affinity
    if not affinity and "affinity" not in changed:
        del spec["affinity"]
    for name in ("containers", "initContainers"):
        before, after = spec.get(name) or [], changed.get(name) or []
        if [one.get("name") for one in before] == [one.get("name") for one in after]:
            for one, other in zip(before, after, strict=True):
                _take(one, other, "resources")
    metadata = dict(old.get("metadata") or {})
    for name in ("labels", "annotations"):
        _take(metadata, new.get("metadata") or {}, name)
    return {**{key: value for key, value in old.items() if key != "metadata"}, "spec": spec,
            **({"metadata": metadata} if metadata else {})}  # fmt: skip


def _take(target: _Object, source: _Object, name: str) -> None:
    target.pop(name, None)
    if name in source:
        target[name] = source[name]


def _pod(update: Update) -> Iterator[Cause]:
    old, new = (copy.deepcopy(_at(form, ("spec",)) or {}) for form in (update.old, update.new))
    for name in ("containers", "initContainers"):
        if len(old.get(name) or ()) != len(new.get(name) or ()):
            yield _forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
        for before, after in zip(old.get(name) or (), new.get(name) or (), strict=True):
            _take(after, before, "image")
            _take(after, before, "imagePullPolicy")  # a default, which the tag of the new image would change
    if not _only_adds_tolerations(old.get("tolerations") or (), new.get("tolerations") or ()):
        yield _forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    yield from _added_gates(old, new)
    yield from _deadline(old, new)
    gated = bool(old.get("schedulingGates"))
    for name in ("tolerations", "schedulingGates", "activeDeadlineSeconds", *(("nodeSelector",) if gated else ())):
        _take(new, old, name)
    if gated:  # what a gated pod may require of nodes may be narrowed; how much is not checked here
        affinities = [spec.pop("affinity", None) or {} for spec in (old, new)]
        old["affinity"], new["affinity"] = ({k: v for k, v in a.items() if k != "nodeAffinity"} for a in affinities)
    if old != new:
        yield _forbidden("spec", f"pod updates may not change fields other than {_POD_FIELDS}", old, new)


def _only_adds_tolerations(old: Any, new: Any) -> bool:
    def without_seconds(one: _Object) -> _Object:
        return {key: value for key, value in one.items() if key != "tolerationSeconds"}

    kept = [without_seconds(one) for one in new]
    return all(without_seconds(one) in kept for one in old if one.get("key") not in _ADDED_TOLERATIONS)


def _added_gates(old: _Object, new: _Object) -> Iterator[Cause]:
    known = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    for index, gate in enumerate(new.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield _forbidden(f"spec.schedulingGates[{index}].name", detail)


def _deadline(old: _Object, new: _Object) -> Iterator[Cause]:
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if before is None or before == after:
        return
    if after is None:
        message = "Invalid value: null: must not update from a positive integer to nil value"
    elif after > before:
        message = f"Invalid value: {after}: must be less than or equal to previous value"
    else:
        return
    yield Cause(INVALID, "spec.activeDeadlineSeconds", message)


def _claim(update: Update) -> Iterator[Cause]:
    """The spec of a claim is fixed, except that a bound claim may grow and a claim is bound to a volume once."""
    old, new = (copy.deepcopy(_at(form, ("spec",)) or {}) for form in (update.old, update.new))
    if not old.get("volumeName"):
        _take(old, new, "volumeName")
    if not old.get("storageClassName"):  # a default class may be set later
        _take(old, new, "storageClassName")
    asked = [_at(spec, ("resources", "requests", "storage")) for spec in (old, new)]
    if _at(update.written[0], ("status", "phase")) == "Bound":
        _take(new, old, "volumeAttributesClassName")
        if None not in asked:
            new["resources"]["requests"]["storage"] = asked[0]
    if old != new:
        detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
        yield _forbidden("spec", f"{detail} claims", old, new)
    has = _at(update.written[0], ("status", "capacity", "storage")) or 0
    if None not in asked and _is_less(asked[1], asked[0]) and not _is_less(has, asked[1]):
        yield _forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _is_less(one: Any, other: Any) -> bool:
    try:
        return quantities.parse(one) < quantities.parse(other)
    except quantities.QuantityError:
        return False  # reported as a fault of the object itself


def _priority_class(update: Update) -> Iterator[Cause]:
    if update.old.get("value", 0) != update.new.get("value", 0):
        yield _forbidden("value", "may not be changed in an update.")


_VOLUME_FIELDS = frozenset({
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
})  # fmt: skip


def _volume(update: Update) -> Iterator[Cause]:
    """The source of a volume is fixed, and its node affinity once it is set."""
    old, new = (_at(form, ("spec",)) or {} for form in (update.old, update.new))
    sources = [{key: value for key, value in spec.items() if key not in _VOLUME_FIELDS} for spec in (old, new)]
    if sources[0] != sources[1]:
        yield _forbidden(
            "spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation", *sources
        )
    if old.get("volumeMode", "Filesystem") != new.get("volumeMode", "Filesystem"):
        yield _immutable("volumeMode", new.get("volumeMode"), None, None)
    if old.get("nodeAffinity") is not None and old["nodeAffinity"] != new.get("nodeAffinity"):
        yield _immutable("nodeAffinity", _at(update.written[1], ("spec", "nodeAffinity")), None, None)


_RULES: Mapping[str, Callable[[Update], Iterator[Cause]]] = {
    "Pod": _pod,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "PriorityClass": _priority_class,
}
