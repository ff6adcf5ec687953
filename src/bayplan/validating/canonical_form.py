"""
Objects as an API server stores them, so that two ways to write the same object compare equal.

Defaults are added, quantities are numbers, empty lists and maps are absent. Covers what decides whether a pod template
or an immutable field differs: pod templates, selectors, claims. Does not validate anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bayplan.model import quantities

FieldTypes = Mapping[str, Mapping[str, str]]
_Object = dict[str, Any]

# Structs that other structs hold by value: written empty they are the same as absent.
_BY_VALUE = frozenset({"ResourceRequirements", "VolumeResourceRequirements", "ObjectMeta", "PodTemplateSpec"})
# Fields that are pointers in Go, so that their zero value is not the same as absent.
_POINTERS = frozenset({"storageClassName", "volumeAttributesClassName", "runtimeClassName"})
# Numbers and booleans that are no pointers in Go, so that zero and false are the same as absent.
_ZERO_IS_ABSENT = frozenset({
    "hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly", "hostPort", "initialDelaySeconds",
    "minReadySeconds",
})  # fmt: skip
_MODE = {"defaultMode": 0o644}
# What the server fills in: pkg/apis/core/v1/defaults.go and zz_generated.defaults.go.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    "Container": {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    "ContainerPort": {"protocol": "TCP"},
    "Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "GRPCAction": {"service": ""},
    "ObjectFieldSelector": {"apiVersion": "v1"},
    "ResourceFieldSelector": {"divisor": "0"},
    "SecretVolumeSource": _MODE,
    "ConfigMapVolumeSource": _MODE,
    "DownwardAPIVolumeSource": _MODE,
    "ProjectedVolumeSource": _MODE,
    "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "HostPathVolumeSource": {"type": ""},
    "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
}


def canonical(value: Any, type_name: str, types: FieldTypes) -> Any:
    """The value of this type in a form in which equal meaning is equality; None if it means nothing at all."""
    if type_name.startswith("["):
        items, item_type = value if isinstance(value, list) else [], type_name[1:-1]
        empty: _Object | None = {} if item_type in types else None  # what null stands for
        return [canonical(empty if item is None else item, item_type, types) for item in items] or None
    if type_name.startswith("{"):
        pairs = value.items() if isinstance(value, dict) else ()
        return {key: canonical(item, type_name[1:-1], types) for key, item in pairs if item is not None} or None
    if type_name == "Quantity":
        return _amount(value)
    if not isinstance(value, dict) or type_name not in types:
        return value
    return _record(value, type_name, types) or (None if type_name in _BY_VALUE else {})


def _record(value: _Object, type_name: str, types: FieldTypes) -> _Object:
    written = {**_DEFAULTS.get(type_name, {}), **{key: item for key, item in value.items() if item is not None}}
    fields = types[type_name]
    found = {}
    for key, item in _ADJUST.get(type_name, dict)(written).items():
        form = canonical(item, fields.get(key, ""), types)
        is_zero = (form == "" and key not in _POINTERS) or (not form and key in _ZERO_IS_ABSENT)
        if form is not None and not is_zero:
            found[key] = form
    return found


def _amount(value: Any) -> Any:
    try:
        return str(quantities.parse(value))
    except quantities.QuantityError:
        return value


def _pod_spec(spec: _Object) -> _Object:
    """`serviceAccount` is the former name of `serviceAccountName`, which wins."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    kept = {key: item for key, item in spec.items() if key != "serviceAccount"}
    return {**kept, "serviceAccountName": account} if account else kept


def _container(container: _Object) -> _Object:
    image = container.get("image")
    return {"imagePullPolicy": _pull_policy(image if isinstance(image, str) else ""), **container}


def _pull_policy(image: str) -> str:
    """Always for the tag `latest`, which is also that of an image with neither tag nor digest."""
    name, _, digest = image.rpartition("/")[2].partition("@")
    tag = name.partition(":")[2] or ("" if digest else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _volume(volume: _Object) -> _Object:
    """A volume without a source is an empty directory."""
    return volume if len(volume) > 1 else {**volume, "emptyDir": {}}


def _metadata(metadata: _Object) -> _Object:
    """Servers write a null time into the metadata of templates."""
    return {key: item for key, item in metadata.items() if key != "creationTimestamp"}


def _claim(claim: _Object) -> _Object:
    """Servers complete the claim templates of a StatefulSet with a version, a kind and a status."""
    return {key: item for key, item in claim.items() if key not in ("apiVersion", "kind", "status")}


_ADJUST: Mapping[str, Callable[[_Object], _Object]] = {
    "PodSpec": _pod_spec,
    "Container": _container,
    "Volume": _volume,
    "ObjectMeta": _metadata,
    "PersistentVolumeClaim": _claim,
}
