"""
What an API server finds wrong with the requests and limits of a new pod once defaults have been added to them.

A manifest that is valid may become invalid: a default limit below its request. Mirrors the validation that comes after
mutating admission, `validatePodResourceConsistency` in pkg/apis/core/validation/validation.go included.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.controllers import pod_resources
from bayplan.controllers.pod_resources import Amount
from bayplan.validating import resources
from bayplan.validating.fields import Cause, Field
from bayplan.wire.pods import PodSpec

_PATH = "spec.resources"


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


def _of_pod(spec: PodSpec) -> Iterator[Cause]:
    if spec.resources is None:
        return
    yield from resources.validate_pod_resources(Field(_PATH, msgspec.to_builtins(spec.resources)))
    requests = pod_resources.amounts_of(spec.resources.requests)
    limits = pod_resources.amounts_of(spec.resources.limits)
    for name, total in pod_resources.containers_total(spec, "requests").items():
        if name in requests and total.exact > requests[name].exact:
            yield _invalid(
                f"{_PATH}.requests[{name}]", requests[name], "greater", "aggregate container requests", total
            )
    for name, total in pod_resources.containers_total(spec, "limits").items():
        is_pages = name.startswith(pod_resources.HUGE_PAGES)
        if is_pages and name in limits and total.exact > limits[name].exact:
            yield _invalid(f"{_PATH}.limits[{name}]", limits[name], "greater", "aggregate container limits", total)
    for position, container in enumerate(spec.containers or ()):
        own = pod_resources.amounts_of(container.resources.limits if container.resources else None)
        for name, limit in own.items():
            if name in limits and limit.exact > limits[name].exact:
                path = f"{_PATH}.containers[{position}][{name}].limits"
                yield _invalid(path, limit, "less", "pod limits", limits[name])


def _invalid(path: str, amount: Amount, relation: str, what: str, bound: Amount) -> Cause:
    return Field(path, str(amount)).invalid(f"must be {relation} than or equal to {what} of {bound}")
