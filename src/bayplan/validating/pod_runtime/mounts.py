"""
Where a container sees the pod's volumes: as folders or as devices.

Mirrors `ValidateVolumeMounts` and `ValidateVolumeDevices` in pkg/apis/core/validation/validation.go, whose paths lack
the position of a mount here and there.
"""

from __future__ import annotations

from bayplan.validating import causes, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.pod_runtime import local_paths

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
BOTH_WAYS = "Bidirectional mount propagation is available only to privileged containers"
RECURSIVE = ("Disabled", "Enabled", "IfPossible")
NOT_READ_ONLY = "may only be specified when readOnly is true"
PROPAGATED = "may only be specified when mountPropagation is None or not specified"
BOTH_SUB_PATHS = "subPathExpr and subPath are mutually exclusive"
NOT_UNIQUE = "must be unique"
NO_CLAIM = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
DEVICE_BACKSTEP = "can not contain backsteps ('..')"


def causes_of(container: Field, volumes: dict[str, Field]) -> list[Cause]:
    """What is wrong with the mounts and devices of a container; the volumes are those that are sound, by name."""
    mounts, devices = container["volumeMounts"], container["volumeDevices"]
    found: list[Cause] = []
    if mounts.present:
        found += _mounts(mounts, _by_name(devices, "devicePath"), volumes)
        found += _ways(mounts, privileged=container["securityContext"]["privileged"].flag())
    if devices.present:
        found += _devices(devices, _by_name(mounts, "mountPath"), volumes)
    return found


def _by_name(listed: Field, path: str) -> dict[str, str]:
    return {item["name"].text(): item[path].text() for item in listed.items()}


def _mounts(mounts: Field, devices: dict[str, str], volumes: dict[str, Field]) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for mount in mounts.items():
        name, path = mount["name"], mount["mountPath"]
        found += causes.needed(name, path)
        if name.text() not in volumes:
            found.append(causes.not_found(name.path, go_text.quoted(name.text())))
        if path.text() in seen:
            found.append(_invalid(path, NOT_UNIQUE))
        seen.add(path.text())
        if name.text() in devices:
            found.append(_invalid(name, "must not already exist in volumeDevices"))
        if path.text() in devices.values():
            found.append(_invalid(path, "must not already exist as a path in volumeDevices"))
        found += _sub_paths(mount, mounts)
    return found


def _sub_paths(mount: Field, mounts: Field) -> list[Cause]:
    plain, expanded = mount["subPath"], mount["subPathExpr"]
    found = local_paths.descending(plain, mounts["subPath"].path)
    if plain.text() and expanded.text():
        found.append(_invalid(expanded, BOTH_SUB_PATHS))
    return found + local_paths.descending(expanded, mounts["subPathExpr"].path)


def _ways(mounts: Field, *, privileged: bool) -> list[Cause]:
    """How mounts reach from the node into the container and back, and whether read-only means everything below too."""
    found: list[Cause] = []
    for mount in mounts.items():
        propagation = mount.at("mountPropagation", mounts["mountPropagation"].path)
        recursive = mount.at("recursiveReadOnly", mounts["recursiveReadOnly"].path)
        found += causes.one_of(propagation, PROPAGATIONS)
        if propagation.text() == "Bidirectional" and not privileged:
            found.append(causes.forbidden(propagation.path, BOTH_WAYS))
        found += causes.one_of(recursive, RECURSIVE)
        if recursive.text() not in ("Enabled", "IfPossible"):
            continue
        if not mount["readOnly"].flag():
            found.append(causes.forbidden(recursive.path, NOT_READ_ONLY))
        if propagation.present and propagation.text() != "None":
            found.append(causes.forbidden(recursive.path, PROPAGATED))
    return found


def _devices(devices: Field, mounts: dict[str, str], volumes: dict[str, Field]) -> list[Cause]:
    found: list[Cause] = []
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for device in devices.items():
        name, path = device["name"], device["devicePath"]
        found += causes.needed(name, path)
        if name.text() in seen_names:
            found.append(_invalid(name, NOT_UNIQUE))
        found += _claimed(name, volumes)
        if path.text() in seen_paths:
            found.append(_invalid(path, NOT_UNIQUE))
        if local_paths.has_backstep(path.text()):
            found.append(_invalid(path, DEVICE_BACKSTEP))
        else:
            seen_paths.add(path.text())
        if name.text() in mounts:
            found.append(_invalid(name, "must not already exist in volumeMounts"))
        if path.text() in mounts.values():
            found.append(_invalid(path, "must not already exist as a path in volumeMounts"))
        if name.text():
            seen_names.add(name.text())
    return found


def _claimed(name: Field, volumes: dict[str, Field]) -> list[Cause]:
    """Whether the name is of a volume that comes from a claim, the only ones that can be devices."""
    volume = volumes.get(name.text())
    if volume is None:
        return [causes.not_found(name.path, go_text.quoted(name.text()))]
    claimed = volume["persistentVolumeClaim"].present or volume["ephemeral"].present
    return [] if claimed else [_invalid(name, NO_CLAIM)]


def _invalid(field: Field, detail: str) -> Cause:
    return causes.invalid(field.path, go_text.quoted(field.text()), detail)
