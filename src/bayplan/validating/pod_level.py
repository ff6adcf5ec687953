"""
Requests and limits of a pod as a whole: by themselves, and beside those of its containers.

Mirrors validatePodResources in pkg/apis/core/validation/validation.go. In pods, not in templates, defaults precede it:
SetDefaults_Pod in pkg/apis/core/v1/defaults.go, since 1.37 DefaultPodLevelResources in pkg/api/pod/util.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bayplan.model.kubernetes_versions import V1_37
from bayplan.validating import pod_resources, resources
from bayplan.validating.fields import Cause, Field
from bayplan.validating.pod_resources import HUGE_PAGES, POD_LEVEL, Amount, Amounts, Side
from bayplan.wire.pods import Container, PodSpec, ResourceRequirements

Texts = dict[str, str | int | float]


def validate_pod_level(spec: Field, *, template: bool) -> list[Cause]:
    """The causes for rejecting the resources of the pod as a whole; the amounts must be quantities."""
    written = spec["resources"]
    if not written.present or spec["os"]["name"].text() == "windows":  # for which they are forbidden
        return []
    containers = _containers(spec, template=template)
    requests, limits = _texts(written["requests"]), _texts(written["limits"])
    if not template:
        defaults = _with_later_defaults if spec.version >= V1_37 else _with_defaults
        requests, limits = defaults(containers, requests, limits)
    asked = Field(written["requests"].path, requests, spec.version)
    most = Field(written["limits"].path, limits, spec.version)
    return [
        *resources.validate_requirements(written.path, most, asked, pod_level=True),
        *_beside_containers(containers, written.path, requests, limits),
    ]


def _containers(spec: Field, *, template: bool) -> PodSpec:
    """What containers request. In a pod, a missing request is set to the limit."""

    def decoded(container: Field) -> Container:
        requests, limits = (_texts(container["resources"][side]) for side in ("requests", "limits"))
        asked = requests if template else {**limits, **requests}
        found = ResourceRequirements(requests=asked, limits=limits)
        return Container(resources=found, restart_policy=container["restartPolicy"].text())

    return PodSpec(
        containers=list(map(decoded, spec["containers"].items())),
        init_containers=list(map(decoded, spec["initContainers"].items())),
    )


def _texts(listed: Field) -> Texts:
    """The amounts as written; null is 0, as in Go."""
    amounts = {name: listed.entry(name).value for name in listed.names()}
    return {name: value if isinstance(value, str | int | float) else 0 for name, value in amounts.items()}


def _with_defaults(containers: PodSpec, requests: Texts, limits: Texts) -> tuple[Texts, Texts]:
    """Absent requests are those of the containers, else the pod's limits, for a pod that has limits."""
    limits = _with_huge_pages(containers, requests, limits)
    return (_with_requests(containers, requests, limits) if limits else requests), limits


def _with_later_defaults(containers: PodSpec, requests: Texts, limits: Texts) -> tuple[Texts, Texts]:
    """Since 1.37 also for a pod without limits, which it then gets where all containers have them."""
    limits = _with_huge_pages(containers, requests, limits)
    if requests or limits:
        requests = _with_requests(containers, requests, limits)
    every = [*(containers.containers or ()), *(containers.init_containers or ())]
    limited = [one.resources.limits or {} for one in every if one.resources is not None]

    def is_limited(name: str) -> bool:
        return pod_resources.is_of_pods(name) and name in requests and all(name in one for one in limited)

    found = {}
    for name, text in _total(containers, "limits", is_limited).items():
        is_more = pod_resources.amount_of(requests[name]).exact > pod_resources.amount_of(text).exact
        found[name] = requests[name] if is_more else text
    return requests, {**found, **limits}


def _with_huge_pages(containers: PodSpec, requests: Texts, limits: Texts) -> Texts:
    if not (requests or limits):
        return limits
    return {**_total(containers, "limits", lambda name: name.startswith(HUGE_PAGES) and name not in requests), **limits}


def _with_requests(containers: PodSpec, requests: Texts, limits: Texts) -> Texts:
    of_pod = {name: limits[name] for name in limits if pod_resources.is_of_pods(name)}
    return {**of_pod, **_total(containers, "requests", POD_LEVEL.__contains__), **requests}


def _total(containers: PodSpec, side: Side, is_meant: Callable[[str], bool]) -> Texts:
    total = pod_resources.containers_total(containers, side)
    return {name: str(amount) for name, amount in total.items() if is_meant(name)}


def _beside_containers(containers: PodSpec, path: str, requested: Texts, limited: Texts) -> Iterator[Cause]:
    requests, limits = pod_resources.amounts_of(requested), pod_resources.amounts_of(limited)
    yield from _exceeded(f"{path}.requests", requests, containers, "requests")
    pages = {name: limit for name, limit in limits.items() if name.startswith(HUGE_PAGES)}
    yield from _exceeded(f"{path}.limits", pages, containers, "limits")
    for position, container in enumerate(containers.containers or ()):
        own = pod_resources.amounts_of(container.resources.limits if container.resources else None)
        for name, limit in own.items():
            if name in limits and limit.exact > limits[name].exact:
                where = f"{path}.containers[{position}][{name}].limits"
                yield _invalid(where, limit, "less", "pod limits", limits[name])


def _exceeded(path: str, amounts: Amounts, containers: PodSpec, side: Side) -> Iterator[Cause]:
    """The amounts that are below the sum of the containers'."""
    for name, total in pod_resources.containers_total(containers, side).items():
        if name in amounts and total.exact > amounts[name].exact:
            yield _invalid(f"{path}[{name}]", amounts[name], "greater", f"aggregate container {side}", total)


def _invalid(path: str, amount: Amount, relation: str, what: str, bound: Amount) -> Cause:
    return Field(path, str(amount)).invalid(f"must be {relation} than or equal to {what} of {bound}")
