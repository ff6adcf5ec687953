"""
What `kubectl apply` makes of an object that exists: the manifest merged into it.

Fields of the manifest are set. Fields that the last applied manifest had and this one lacks are removed; what neither
has, such as defaults and what controllers wrote, stays. Lists of Kubernetes' own kinds whose items have a merge key are
merged item by item, as a strategic merge patch does; other lists are replaced, and so are all lists of custom kinds.
Works on plain values. Does not know which changes an API server rejects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
FieldTypes = Mapping[str, Mapping[str, str]]  # the type of each field by type: `[T]` is a list, `{T}` a map
_Object = dict[str, Any]

# The patchMergeKey of each list whose patchStrategy is merge, by type and field: k8s.io/api/*/types.go.
_MERGE_KEYS: Mapping[tuple[str, str], str] = {
    **{
        ("PodSpec", field): "name"
        for field in (
            "containers", "initContainers", "ephemeralContainers", "volumes", "imagePullSecrets", "schedulingGates",
            "resourceClaims",
        )
    },
    ("PodSpec", "hostAliases"): "ip",
    ("PodSpec", "topologySpreadConstraints"): "topologyKey",
    **{
        (container, field): key
        for container in ("Container", "EphemeralContainer")
        for field, key in (
            ("ports", "containerPort"), ("env", "name"), ("volumeMounts", "mountPath"), ("volumeDevices", "devicePath"),
        )
    },
    ("ObjectMeta", "ownerReferences"): "uid",
    ("ServiceSpec", "ports"): "port",
    ("CSINodeSpec", "drivers"): "name",
}  # fmt: skip
# Where two items share the merge key, these fields tell them apart, as for server-side apply (listMapKey).
_FURTHER_KEYS = {"containerPort": ("protocol", "TCP"), "port": ("protocol", "TCP"), "topologyKey": ("whenUnsatisfiable", "")}  # fmt: skip # noqa: E501
# Of these, only the fields that the manifest sets stay (patchStrategy retainKeys): they are unions.
_RETAINED = frozenset({("DeploymentSpec", "strategy"), ("PodSpec", "volumes"), ("PodSpec", "resourceClaims")})
_REPLACED = frozenset({("PodDisruptionBudgetSpec", "selector")})  # patchStrategy replace
# Lists of plain values whose patchStrategy is merge.
_UNITED = frozenset({("ObjectMeta", "finalizers")})


def applied(current: _Object, manifest: _Object, types: FieldTypes, kind: str) -> _Object:
    """
    The object after `kubectl apply` of the manifest.

    `types` are those of Kubernetes' own kinds; for a kind that it lacks, lists are replaced.
    """
    found: _Object = _Merge(types).maps(current, last_applied(current), manifest, kind)
    return found


def last_applied(current: _Object) -> _Object:
    """The manifest that was last applied, which the object carries in an annotation; empty if it has none."""
    metadata = current.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(LAST_APPLIED) if isinstance(annotations, dict) else None
    try:
        found = msgspec.json.decode(text) if isinstance(text, str) else None
    except (msgspec.MsgspecError, RecursionError):
        return {}  # kubectl refuses it; the object's own fields are the best that is known
    return found if isinstance(found, dict) else {}


class _Merge(msgspec.Struct):
    """Merges a manifest, given the current object and the last manifest, at each place in them."""

    types: FieldTypes

    def maps(self, current: _Object, last: _Object, manifest: _Object, type_name: str) -> _Object:
        fields = self.types.get(type_name, {})
        removed = {key for key in last if key not in manifest}
        found = {key: value for key, value in current.items() if key not in removed}
        for key, value in manifest.items():
            if value is None:
                found.pop(key, None)
            else:
                place, inner = (type_name, key), fields.get(key) or _item_type(type_name)
                found[key] = self._value(found.get(key), last.get(key), value, place, inner)
        return found

    def _value(self, current: Any, last: Any, value: Any, place: tuple[str, str], type_name: str) -> Any:
        if isinstance(value, dict):
            if not isinstance(current, dict) or place in _REPLACED:
                return _without_nulls(value)
            kept = {key: current[key] for key in current if key in value} if place in _RETAINED else current
            return self.maps(kept, last if isinstance(last, dict) else {}, value, type_name)
        if isinstance(value, list) and isinstance(current, list):
            last = last if isinstance(last, list) else []
            if place in _UNITED:
                return [*(item for item in current if item not in last or item in value),
                        *(item for item in value if item not in current)]  # fmt: skip
            if place in _MERGE_KEYS:
                return self._lists(current, last, value, place, type_name)
        return _without_nulls(value)

    def _lists(
        self, current: list[Any], last: list[Any], manifest: list[Any], place: tuple[str, str], type_name: str
    ) -> list[Any]:
        keyed = _keyed((current, last, manifest), _MERGE_KEYS[place])
        if keyed is None:
            return [_without_nulls(item) for item in manifest]
        now, before, after = keyed
        merged = {}
        for key, item in after.items():
            held = now.get(key, {})
            if place in _RETAINED:
                held = {name: held[name] for name in held if name in item}
            merged[key] = self.maps(held, before.get(key, {}), item, _item_type(type_name))
        others = [key for key in now if key not in after and key not in before]
        return [merged.get(key, now.get(key)) for key in _ordered(list(after), others, list(now))]


def _item_type(type_name: str) -> str:
    return type_name[1:-1] if type_name[:1] in ("[", "{") else ""


def _keyed(lists: Sequence[list[Any]], key: str) -> list[dict[Any, _Object]] | None:
    """The items of each list by their merge key; None if an item has none or shares it with another."""
    further, default = _FURTHER_KEYS.get(key, ("", ""))
    for fields in ((key,), (key, further))[: 2 if further else 1]:
        found = []
        for items in lists:
            if not all(isinstance(item, dict) and isinstance(item.get(key), str | int) for item in items):
                return None
            by_key = {tuple(str(item.get(field, default)) for field in fields): item for item in items}
            if len(by_key) == len(items):
                found.append(by_key)
        if len(found) == len(lists):
            return found
    return None


def _ordered(named: list[Any], others: list[Any], before: list[Any]) -> list[Any]:
    """
    The keys in the manifest's order; another item stays before the ones that it preceded.

    As mergeSortedSlice in apimachinery/pkg/util/strategicpatch/patch.go.
    """
    position = {key: index for index, key in enumerate(before)}
    found: list[Any] = []
    waiting = others[::-1]
    for key in named:
        while waiting and key in position and position[waiting[-1]] < position[key]:
            found.append(waiting.pop())
        found.append(key)
    return found + waiting[::-1]


def _without_nulls(value: Any) -> Any:
    """The value as a server stores it when it is set for the first time."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
