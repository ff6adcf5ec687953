"""
What in a directory tree is no manifest: kustomizations, their patches, Helm charts with values and templates.

Only files that were found in a directory are judged; a file that a person names is a manifest. Whether the content of
another file is a manifest is known once it is read: see `is_no_manifest`. Nothing is rendered.
"""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bayplan.errors import Fault
from bayplan.reading import files
from bayplan.reading.documents import Document

KUSTOMIZATION, PATCH, GENERATED, CHART, TEMPLATE, OTHER = (
    "kustomization", "patch", "content of a ConfigMap or Secret", "Helm chart file", "Helm template",
    "file without apiVersion and kind",
)  # fmt: skip
_KUSTOMIZATION_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_KUSTOMIZE_GROUP = "kustomize.config.k8s.io/"
_CHART = "Chart.yaml"
_NO_OBJECT = "expected an object with apiVersion and kind"
# Fields of a kustomization that list files which are no manifests, and in which fields of an item the paths are.
_NAMED_FILES = {
    **dict.fromkeys(("patches", "patchesJson6902", "patchesStrategicMerge", "replacements"), (PATCH, ("path",))),
    **dict.fromkeys(("configurations", "transformers", "generators", "validators"), (KUSTOMIZATION, ())),
    **dict.fromkeys(("configMapGenerator", "secretGenerator"), (GENERATED, ("files", "envs", "env"))),
    "helmCharts": (CHART, ("valuesFile", "additionalValuesFiles")),
}


def no_manifests(found: Sequence[str]) -> Mapping[str, str]:
    """The files of a tree that are no manifests by their place, each with what it is."""
    reasons: dict[str, str] = {}
    charts = {os.path.dirname(file) for file in found if os.path.basename(file) == _CHART}  # noqa: PTH119, PTH120
    for file in found:
        folder, name = os.path.split(file)
        if name in _KUSTOMIZATION_NAMES:
            reasons[file] = KUSTOMIZATION
        elif folder in charts and (name == _CHART or name.startswith("values")):
            reasons[file] = CHART
        elif any(file.startswith(os.path.join(chart, "templates", "")) for chart in charts):  # noqa: PTH118
            reasons[file] = TEMPLATE
    kustomizations = [file for file, reason in reasons.items() if reason == KUSTOMIZATION]
    named = dict(found for file in kustomizations for found in _named_by(file))
    by_path = {os.path.realpath(file): file for file in found}
    return {by_path[path]: reason for path, reason in named.items() if path in by_path} | reasons


def is_no_manifest(items: Sequence[Document | Fault]) -> str:
    """What the content of a file is, if none of it is meant as an object of the API, or it has none; else empty."""
    documents = [item for item in items if isinstance(item, Document)]
    if len(documents) < len(items) and not all(_is_no_object(item) for item in items):
        return ""
    if documents and all(one.api_version.startswith(_KUSTOMIZE_GROUP) for one in documents):
        return KUSTOMIZATION
    return "" if any(one.api_version or one.kind for one in documents) else OTHER


def _is_no_object(item: Document | Fault) -> bool:
    return isinstance(item, Fault) and item.message in (_NO_OBJECT, files.EMPTY)


def _named_by(kustomization: str) -> Iterator[tuple[str, str]]:
    """The files that a kustomization names and that are no manifests, with what they are; none if it is unreadable."""
    source = files.open_source(kustomization, io.BytesIO())
    if isinstance(source, Fault):
        return
    folder = pathlib.Path(kustomization).parent
    for item in files.documents_of(source):
        root: dict[str, Any] = {} if isinstance(item, Fault) else item.plain_if_decodable() or {}
        for name, (reason, fields) in _NAMED_FILES.items():
            for path in _paths_in(root.get(name), fields):
                # The key of a file in a ConfigMap may stand before its path.
                place = path.rpartition("=")[2] if reason == GENERATED else path
                yield os.path.realpath(folder / place), reason


def _paths_in(value: Any, fields: Sequence[str]) -> Iterator[str]:
    """The paths in a list, which are its items or in these fields of them."""
    for item in _listed(value):
        for one in (
            [path for field in fields for path in _listed(item.get(field))] if isinstance(item, dict) else [item]
        ):
            if isinstance(one, str) and "\n" not in one:
                yield one


def _listed(value: Any) -> list[Any]:
    """A list, or a single value as one."""
    return value if isinstance(value, list) else [] if value is None else [value]
