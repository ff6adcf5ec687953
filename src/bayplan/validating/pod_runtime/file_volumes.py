"""
Volumes with files of the node, an image, a ConfigMap, a Secret, a driver or the pod itself.

Mirrors the `validate…VolumeSource` functions, `validateProjectionSources` and `validateDownwardAPIVolumeFile` in
pkg/apis/core/validation/validation.go. API servers with default feature gates drop cluster trust bundles and pod
certificates, so they are not validated.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.validating import go_text, names, resources
from bayplan.validating.fields import Cause, Field, missing_texts
from bayplan.validating.pod_runtime import environment, mounts
from bayplan.validating.pod_runtime.containers import PULL_POLICIES

HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
MAX_DRIVER_BYTES = 63
PROJECTED_KINDS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
MIN_TOKEN_SECONDS, MAX_TOKEN_SECONDS, DEFAULT_TOKEN_SECONDS = 600, 2**32, 3600

BAD_SIZE = "SizeLimit field must be a valid resource quantity"
NO_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
NO_REFERENCE = "one of fieldRef and resourceFieldRef is required"
BOTH_REFERENCES = "fieldRef and resourceFieldRef can not be specified simultaneously"
SAME_PATH = "conflicting duplicate paths"
SEVERAL_KINDS = "may not specify more than 1 volume type per source"
LIFETIME_TOO_SHORT = "may not specify a duration less than 10 minutes"
LIFETIME_TOO_LONG = "may not specify a duration larger than 2^32 seconds"


def validate_empty_dir(source: Field) -> list[Cause]:
    """An emptyDir."""
    size = source["sizeLimit"]
    negative = resources.is_quantity(size.value) and go_text.rounded_quantity(size.value) < 0
    return [size.forbidden(BAD_SIZE)] if negative else []


def validate_host_path(source: Field) -> list[Cause]:
    """A directory, a file or a device of the node."""
    path = source["path"]
    if not path.text():
        return [path.required()]
    return mounts.validate_no_backsteps(path) + source["type"].check_enum(HOST_PATH_TYPES, empty_is_default=False)


def validate_git_repo(source: Field) -> list[Cause]:
    """A checked out repository."""
    return missing_texts(source["repository"]) + mounts.validate_relative_path(source["directory"])


def validate_secret(source: Field) -> list[Cause]:
    """The files of a Secret."""
    found = missing_texts(source["secretName"]) + _validate_mode(source["defaultMode"])
    return found + _validate_files(source["items"])


def validate_config_map(source: Field) -> list[Cause]:
    """The files of a ConfigMap."""
    return missing_texts(source["name"]) + _validate_mode(source["defaultMode"]) + _validate_files(source["items"])


def _validate_files(items: Field) -> list[Cause]:
    """Keys of a map that become files."""
    found: list[Cause] = []
    for item in items.items():
        found += missing_texts(item["key"], item["path"])
        found += mounts.validate_unreserved_path(item["path"]) + _validate_mode(item["mode"])
    return found


def _validate_mode(mode: Field) -> list[Cause]:
    return [] if 0 <= mode.number() <= 0o777 else [mode.invalid_number(NO_MODE)]


def validate_nfs(source: Field) -> list[Cause]:
    """A directory of an NFS server."""
    return missing_texts(source["server"], source["path"]) + mounts.validate_absolute_path(source["path"])


def validate_csi(source: Field) -> list[Cause]:
    """A volume of a CSI driver; upstream reports the name of its secret at the wrong path."""
    driver, secret = source["driver"], source["nodePublishSecretRef"]
    found = missing_texts(driver)
    if driver.text():
        too_long = len(driver.text().encode()) > MAX_DRIVER_BYTES
        found += [driver.too_long(MAX_DRIVER_BYTES)] if too_long else []
        found += [driver.invalid(detail) for detail in names.dns_subdomain(driver.text().lower())]
    if secret.present:
        found += missing_texts(secret["name"])
        found += Field(source["name"].path, secret["name"].text()).check_text(names.dns_subdomain, optional=True)
    return found


def validate_image(source: Field) -> list[Cause]:
    """The files of an image. Whether its reference is required depends on where it is."""
    return source["pullPolicy"].check_enum(PULL_POLICIES)


def validate_downward_api(source: Field) -> list[Cause]:
    """Files with fields of the pod."""
    return _validate_mode(source["defaultMode"]) + _validate_downward_files(source)


def validate_projected(source: Field) -> list[Cause]:
    """A volume with files from several sources."""
    found = _validate_mode(source["defaultMode"])
    used_paths: set[str] = set()
    for part in source["sources"].items():
        for kind in ("secret", "configMap"):
            if part[kind].present:
                found += missing_texts(part[kind]["name"]) + _validate_files(part[kind]["items"])
        found += _validate_downward_files(part["downwardAPI"])
        if part["serviceAccountToken"].present:
            found += _validate_token(part["serviceAccountToken"], source)
        found += _duplicate_paths(part, source, used_paths)
        if sum(part[kind].present for kind in PROJECTED_KINDS) > 1:
            found.append(part.forbidden(SEVERAL_KINDS))
    return found


def _validate_downward_files(source: Field) -> list[Cause]:
    """The files of a downward API, all of which upstream reports at the path of the source."""
    found: list[Cause] = []
    for item in source["items"].items():
        file = Field(source.path, item.value)
        field, resource = file["fieldRef"], file["resourceFieldRef"]
        found += missing_texts(file["path"]) + mounts.validate_unreserved_path(file["path"])
        if field.present:
            found += environment.validate_field_reference(field, environment.VOLUME_FIELDS)
            if resource.present:
                found.append(file.invalid(BOTH_REFERENCES, '"resource"'))
        elif resource.present:
            found += environment.validate_resource_reference(resource, needs_container=True)
        else:
            found.append(file.required(NO_REFERENCE))
        found += _validate_mode(file["mode"])
    return found


def _validate_token(token: Field, source: Field) -> list[Cause]:
    """
    A token of the pod's service account, whose path is reported at the volume.

    Upstream also checks that the pod has an account. Where accounts are used, an admission plugin sets one on every
    pod.
    """
    lifetime, path = token["expirationSeconds"], token.at("path", source["path"].path)
    seconds = lifetime.number(DEFAULT_TOKEN_SECONDS)
    found = missing_texts(path) + mounts.validate_unreserved_path(path)
    if seconds < MIN_TOKEN_SECONDS:
        found.append(lifetime.invalid(LIFETIME_TOO_SHORT, str(seconds)))
    if seconds > MAX_TOKEN_SECONDS:
        found.append(lifetime.invalid(LIFETIME_TOO_LONG, str(seconds)))
    return found


def _duplicate_paths(part: Field, source: Field, used_paths: set[str]) -> Iterator[Cause]:
    """Files at the path of another file, reported with the name of their source; tokens are not checked."""
    for kind in ("secret", "configMap", "downwardAPI"):
        for item in part[kind]["items"].items():
            path = item["path"].text()
            if path and path in used_paths:
                shown = path if kind == "downwardAPI" else part[kind]["name"].text()
                yield source.invalid(SAME_PATH, go_text.quoted(shown))
            used_paths.add(path)
