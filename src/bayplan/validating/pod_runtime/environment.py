"""
The environment of containers, and the fields of their own pod that they can read through the downward API.

Mirrors `ValidateEnv`, `ValidateEnvFrom`, `validateFileKeyRefVolumes`, `validateObjectFieldSelector` and
`validateContainerResourceFieldSelector` in pkg/apis/core/validation/validation.go, and `ConvertDownwardAPIFieldLabel`
in pkg/apis/core/pods/helpers.go.
"""

from __future__ import annotations

from fractions import Fraction

from bayplan.model import quantities
from bayplan.validating import go_text, names, resources
from bayplan.validating.fields import Cause, Field, missing_texts
from bayplan.validating.pod_runtime import mounts

VALUE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
ENVIRONMENT_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
READABLE_FIELDS = frozenset({
    *ENVIRONMENT_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase",
})  # fmt: skip
RENAMED_FIELDS = {"spec.host": "spec.nodeName"}  # the name before v1
SUBSCRIPTED_FIELDS = ("metadata.annotations", "metadata.labels")
AMOUNTS = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
CPU_DIVISORS = ("1m", "1")
BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_RESOURCE_TEXTS = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}

NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
NO_MAP = "must specify one of: `configMapRef` or `secretRef`"
VALUE_TOO = "may not be specified when `value` is not empty"
SEVERAL = "may not have more than one field specified at a time"
NOT_EMPTY_DIR = "referenced volume must be of type emptyDir"


def validate_environment(container: Field, volumes: dict[str, Field]) -> list[Cause]:
    """The causes for rejecting the environment of a container in a pod with these volumes, by name."""
    found: list[Cause] = []
    for variable in container["env"].items():
        found += missing_texts(variable["name"])
        found += variable["name"].check_text(names.env_name, optional=True)
        if variable["valueFrom"].present:
            found += _validate_value_source(variable, volumes)
    sources = container["envFrom"]
    for source in sources.items():
        found += source["prefix"].check_text(names.env_name, optional=True)
        found += _validate_map_source(source, sources.path)
    return found


def _validate_value_source(variable: Field, volumes: dict[str, Field]) -> list[Cause]:
    source = variable["valueFrom"]
    written = [name for name in VALUE_SOURCES if source[name].present]
    found: list[Cause] = []
    for name in written:
        match name:
            case "fieldRef":
                found += validate_field_reference(source[name], ENVIRONMENT_FIELDS)
            case "resourceFieldRef":
                found += validate_resource_reference(source[name], needs_container=False)
            case "fileKeyRef":
                found += _validate_file_reference(source[name])
            case _:
                key = source[name]["key"]
                found += source[name]["name"].check_text(names.dns_subdomain)
                found += key.check_text(names.config_key) if key.text() else [key.required()]
    if not written:
        found.append(source.invalid(NO_SOURCE, '""'))
    elif variable["value"].text():
        found.append(source.invalid(VALUE_TOO, '""'))
    elif len(written) > 1:
        found.append(source.invalid(SEVERAL, '""'))
    volume = source["fileKeyRef"]["volumeName"]
    if "fileKeyRef" in written:
        if volume.text() not in volumes:
            found.append(volume.not_found())
        elif not volumes[volume.text()]["emptyDir"].present:
            found.append(volume.invalid(NOT_EMPTY_DIR))
    return found


def _validate_file_reference(reference: Field) -> list[Cause]:
    key, volume, path = reference["key"], reference["volumeName"], reference["path"]
    found = missing_texts(key, volume, path) + key.check_text(names.env_name, optional=True)
    return found + volume.check_text(names.dns_label, optional=True) + mounts.validate_no_backsteps(path)


def _validate_map_source(source: Field, list_path: str) -> list[Cause]:
    """All keys of a ConfigMap or a Secret. Upstream's path of a missing source lacks the position."""
    written = [source[name]["name"] for name in ("configMapRef", "secretRef") if source[name].present]
    found: list[Cause] = []
    for name in written:
        found += missing_texts(name)
        # Upstream validates it as the prefix of a generated name, which may end with a dash.
        details = names.dns_subdomain(names.mask_trailing_dash(name.text())) if name.text() else []
        found += [name.invalid(detail) for detail in details]
    if len(written) != 1:
        found.append(Field(list_path).invalid(SEVERAL if written else NO_MAP))
    return found


def validate_field_reference(reference: Field, supported: tuple[str, ...]) -> list[Cause]:
    """The causes for rejecting a reference to a field of the pod; only some fields are supported."""
    version, path = reference["apiVersion"].text() or "v1", reference["fieldPath"]
    if not path.text():
        return [path.required()]
    name, bracket, rest = path.text().partition("['")
    subscripted = bool(name and bracket and path.text().endswith("']"))
    if not subscripted:
        name = path.text()
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif subscripted and name not in SUBSCRIPTED_FIELDS:
        problem = f"field label does not support subscript: {name}{bracket}{rest}"
    elif not subscripted and name not in READABLE_FIELDS and name not in RENAMED_FIELDS:
        problem = f"field label not supported: {name}"
    if problem:
        return [path.invalid(f"error converting fieldPath: {problem}")]
    if subscripted:
        key = rest[:-2].lower() if name == "metadata.annotations" else rest[:-2]
        return Field(reference.path, key).check_text(names.label_key)
    known = RENAMED_FIELDS.get(name, name)
    return [] if known in supported else [path.unsupported(supported, go_text.quoted(known))]


def validate_resource_reference(reference: Field, *, needs_container: bool) -> list[Cause]:
    """The causes for rejecting a reference to a request or a limit; in a volume it names the container too."""
    container, resource = reference["containerName"], reference["resource"]
    found: list[Cause] = []
    if needs_container and not container.text():
        found.append(container.required())
    elif not resource.text():
        found.append(resource.required())
    elif resource.text() not in AMOUNTS and not resource.text().startswith(HUGE_PAGES):
        found.append(resource.unsupported(AMOUNTS, go_text.quoted(resource.text())))
    return found + _validate_divisor(resource.text(), reference["divisor"])


def _validate_divisor(resource: str, divisor: Field) -> list[Cause]:
    if not resources.is_quantity(divisor.value) or not go_text.rounded_quantity(divisor.value):
        return []
    supported: tuple[str, ...]
    amount = resource.partition(".")[2]
    if resource in AMOUNTS and amount == "cpu":
        supported, named = CPU_DIVISORS, "cpu"
    elif resource in AMOUNTS or resource.startswith(HUGE_PAGES):
        supported, named = BYTE_DIVISORS, _RESOURCE_TEXTS.get(amount, "hugepages")
    else:
        return []
    # Unlike the amounts of containers, a divisor is not rounded to thousandths.
    exact = quantities.parse(divisor.value) if isinstance(divisor.value, str | int | float) else Fraction()
    if go_text.quantity_text(divisor.value) in supported and go_text.rounded_quantity(divisor.value) == exact:
        return []
    listed = "1m and 1" if supported is CPU_DIVISORS else ", ".join(supported)
    detail = f"only divisor's values {listed} are supported with the {named} resource"
    return [divisor.invalid(detail, go_text.quoted(resource))]
