"""
Volume mounts and devices of a container, and the rules on file paths.

Mirrors `ValidateVolumeMounts`, `ValidateVolumeDevices` and the `validate…Path` functions in
pkg/apis/core/validation/validation.go. Some of upstream's paths lack the position of a mount.
"""

from __future__ import annotations

from bayplan.validating.fields import Cause, Field, missing_texts

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_MODES = ("Disabled", "Enabled", "IfPossible")

BACKSTEP = "must not contain '..'"
ABSOLUTE = "must be a relative path"
NOT_ABSOLUTE = "must be an absolute path"
RESERVED = "must not start with '..'"
BIDIRECTIONAL = "Bidirectional mount propagation is available only to privileged containers"
NOT_READ_ONLY = "may only be specified when readOnly is true"
PROPAGATED = "may only be specified when mountPropagation is None or not specified"
BOTH_SUB_PATHS = "subPathExpr and subPath are mutually exclusive"
NOT_UNIQUE = "must be unique"
NO_CLAIM = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
DEVICE_BACKSTEP = "can not contain backsteps ('..')"


def validate_mounts(container: Field, volumes: dict[str, Field]) -> list[Cause]:
    """The causes for rejecting the mounts and devices of a container; `volumes` are the valid ones by name."""
    mounts, devices = container["volumeMounts"], container["volumeDevices"]
    found: list[Cause] = []
    if mounts.present:
        device_paths = {item["name"].text(): item["devicePath"].text() for item in devices.items()}
        found += _validate_mounts(mounts, device_paths, volumes)
        found += _validate_propagation(mounts, privileged=container["securityContext"]["privileged"].is_true())
    if devices.present:
        mount_paths = {item["name"].text(): item["mountPath"].text() for item in mounts.items()}
        found += _validate_devices(devices, mount_paths, volumes)
    return found


def _validate_mounts(mounts: Field, device_paths: dict[str, str], volumes: dict[str, Field]) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for mount in mounts.items():
        name, path, expanded = mount["name"], mount["mountPath"], mount["subPathExpr"]
        found += missing_texts(name, path)
        if name.text() not in volumes:
            found.append(name.not_found())
        if path.text() in seen:
            found.append(path.invalid(NOT_UNIQUE))
        seen.add(path.text())
        if name.text() in device_paths:
            found.append(name.invalid("must not already exist in volumeDevices"))
        if path.text() in device_paths.values():
            found.append(path.invalid("must not already exist as a path in volumeDevices"))
        found += validate_relative_path(mount.at("subPath", mounts["subPath"].path))
        if mount["subPath"].text() and expanded.text():
            found.append(expanded.invalid(BOTH_SUB_PATHS))
        found += validate_relative_path(mount.at("subPathExpr", mounts["subPathExpr"].path))
    return found


def _validate_propagation(mounts: Field, *, privileged: bool) -> list[Cause]:
    """How mounts propagate between node and container, and whether read-only includes everything below a mount."""
    found: list[Cause] = []
    for mount in mounts.items():
        propagation = mount.at("mountPropagation", mounts["mountPropagation"].path)
        recursive = mount.at("recursiveReadOnly", mounts["recursiveReadOnly"].path)
        found += propagation.check_enum(PROPAGATIONS, empty_is_default=False)
        if propagation.text() == "Bidirectional" and not privileged:
            found.append(propagation.forbidden(BIDIRECTIONAL))
        found += recursive.check_enum(RECURSIVE_MODES, empty_is_default=False)
        if recursive.text() not in ("Enabled", "IfPossible"):
            continue
        if not mount["readOnly"].is_true():
            found.append(recursive.forbidden(NOT_READ_ONLY))
        if propagation.present and propagation.text() != "None":
            found.append(recursive.forbidden(PROPAGATED))
    return found


def _validate_devices(devices: Field, mount_paths: dict[str, str], volumes: dict[str, Field]) -> list[Cause]:
    found: list[Cause] = []
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for device in devices.items():
        name, path = device["name"], device["devicePath"]
        found += missing_texts(name, path)
        if name.text() in seen_names:
            found.append(name.invalid(NOT_UNIQUE))
        found += _validate_claimed(name, volumes)
        if path.text() in seen_paths:
            found.append(path.invalid(NOT_UNIQUE))
        if has_backstep(path):
            found.append(path.invalid(DEVICE_BACKSTEP))
        else:
            seen_paths.add(path.text())
        if name.text() in mount_paths:
            found.append(name.invalid("must not already exist in volumeMounts"))
        if path.text() in mount_paths.values():
            found.append(path.invalid("must not already exist as a path in volumeMounts"))
        if name.text():
            seen_names.add(name.text())
    return found


def _validate_claimed(name: Field, volumes: dict[str, Field]) -> list[Cause]:
    """Only volumes of a claim can be devices."""
    volume = volumes.get(name.text())
    if volume is None:
        return [name.not_found()]
    claimed = volume["persistentVolumeClaim"].present or volume["ephemeral"].present
    return [] if claimed else [name.invalid(NO_CLAIM)]


def has_backstep(path: Field) -> bool:
    """Whether one part of the path is `..`."""
    return ".." in path.text().split("/")


def validate_no_backsteps(path: Field) -> list[Cause]:
    """Whether no part of the path is `..`."""
    return [path.invalid(BACKSTEP)] if has_backstep(path) else []


def validate_relative_path(path: Field) -> list[Cause]:
    """Whether the path is relative and remains below its start."""
    return ([path.invalid(ABSOLUTE)] if path.text().startswith("/") else []) + validate_no_backsteps(path)


def validate_unreserved_path(path: Field) -> list[Cause]:
    """Whether the path is relative, remains below its start and is not one of the kubelet's own names."""
    reserved = path.text().startswith("..") and not path.text().startswith("../")
    return validate_relative_path(path) + ([path.invalid(RESERVED)] if reserved else [])


def validate_absolute_path(path: Field) -> list[Cause]:
    """Whether the path is absolute."""
    return [] if path.text().startswith("/") else [path.invalid(NOT_ABSOLUTE)]
