"""
LimitRanges: the requests and limits that they add to containers, and what they refuse.

Mirrors plugin/pkg/admission/limitranger and SetDefaults_LimitRangeItem in pkg/apis/core/v1/defaults.go. Does not know
which objects are in which namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from bayplan.validating import pod_resources
from bayplan.validating.pod_resources import POD_LEVEL, Amount, Amounts
from bayplan.wire.admission import LimitRange, LimitRangeItem
from bayplan.wire.meta import Quantities
from bayplan.wire.pods import Container, PodSpec, ResourceRequirements
from bayplan.wire.storage import PersistentVolumeClaim

_CONTAINER, _POD, _CLAIM = "Container", "Pod", "PersistentVolumeClaim"


class _Usage(msgspec.Struct, frozen=True):
    """What one limit is compared with; `whose` is its type."""

    whose: str
    requests: Mapping[str, Amount]
    limits: Mapping[str, Amount]


def with_defaults(spec: PodSpec, ranges: Iterable[LimitRange]) -> PodSpec:
    """The spec with the default requests and limits of containers; those of an earlier range come first."""
    for limit_range in ranges:
        requests: Quantities = {}
        limits: Quantities = {}
        for item in limit_range.spec.limits or ():
            if item.type == _CONTAINER:
                own_limits = {**(item.max or {}), **(item.default or {})}
                limits |= own_limits
                requests |= {**(item.min or {}), **own_limits, **(item.default_request or {})}
        if requests or limits:
            spec = msgspec.structs.replace(
                spec,
                containers=_each(spec.containers, requests, limits),
                init_containers=_each(spec.init_containers, requests, limits),
            )
    return spec


def violation(spec: PodSpec, ranges: Iterable[LimitRange]) -> str:
    """Why the first range that a new pod violates refuses it; empty if none does."""
    containers = [*(spec.containers or ()), *(spec.init_containers or ())]
    usages: dict[str, list[_Usage]] = {
        _CONTAINER: [_usage_of_container(one) for one in containers],
        _POD: [_Usage(_POD, _of_pod(spec, pod_resources.requests_of), _of_pod(spec, pod_resources.limits_of))],
    }
    return _first_violation(ranges, usages)


def claim_violation(claim: PersistentVolumeClaim, ranges: Iterable[LimitRange]) -> str:
    """The same for a new claim."""
    resources = claim.spec.resources
    requests = pod_resources.amounts_of(resources.requests if resources else None)
    return _first_violation(ranges, {_CLAIM: [_Usage(_CLAIM, requests, {})]})


def _each(written: list[Container] | None, requests: Quantities, limits: Quantities) -> list[Container] | None:
    found = []
    for container in written or ():
        own = container.resources or ResourceRequirements()
        merged = ResourceRequirements(
            requests={**requests, **(own.requests or {})}, limits={**limits, **(own.limits or {})}
        )
        found.append(msgspec.structs.replace(container, resources=merged))
    return found if written is not None else None


def _usage_of_container(container: Container) -> _Usage:
    resources = container.resources or ResourceRequirements()
    return _Usage(_CONTAINER, pod_resources.amounts_of(resources.requests), pod_resources.amounts_of(resources.limits))


def _of_pod(spec: PodSpec, total: Callable[..., Amounts]) -> Amounts:
    """The sum without overhead; of what the pod requests as a whole, limit ranges know cpu and memory only."""
    level = spec.resources
    if level is not None:
        known = ResourceRequirements(requests=_cpu_and_memory(level.requests), limits=_cpu_and_memory(level.limits))
        spec = msgspec.structs.replace(spec, resources=known)
    return total(spec, overhead=False)


def _cpu_and_memory(listed: Quantities | None) -> Quantities:
    return {name: text for name, text in (listed or {}).items() if name in POD_LEVEL}


def _first_violation(ranges: Iterable[LimitRange], usages: Mapping[str, list[_Usage]]) -> str:
    for limit_range in ranges:
        found = [
            message
            for item in limit_range.spec.limits or ()
            for usage in usages.get(item.type, ())
            for message in _violations(item, usage)
        ]
        if found:
            distinct = list(dict.fromkeys(found))
            return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    return ""


def _violations(item: LimitRangeItem, usage: _Usage) -> Iterator[str]:
    """The server walks the resources in no particular order; here they are sorted."""
    of_claim = usage.whose == _CLAIM
    for name, bound in sorted(pod_resources.amounts_of(item.min).items()):
        yield from _below(f"minimum {name} usage per {usage.whose} is {bound}", name, bound, usage)
    for name, bound in sorted(pod_resources.amounts_of(item.max).items()):
        text = f"maximum {name} usage per {usage.whose} is {bound}"
        yield from _claim_above(text, name, bound, usage) if of_claim else _above(text, name, bound, usage)
    if not of_claim:
        for name, bound in sorted(pod_resources.amounts_of(item.max_limit_request_ratio).items()):
            yield from _ratio_above(name, bound, usage)


def _below(text: str, name: str, bound: Amount, usage: _Usage) -> Iterator[str]:
    request, limit = usage.requests.get(name), usage.limits.get(name)
    if request is None:
        yield f"{text}.  No request is specified"
    elif request.exact < bound.exact:
        yield f"{text}, but request is {request}"
    elif limit is not None and limit.exact < bound.exact:
        yield f"{text}, but limit is {limit}"


def _above(text: str, name: str, bound: Amount, usage: _Usage) -> Iterator[str]:
    request, limit = usage.requests.get(name), usage.limits.get(name)
    if limit is None:
        yield f"{text}.  No limit is specified"
    elif limit.exact > bound.exact:
        yield f"{text}, but limit is {limit}"
    elif request is not None and request.exact > bound.exact:
        yield f"{text}, but request is {request}"


def _claim_above(text: str, name: str, bound: Amount, usage: _Usage) -> Iterator[str]:
    request = usage.requests.get(name)
    if request is None:
        yield f"{text}.  No request is specified"
    elif request.exact > bound.exact:
        yield f"{text}, but request is {request}"


def _ratio_above(name: str, bound: Amount, usage: _Usage) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {usage.whose} is {bound}"
    request, limit = usage.requests.get(name), usage.limits.get(name)
    if request is None or not request.exact:
        yield f"{text}, but no request is specified or request is 0"
    elif limit is None or not limit.exact:
        yield f"{text}, but no limit is specified or limit is 0"
    elif limit.exact / request.exact > bound.exact:
        yield f"{text}, but provided ratio is {float(limit.exact / request.exact):f}"
