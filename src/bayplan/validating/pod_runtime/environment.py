"""
The environment that containers start with: names of variables, and where their values come from.

Mirrors `ValidateEnv`, `ValidateEnvFrom` and `validateFileKeyRefVolumes` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from bayplan.model import quantities
from bayplan.validating import causes, go_text, metadata, names, resources
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.pod_runtime import local_paths

NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
NO_MAP = "must specify one of: `configMapRef` or `secretRef`"
VALUE_TOO = "may not be specified when `value` is not empty"
SEVERAL = "may not have more than one field specified at a time"
NOT_EMPTY_DIR = "referenced volume must be of type emptyDir"


def causes_of(container: Field, volumes: dict[str, Field]) -> list[Cause]:
    """What is wrong with the environment of a container in a pod that has these volumes, by name."""
    found: list[Cause] = []
    for variable in container["env"].items():
        found += causes.needed(variable["name"])
        found += _env_name(variable["name"])
        if variable["valueFrom"].present:
            found += _value_from(variable)
            found += _file_volume(variable.under("valueFrom", "fileKeyRef"), volumes)
    listed = container["envFrom"]
    for source in listed.items():
        found += _env_name(source["prefix"])
        found += _map_reference(source, listed.path)
    return found


def _env_name(field: Field) -> list[Cause]:
    return names.invalid(field.path, field.text(), names.env_name(field.text())) if field.text() else []


def _value_from(variable: Field) -> list[Cause]:
    source = variable["valueFrom"]
    written = [name for name in _SOURCES if source[name].present]
    found = [cause for name in written for cause in _SOURCES[name](source[name])]
    if not written:
        found.append(causes.invalid(source.path, '""', NO_SOURCE))
    elif variable["value"].text():
        found.append(causes.invalid(source.path, '""', VALUE_TOO))
    elif len(written) > 1:
        found.append(causes.invalid(source.path, '""', SEVERAL))
    return found


def _of_field(reference: Field) -> list[Cause]:
    return of_field(reference, OF_ENVIRONMENT)


def _of_resource(reference: Field) -> list[Cause]:
    return of_resource(reference, container_named=False)


def _of_key(reference: Field) -> list[Cause]:
    """A key of a ConfigMap or a Secret, which need not be there yet."""
    name, key = reference["name"], reference["key"]
    found = names.invalid(name.path, name.text(), names.dns_subdomain(name.text()))
    if not key.text():
        return [*found, causes.required(key.path)]
    return found + names.invalid(key.path, key.text(), names.config_key(key.text()))


def _of_file(reference: Field) -> list[Cause]:
    key, volume, path = reference["key"], reference["volumeName"], reference["path"]
    found = causes.needed(key, volume, path) + _env_name(key)
    if volume.text():
        found += names.invalid(volume.path, volume.text(), names.dns_label(volume.text()))
    return found + local_paths.without_backsteps(path)


_SOURCES: dict[str, Callable[[Field], list[Cause]]] = {
    "fieldRef": _of_field,
    "resourceFieldRef": _of_resource,
    "configMapKeyRef": _of_key,
    "secretKeyRef": _of_key,
    "fileKeyRef": _of_file,
}


def _file_volume(reference: Field, volumes: dict[str, Field]) -> list[Cause]:
    """A file with variables must be in a volume that the pod makes for itself."""
    if not reference.present:
        return []
    name = reference["volumeName"]
    shown = go_text.quoted(name.text())
    if name.text() not in volumes:
        return [causes.not_found(name.path, shown)]
    own = volumes[name.text()]["emptyDir"].present
    return [] if own else [causes.invalid(name.path, shown, NOT_EMPTY_DIR)]


def _map_reference(source: Field, listed_path: str) -> list[Cause]:
    """All keys of a ConfigMap or a Secret. The path of what is missing lacks the position; that is upstream's."""
    written = [source[name] for name in ("configMapRef", "secretRef") if source[name].present]
    found: list[Cause] = []
    for reference in written:
        name = reference["name"]
        found += causes.needed(name)
        if name.text():  # upstream takes it for the stem of a name, which may end with a dash
            found += names.invalid(name.path, name.text(), names.dns_subdomain(metadata.finished(name.text())))
    if not written:
        found.append(causes.invalid(listed_path, '""', NO_MAP))
    elif len(written) > 1:
        found.append(causes.invalid(listed_path, '""', SEVERAL))
    return found


# RF merged from validating.running.field_references: What containers are told about their own pod: its fields, and
# their requests and limits. Mirrors `validateObjectFieldSelector` and `validateContainerResourceFieldSelector` in
# pkg/apis/core/validation/validation.go, and `ConvertDownwardAPIFieldLabel` in pkg/apis/core/pods/helpers.go.

OF_ENVIRONMENT = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
OF_VOLUMES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
READABLE = frozenset({*OF_ENVIRONMENT, *OF_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
RENAMED = {"spec.host": "spec.nodeName"}  # from the time before v1
SUBSCRIPTED = ("metadata.annotations", "metadata.labels")
AMOUNTS = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
OF_CPU = ("1m", "1")
OF_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_NAMED = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}


def of_field(reference: Field, supported: tuple[str, ...]) -> list[Cause]:
    """What is wrong with a reference to a field of the pod, of which only some can be had."""
    version, path = reference["apiVersion"].text() or "v1", reference["fieldPath"]
    if not path.text():
        return [causes.required(path.path)]
    name, subscript = _split(path.text())
    if problem := _unconvertible(version, path.text(), name, subscript):
        return [causes.invalid(path.path, go_text.quoted(path.text()), f"error converting fieldPath: {problem}")]
    if subscript is not None:
        key = subscript.lower() if name == "metadata.annotations" else subscript
        return names.invalid(reference.path, key, names.label_key(key))
    known = RENAMED.get(name, name)
    return [] if known in supported else [causes.unsupported(path.path, go_text.quoted(known), supported)]


def of_resource(reference: Field, *, container_named: bool) -> list[Cause]:
    """What is wrong with a reference to a request or a limit; in a volume it names the container too."""
    container, resource = reference["containerName"], reference["resource"]
    if container_named and not container.text():
        found = [causes.required(container.path)]
    elif not resource.text():
        found = [causes.required(resource.path)]
    elif resource.text() not in AMOUNTS and not resource.text().startswith(HUGE_PAGES):
        found = [causes.unsupported(resource.path, go_text.quoted(resource.text()), AMOUNTS)]
    else:
        found = []
    return found + _divisor(resource.text(), reference["divisor"])


def _split(path: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` as its two parts; no second part if there is no subscript."""
    name, bracket, rest = path.partition("['")
    return (name, rest[:-2]) if name and bracket and path.endswith("']") else (path, None)


def _unconvertible(version: str, path: str, name: str, subscript: str | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        return "" if name in SUBSCRIPTED else f"field label does not support subscript: {path}"
    return "" if path in READABLE or path in RENAMED else f"field label not supported: {path}"


def _divisor(resource: str, divisor: Field) -> list[Cause]:
    if not resources.is_quantity(divisor.value) or not resources.exact(divisor):
        return []
    supported: tuple[str, ...]
    amount = resource.partition(".")[2]
    if resource in AMOUNTS and amount == "cpu":
        supported, named = OF_CPU, "cpu"
    elif resource in AMOUNTS or resource.startswith(HUGE_PAGES):
        supported, named = OF_BYTES, _NAMED.get(amount, "hugepages")
    else:
        return []
    # Other than the amounts of containers, a divisor is not rounded to thousandths.
    if go_text.quantity_text(divisor.value) in supported and resources.exact(divisor) == _unrounded(divisor):
        return []
    listed = "1m and 1" if supported is OF_CPU else ", ".join(supported)
    detail = f"only divisor's values {listed} are supported with the {named} resource"
    return [causes.invalid(divisor.path, go_text.quoted(resource), detail)]


def _unrounded(divisor: Field) -> Fraction:
    return quantities.parse(divisor.value) if isinstance(divisor.value, str | int | float) else Fraction()
