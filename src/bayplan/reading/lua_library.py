"""
The functions of Karmada's `kube` library for customizations in Lua, on plain values.

Mirrors pkg/resourceinterpreter/customized/declarative/luavm/kube.go and pkg/util/helper/pod.go. Knows nothing of Lua.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from bayplan.controllers import interpretation
from bayplan.controllers.interpretation import NotInterpretedError
from bayplan.model import quantities

_NODE_AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_SECRETS_OF_VOLUMES = (
    ("secret", "secretName"), ("azureFile", "secretName"),
    ("cephfs", "secretRef", "name"), ("cinder", "secretRef", "name"),
    ("csi", "nodePublishSecretRef", "name"), ("flexVolume", "secretRef", "name"), ("iscsi", "secretRef", "name"),
    ("rbd", "secretRef", "name"), ("scaleIO", "secretRef", "name"), ("storageos", "secretRef", "name"),
)  # fmt: skip


def resource_add(*amounts: Any) -> str:
    """The sum of quantities, in the form of the first that is not 0; nothing counts as 0."""
    total, form = Fraction(), ""
    for amount in amounts:
        if amount is not None:
            form = form if total else _form(_text(amount))
            total += _quantity(amount)
    if form == "e":
        power = next((p for p in range(18, -12, -3) if total and not total % Fraction(10) ** p), 0)
        return f"{int(total / Fraction(10) ** power)}" + (f"e{power}" if power else "")
    return quantities.canonical(total, binary=form == "i")


def get_resource_quantity(*amounts: Any) -> float:
    """The quantity as a number."""
    if len(amounts) != 1:
        raise NotInterpretedError("getResourceQuantity only accepts one argument")
    (amount,) = amounts
    number = float(Fraction() if amount is None else _quantity(amount))
    if number < 0:
        raise NotInterpretedError(f"int approximation unexpectedly returned a negative value: {amount}")
    return number


def accurate_pod_requirements(template: Any = None) -> dict[str, Any] | None:
    """What one pod of the template requires: of resources and of nodes."""
    found = interpretation.template_requirements(template, "the pod template")
    if found is None:
        return None
    spec = interpretation.without_empty(template).get("spec") or {}
    claim = {"hardNodeAffinity": _get(spec, *_NODE_AFFINITY)}
    claim |= {name: spec.get(name) for name in ("nodeSelector", "tolerations")}
    claim = {name: value for name, value in claim.items() if value is not None}
    return {**msgspec.to_builtins(found), **({"nodeClaim": claim} if claim else {})}


def get_pod_dependencies(template: Any = None, namespace: Any = None) -> list[dict[str, str]]:
    """The objects that a pod of the template refers to; Karmada's order is random, here it is that of the names."""
    spec = _get(template, "spec") or {}
    where = "default" if namespace is None else _text(namespace)
    account = spec.get("serviceAccountName") or ""
    names: list[tuple[str, Iterator[Any]]] = [
        ("ConfigMap", _config_maps(spec)),
        ("Secret", _secrets(spec)),
        ("ServiceAccount", iter([] if account == "default" else [account])),
        ("PersistentVolumeClaim", (_get(v, "persistentVolumeClaim", "claimName") for v in _listed(spec, "volumes"))),
    ]
    return [
        {"apiVersion": "v1", "kind": kind, "namespace": where, "name": name}
        for kind, found in names
        for name in sorted({one for one in found if one})
    ]


def _config_maps(spec: Mapping[str, Any]) -> Iterator[Any]:
    yield from _of_containers(spec, "configMapRef", "configMapKeyRef")
    for volume in _listed(spec, "volumes"):
        yield _get(volume, "configMap", "name")
        yield from (_get(source, "configMap", "name") for source in _listed(_get(volume, "projected"), "sources"))


def _secrets(spec: Mapping[str, Any]) -> Iterator[Any]:
    yield from (_get(one, "name") for one in _listed(spec, "imagePullSecrets"))
    yield from _of_containers(spec, "secretRef", "secretKeyRef")
    for volume in _listed(spec, "volumes"):
        yield from (_get(volume, *path) for path in _SECRETS_OF_VOLUMES)
        yield from (_get(source, "secret", "name") for source in _listed(_get(volume, "projected"), "sources"))


def _of_containers(spec: Mapping[str, Any], source: str, key: str) -> Iterator[Any]:
    for listed in ("initContainers", "containers", "ephemeralContainers"):
        for container in _listed(spec, listed):
            yield from (_get(one, source, "name") for one in _listed(container, "envFrom"))
            yield from (_get(one, "valueFrom", key, "name") for one in _listed(container, "env"))


def _get(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _listed(value: Any, name: str) -> list[Any]:
    found = _get(value, name)
    return found if isinstance(found, list) else []


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise NotInterpretedError(f"string expected, got {type(value).__name__}")
    return value


def _quantity(amount: Any) -> Fraction:
    try:
        return quantities.parse(_text(amount))
    except quantities.QuantityError as error:
        raise NotInterpretedError(str(error)) from None


def _form(text: str) -> str:
    """How a quantity is written: `i` in binary form, `e` with an exponent, else empty."""
    if text.endswith("i"):
        return "i"
    return "e" if text[-1:].isdecimal() and "e" in text.lower() else ""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "resourceAdd": resource_add,
    "accuratePodRequirements": accurate_pod_requirements,
    "getPodDependencies": get_pod_dependencies,
    "getResourceQuantity": get_resource_quantity,
}
