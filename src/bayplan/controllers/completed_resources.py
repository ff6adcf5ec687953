"""
What an API server finds wrong with the requests and limits of a new pod once defaults have been added to them.

A manifest that is valid may become invalid: a default limit below its request. Mirrors the validation that comes after
mutating admission.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.validating import pod_level, resources
from bayplan.validating.fields import Cause, Field
from bayplan.wire.pods import PodSpec


def faults(spec: PodSpec) -> str:
    """Everything wrong, as the server lists it; empty if nothing is."""
    texts = list(dict.fromkeys(str(cause) for cause in (*_of_containers(spec), *_of_pod(spec))))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _of_containers(spec: PodSpec) -> Iterator[Cause]:
    for name, listed in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for position, container in enumerate(listed or ()):
            if container.resources is not None:
                field = Field(f"spec.{name}[{position}].resources", msgspec.to_builtins(container.resources))
                yield from resources.validate_container_resources(field, template=False)


def _of_pod(spec: PodSpec) -> list[Cause]:
    if spec.resources is None:
        return []
    return pod_level.validate_pod_level(Field("spec", msgspec.to_builtins(spec)), template=True)
