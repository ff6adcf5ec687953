"""
Volumes that show files of the node, of an image, a ConfigMap, a Secret or a driver.

Mirrors the `validate…VolumeSource` functions in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from bayplan.validating import causes, choices, names, resources
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.running import local_paths

BAD_SIZE = "SizeLimit field must be a valid resource quantity"
HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
NO_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MAX_DRIVER = 63


def empty_dir(source: Field) -> list[Cause]:
    """What is wrong with an empty folder."""
    size = source["sizeLimit"]
    if resources.is_quantity(size.value) and resources.exact(size) < 0:
        return [causes.forbidden(size.path, BAD_SIZE)]
    return []


def host_path(source: Field) -> list[Cause]:
    """What is wrong with a folder, a file or a device of the node."""
    path = source["path"]
    if not path.text():
        return [causes.required(path.path)]
    return local_paths.without_backsteps(path) + choices.one_of(source["type"], HOST_PATH_TYPES)


def git_repo(source: Field) -> list[Cause]:
    """What is wrong with a checked out repository."""
    return choices.needed(source["repository"]) + local_paths.descending(source["directory"])


def secret(source: Field) -> list[Cause]:
    """What is wrong with the files of a Secret."""
    return [*choices.needed(source["secretName"]), *mode(source["defaultMode"]), *files(source["items"])]


def config_map(source: Field) -> list[Cause]:
    """What is wrong with the files of a ConfigMap."""
    return [*choices.needed(source["name"]), *mode(source["defaultMode"]), *files(source["items"])]


def files(items: Field) -> list[Cause]:
    """What is wrong with the keys of a map that become files."""
    found: list[Cause] = []
    for item in items.items():
        found += choices.needed(item["key"], item["path"])
        found += local_paths.not_reserved(item["path"])
        found += mode(item["mode"])
    return found


def mode(field: Field) -> list[Cause]:
    """What is wrong with the permissions of a file."""
    return [] if 0 <= field.number() <= 0o777 else [causes.invalid(field.path, str(field.number()), NO_MODE)]


def nfs(source: Field) -> list[Cause]:
    """What is wrong with a folder of another machine."""
    return choices.needed(source["server"], source["path"]) + local_paths.absolute(source["path"])


def csi(source: Field) -> list[Cause]:
    """What is wrong with a volume that a driver makes; upstream reports the name of its secret at the wrong place."""
    secret_name = source.under("nodePublishSecretRef", "name")
    found = _driver(source["driver"])
    if source["nodePublishSecretRef"].present:
        found += choices.needed(secret_name)
        if secret_name.text():
            found += names.invalid(source["name"].path, secret_name.text(), names.dns_subdomain(secret_name.text()))
    return found


def _driver(field: Field) -> list[Cause]:
    if not field.text():
        return [causes.required(field.path)]
    found = []
    if len(field.text().encode()) > MAX_DRIVER:
        found.append(causes.too_long(field.path, f"may not be more than {MAX_DRIVER} bytes"))
    return found + names.invalid(field.path, field.text(), names.dns_subdomain(field.text().lower()))


def image(source: Field) -> list[Cause]:
    """What is wrong with the files of an image, apart from which one: only a pod needs to know that."""
    return choices.defaulted(source["pullPolicy"], PULL_POLICIES)
