"""
The environment that containers start with: names of variables, and where their values come from.

Mirrors `ValidateEnv`, `ValidateEnvFrom` and `validateFileKeyRefVolumes` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.validating import causes, choices, go_text, metadata, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.running import field_references, local_paths

NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
NO_MAP = "must specify one of: `configMapRef` or `secretRef`"
VALUE_TOO = "may not be specified when `value` is not empty"
SEVERAL = "may not have more than one field specified at a time"
NOT_EMPTY_DIR = "referenced volume must be of type emptyDir"


def causes_of(container: Field, volumes: dict[str, Field]) -> list[Cause]:
    """What is wrong with the environment of a container in a pod that has these volumes, by name."""
    found: list[Cause] = []
    for variable in container["env"].items():
        found += choices.needed(variable["name"])
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
    return field_references.of_field(reference, field_references.OF_ENVIRONMENT)


def _of_resource(reference: Field) -> list[Cause]:
    return field_references.of_resource(reference, container_named=False)


def _of_key(reference: Field) -> list[Cause]:
    """A key of a ConfigMap or a Secret, which need not be there yet."""
    name, key = reference["name"], reference["key"]
    found = names.invalid(name.path, name.text(), names.dns_subdomain(name.text()))
    if not key.text():
        return [*found, causes.required(key.path)]
    return found + names.invalid(key.path, key.text(), names.config_key(key.text()))


def _of_file(reference: Field) -> list[Cause]:
    key, volume, path = reference["key"], reference["volumeName"], reference["path"]
    found = choices.needed(key, volume, path) + _env_name(key)
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
        found += choices.needed(name)
        if name.text():  # upstream takes it for the stem of a name, which may end with a dash
            found += names.invalid(name.path, name.text(), names.dns_subdomain(metadata.finished(name.text())))
    if not written:
        found.append(causes.invalid(listed_path, '""', NO_MAP))
    elif len(written) > 1:
        found.append(causes.invalid(listed_path, '""', SEVERAL))
    return found
