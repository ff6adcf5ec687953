"""
Volumes that show files of the node, of an image, a ConfigMap, a Secret or a driver.

Mirrors the `validate…VolumeSource` functions in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.validating import causes, go_text, names, resources
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.pod_runtime import environment, local_paths

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
    return local_paths.without_backsteps(path) + causes.one_of(source["type"], HOST_PATH_TYPES)


def git_repo(source: Field) -> list[Cause]:
    """What is wrong with a checked out repository."""
    return causes.needed(source["repository"]) + local_paths.descending(source["directory"])


def secret(source: Field) -> list[Cause]:
    """What is wrong with the files of a Secret."""
    return [*causes.needed(source["secretName"]), *mode(source["defaultMode"]), *files(source["items"])]


def config_map(source: Field) -> list[Cause]:
    """What is wrong with the files of a ConfigMap."""
    return [*causes.needed(source["name"]), *mode(source["defaultMode"]), *files(source["items"])]


def files(items: Field) -> list[Cause]:
    """What is wrong with the keys of a map that become files."""
    found: list[Cause] = []
    for item in items.items():
        found += causes.needed(item["key"], item["path"])
        found += local_paths.not_reserved(item["path"])
        found += mode(item["mode"])
    return found


def mode(field: Field) -> list[Cause]:
    """What is wrong with the permissions of a file."""
    return [] if 0 <= field.number() <= 0o777 else [causes.invalid(field.path, str(field.number()), NO_MODE)]


def nfs(source: Field) -> list[Cause]:
    """What is wrong with a folder of another machine."""
    return causes.needed(source["server"], source["path"]) + local_paths.absolute(source["path"])


def csi(source: Field) -> list[Cause]:
    """What is wrong with a volume that a driver makes; upstream reports the name of its secret at the wrong place."""
    secret_name = source.under("nodePublishSecretRef", "name")
    found = _driver(source["driver"])
    if source["nodePublishSecretRef"].present:
        found += causes.needed(secret_name)
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
    return causes.defaulted(source["pullPolicy"], PULL_POLICIES)


# RF merged from validating.running.projections: Volumes that put files from several places together, among them what
# the pod knows of itself. Mirrors `validateProjectionSources` and `validateDownwardAPIVolumeFile` in
# pkg/apis/core/validation/validation.go. Trust bundles and pod certificates are dropped by API servers whose feature
# gates are at default, and so not looked at.

NO_REFERENCE = "one of fieldRef and resourceFieldRef is required"
BOTH_REFERENCES = "fieldRef and resourceFieldRef can not be specified simultaneously"
SAME_PATH = "conflicting duplicate paths"
SEVERAL = "may not specify more than 1 volume type per source"
KINDS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
TOO_SHORT = "may not specify a duration less than 10 minutes"
TOO_LONG = "may not specify a duration larger than 2^32 seconds"
SHORTEST, LONGEST, DEFAULT_SECONDS = 600, 2**32, 3600


def downward_api(source: Field) -> list[Cause]:
    """What is wrong with a volume of what the pod knows of itself."""
    return mode(source["defaultMode"]) + _facts(source)


def projected(source: Field) -> list[Cause]:
    """What is wrong with a volume that shows files from several sources."""
    found = mode(source["defaultMode"])
    taken: set[str] = set()
    for part in source["sources"].items():
        for kind in ("secret", "configMap"):
            if part[kind].present:
                found += causes.needed(part[kind]["name"]) + files(part[kind]["items"])
        found += _facts(part["downwardAPI"])
        if part["serviceAccountToken"].present:
            found += _token(part["serviceAccountToken"], source)
        found += _conflicts(part, source, taken)
        if sum(part[kind].present for kind in KINDS) > 1:
            found.append(causes.forbidden(part.path, SEVERAL))
    return found


def _facts(source: Field) -> list[Cause]:
    """The files of a downward API, whose paths in messages are all that of the whole."""
    found: list[Cause] = []
    for item in source["items"].items():
        file = Field(source.path, item.value)
        field, resource = file["fieldRef"], file["resourceFieldRef"]
        found += causes.needed(file["path"]) + local_paths.not_reserved(file["path"])
        if field.present:
            found += environment.of_field(field, environment.OF_VOLUMES)
            if resource.present:
                found.append(causes.invalid(file.path, '"resource"', BOTH_REFERENCES))
        elif resource.present:
            found += environment.of_resource(resource, container_named=True)
        else:
            found.append(causes.required(file.path, NO_REFERENCE))
        found += mode(file["mode"])
    return found


def _token(token: Field, source: Field) -> list[Cause]:
    """
    A token of the pod's service account, whose path is reported as the whole volume's.

    Upstream also checks that there is an account, but where accounts are used a plugin has given one to every pod.
    """
    seconds, path = token["expirationSeconds"], token.at("path", source["path"].path)
    lasting = seconds.number(DEFAULT_SECONDS)
    found = causes.needed(path) + local_paths.not_reserved(path)
    if lasting < SHORTEST:
        found.append(causes.invalid(seconds.path, str(lasting), TOO_SHORT))
    if lasting > LONGEST:
        found.append(causes.invalid(seconds.path, str(lasting), TOO_LONG))
    return found


def _conflicts(part: Field, source: Field, taken: set[str]) -> Iterator[Cause]:
    """Files that would lie where another one is; tokens are not looked at. What is shown is whose file it is."""
    for kind in ("secret", "configMap", "downwardAPI"):
        for item in part[kind]["items"].items():
            path = item["path"].text()
            if path and path in taken:
                shown = path if kind == "downwardAPI" else part[kind]["name"].text()
                yield causes.invalid(source.path, go_text.quoted(shown), SAME_PATH)
            taken.add(path)
