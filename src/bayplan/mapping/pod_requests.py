"""
The requests of a pod, summed as kube-scheduler sums them, also while the pod is resized in place.

Mirrors component-helpers/resource/helpers.go. An incoming pod counts with its spec alone; a placed one with the larger
of its spec and of what its status reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from bayplan.caching import memoised
from bayplan.model import quantities
from bayplan.model.workloads import Requests, ResizedRequests
from bayplan.validating import pod_resources
from bayplan.wire.meta import Quantities
from bayplan.wire.pods import Container, ContainerStatus, Pod

ResourceAmounts = dict[str, Fraction]
# What a container counts in scores where it requests nothing: pkg/scheduler/util/pod_resources.go.
ASSUMED: ResourceAmounts = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 2**20)}
MAX_AMOUNT = 2**62  # of one resource; leaves room in 64 bits to compute how much is missing
RESIZE_PENDING, INFEASIBLE = "PodResizePending", "Infeasible"

AmountsOf = Callable[[Container], ResourceAmounts | None]  # of one container; None for a list that is absent


def requests_of(pod: Pod) -> Requests:
    """The pod's requests for fitting and for scoring."""
    level = _pod_level(_parsed(pod.spec.resources.requests if pod.spec.resources else None))
    fitting = _with_overhead(pod, {**_sum(pod, _spec), **level})
    # The allocation score of an incoming pod ignores pod-level requests: an oversight upstream, kept here.
    scored = _with_overhead(pod, _sum(pod, _spec, ASSUMED))
    counted = scored
    if level:  # once it runs, such a pod has defaults only for what it leaves out
        counted = _with_overhead(pod, {**_sum(pod, _spec, _missing_from(fitting)), **level})
    resized = _resized(pod) if _is_reported(pod) else None
    return _shared_requests(_rounded(fitting), _rounded(scored), _rounded(_scored_only(counted)), resized)


_shared_requests = memoised(65536)(Requests)


def is_resize_infeasible(pod: Pod) -> bool:
    """Whether the kubelet refused to resize the pod: the new size is not going to be allocated."""
    pending = next((one for one in pod.status.conditions or () if one.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == INFEASIBLE


def _is_reported(pod: Pod) -> bool:
    """Whether the status says something of resources that the spec does not."""
    status = pod.status
    reported = status.resources is not None or status.allocated_resources is not None or is_resize_infeasible(pod)
    listed = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return reported or any(one.resources is not None or one.allocated_resources is not None for one in listed)


def _resized(pod: Pod) -> ResizedRequests:
    level = _pod_level(_parsed(pod.spec.resources.requests if pod.spec.resources else None))
    found = []
    for total in (_total_until_1_36, _total_since_1_37):
        fitting = total(pod, level, {})
        counted = total(pod, level, _missing_from(fitting) if level else ASSUMED)
        scored = _rounded(_scored_only(counted))
        found.append(_shared_requests(_rounded(fitting), scored, scored))
    return ResizedRequests(*found)


def _total_until_1_36(pod: Pod, level: ResourceAmounts, assumed: ResourceAmounts) -> ResourceAmounts:
    """The larger amount of each container; ordinary init containers count with their spec."""
    statuses, infeasible = _statuses(pod), is_resize_infeasible(pod)
    run_once = {one.name for one in pod.spec.init_containers or () if one.restart_policy != "Always"}

    def effective(container: Container) -> ResourceAmounts:
        spec, status = _spec(container) or {}, statuses.get(container.name)
        if status is None or status.resources is None or container.name in run_once:
            return spec
        reported = _larger(_parsed(status.resources.requests), _parsed(status.allocated_resources))
        return reported if infeasible else _larger(spec, reported)

    total, at_pod = _sum(pod, effective, assumed), level
    if level and pod.status.resources is not None:
        reported = _reported_level(pod)
        larger = reported if infeasible else _larger(level, reported)
        at_pod = {name: larger.get(name, Fraction()) for name in level}
    return _with_overhead(pod, {**total, **at_pod})


def _total_since_1_37(pod: Pod, level: ResourceAmounts, assumed: ResourceAmounts) -> ResourceAmounts:
    """The larger of the sums: of the spec, of what is allocated, and of what the containers have."""
    statuses, infeasible = _statuses(pod, container_first=True), is_resize_infeasible(pod)

    def allocated(container: Container) -> ResourceAmounts | None:
        status = statuses.get(container.name)
        if status is not None and status.allocated_resources is not None:
            return _parsed(status.allocated_resources)
        return None if infeasible else _spec(container)

    def actuated(container: Container) -> ResourceAmounts | None:
        status = statuses.get(container.name)
        if status is not None and status.resources is not None and status.resources.requests is not None:
            return _parsed(status.resources.requests)
        return allocated(container)

    reported = pod.status.resources
    if reported is not None and reported.requests is not None and pod.status.allocated_resources is not None:
        sums = [_parsed(pod.status.allocated_resources), _parsed(reported.requests)]
    else:
        sums = [_sum(pod, allocated, assumed), _sum(pod, actuated, assumed)]
    if not infeasible:
        sums.append(_sum(pod, _spec, assumed))
    total: ResourceAmounts = {}
    for one in sums:
        total = _larger(total, one)
    at_pod = level
    if level and reported is not None:
        at_pod = _pod_level(_reported_level(pod) if infeasible else _larger(level, _reported_level(pod)))
    return _with_overhead(pod, {**total, **at_pod})


def _statuses(pod: Pod, *, container_first: bool = False) -> dict[str, ContainerStatus]:
    """The statuses by the names of containers; of two with one name the last, or the first since 1.37."""
    listed = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
    return {one.name: one for one in (reversed(listed) if container_first else listed)}


def _reported_level(pod: Pod) -> ResourceAmounts:
    reported = pod.status.resources.requests if pod.status.resources is not None else None
    return _larger(_parsed(reported), _parsed(pod.status.allocated_resources))


def _spec(container: Container) -> ResourceAmounts | None:
    return _parsed(container.resources.requests if container.resources else None)


def _sum(pod: Pod, amounts_of: AmountsOf, assumed: ResourceAmounts | None = None) -> ResourceAmounts:
    """
    The sum over the containers, each with the assumed amounts of what it leaves out.

    Containers run together; init containers one by one, while the restartable ones before them keep running.
    """
    missing = assumed or {}
    running = _added({**missing, **(amounts_of(one) or {})} for one in pod.spec.containers or ())
    sidecars: ResourceAmounts = {}
    peak: ResourceAmounts = {}
    for container in pod.spec.init_containers or ():
        is_sidecar = container.restart_policy == "Always"
        # Of resources that this container does not request, the peak is up to date.
        for name, amount in {**missing, **(amounts_of(container) or {})}.items():
            beside = sidecars[name] + amount if name in sidecars else amount
            if name not in peak or beside > peak[name]:
                peak[name] = beside
            if is_sidecar:
                sidecars[name] = beside
                running[name] = running[name] + amount if name in running else amount
    return _larger(running, peak)


def _with_overhead(pod: Pod, total: ResourceAmounts) -> ResourceAmounts:
    return _added((total, _parsed(pod.spec.overhead))) if pod.spec.overhead else total


def _pod_level(amounts: ResourceAmounts) -> ResourceAmounts:
    """Those that a pod can request as a whole."""
    return {name: amount for name, amount in amounts.items() if pod_resources.is_of_pods(name)}


def _missing_from(fitting: ResourceAmounts) -> ResourceAmounts:
    return {name: amount for name, amount in ASSUMED.items() if name not in fitting}


def _scored_only(amounts: ResourceAmounts) -> ResourceAmounts:
    return {name: amounts.get(name, Fraction()) for name in ASSUMED}


def _rounded(amounts: ResourceAmounts) -> tuple[tuple[str, int], ...]:
    # No server admits less than nothing; a dump that says so must not make room on a node.
    whole = {name: max(0, min(quantities.rounded(name, amount), MAX_AMOUNT)) for name, amount in amounts.items()}
    return tuple(sorted(whole.items()))


def _parsed(written: Quantities | None) -> ResourceAmounts:
    """Rounded up to thousandths, as an API server does when it reads a list of resources."""
    found: ResourceAmounts = {}
    for name, text in (written or {}).items():
        exact = quantities.parse(text)
        found[name] = exact if 1000 % exact.denominator == 0 else Fraction(math.ceil(exact * 1000), 1000)
    return found


def _added(parts: Iterable[Mapping[str, Fraction]]) -> ResourceAmounts:
    total: ResourceAmounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _larger(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> ResourceAmounts:
    merged = dict(one)
    for name, amount in other.items():
        if name not in merged or amount > merged[name]:
            merged[name] = amount
    return merged
