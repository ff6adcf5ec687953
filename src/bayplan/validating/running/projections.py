"""
Volumes that put files from several places together, among them what the pod knows of itself.

Mirrors `validateProjectionSources` and `validateDownwardAPIVolumeFile` in pkg/apis/core/validation/validation.go. Trust
bundles and pod certificates are dropped by API servers whose feature gates are at default, and so not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.validating import causes, choices, go_text
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.running import field_references, file_volumes, local_paths

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
    return file_volumes.mode(source["defaultMode"]) + _facts(source)


def projected(source: Field) -> list[Cause]:
    """What is wrong with a volume that shows files from several sources."""
    found = file_volumes.mode(source["defaultMode"])
    taken: set[str] = set()
    for part in source["sources"].items():
        for kind in ("secret", "configMap"):
            if part[kind].present:
                found += choices.needed(part[kind]["name"]) + file_volumes.files(part[kind]["items"])
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
        found += choices.needed(file["path"]) + local_paths.not_reserved(file["path"])
        if field.present:
            found += field_references.of_field(field, field_references.OF_VOLUMES)
            if resource.present:
                found.append(causes.invalid(file.path, '"resource"', BOTH_REFERENCES))
        elif resource.present:
            found += field_references.of_resource(resource, container_named=True)
        else:
            found.append(causes.required(file.path, NO_REFERENCE))
        found += file_volumes.mode(file["mode"])
    return found


def _token(token: Field, source: Field) -> list[Cause]:
    """
    A token of the pod's service account, whose path is reported as the whole volume's.

    Upstream also checks that there is an account, but where accounts are used a plugin has given one to every pod.
    """
    seconds, path = token["expirationSeconds"], token.at("path", source["path"].path)
    lasting = seconds.number(DEFAULT_SECONDS)
    found = choices.needed(path) + local_paths.not_reserved(path)
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
