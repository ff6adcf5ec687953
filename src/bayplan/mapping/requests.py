"""What a pod asks of resources, summed as kube-scheduler sums it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

from bayplan.model import quantities
from bayplan.model.workloads import Requests
from bayplan.wire.meta import Quantities
from bayplan.wire.pods import Container, ContainerStatus, Pod

Amounts = dict[str, Fraction]
# What a container weighs in scores if it does not say: pkg/scheduler/util/pod_resources.go.
ASSUMED: Amounts = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 2**20)}
MOST = 2**62  # of a resource: less than 64 bits hold, so that what is missing of it can be computed
POD_LEVEL = ("cpu", "memory")


def requests_of(pod: Pod) -> Requests:
    """The pod's requests for fitting and for scoring."""
    pod_level = _pod_level(pod)
    real = _with_overhead(pod, {**_sum(pod, {}), **pod_level})
    # The allocation score of an incoming pod does not look at pod-level requests: an oversight upstream, and kept.
    scored = _with_overhead(pod, _sum(pod, ASSUMED))
    counted = scored
    if pod_level:  # once it runs, such a pod has defaults only for what it leaves out
        missing = {name: amount for name, amount in ASSUMED.items() if name not in real}
        counted = _with_overhead(pod, {**_sum(pod, missing), **pod_level})
    return _requests(_frozen(real), _frozen(scored), _frozen({r: counted.get(r, Fraction()) for r in ASSUMED}))


@lru_cache(maxsize=65536)
def _requests(real: _Frozen, scored: _Frozen, counted: _Frozen) -> Requests:
    return Requests(*(tuple((r, _whole(r, a)) for r, a in part) for part in (real, scored, counted)))


_Frozen = tuple[tuple[str, Fraction], ...]


def _frozen(amounts: Amounts) -> _Frozen:
    return tuple(sorted(amounts.items()))


def _whole(resource: str, amount: Fraction) -> int:
    scaled = amount * 1000 if resource == "cpu" else amount
    return min(-(-scaled.numerator // scaled.denominator), MOST)


def _sum(pod: Pod, assumed: Amounts) -> Amounts:
    """Containers run together; init containers one by one, with the restartable ones before them still running."""
    status = pod.status
    running = _added(_container(c, status.container_statuses, assumed) for c in pod.spec.containers or ())
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers or ():
        asked = _container(container, status.init_container_statuses, assumed)
        if container.restart_policy == "Always":
            running = _added((running, asked))
            sidecars = _added((sidecars, asked))
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, _added((sidecars, asked)))
    return _larger(running, peak)


def _container(container: Container, statuses: list[ContainerStatus] | None, assumed: Amounts) -> Amounts:
    asked = {**assumed, **_parsed(container.resources.requests if container.resources else None)}
    for status in statuses or ():
        if status.name == container.name:  # resized in place: whatever is larger is what the node must hold
            asked = _larger(asked, _parsed(status.allocated_resources))
            asked = _larger(asked, _parsed(status.resources.requests if status.resources else None))
    return asked


def _pod_level(pod: Pod) -> Amounts:
    level = _parsed(pod.spec.resources.requests if pod.spec.resources else None)
    return {name: amount for name, amount in level.items() if name in POD_LEVEL or name.startswith("hugepages-")}


def _with_overhead(pod: Pod, amounts: Amounts) -> Amounts:
    return _added((amounts, _parsed(pod.spec.overhead))) if pod.spec.overhead else amounts


def _parsed(written: Quantities | None) -> Amounts:
    return {name: quantities.parse(text) for name, text in written.items()} if written else {}


def _added(parts: Iterable[Mapping[str, Fraction]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _larger(one: Amounts, other: Mapping[str, Fraction]) -> Amounts:
    merged = dict(one)
    for name, amount in other.items():
        if name not in merged or amount > merged[name]:
            merged[name] = amount
    return merged
