"""
What an API server fills in where a pod says nothing: requests from limits, host ports, tolerations, the scheduler.

Mirrors SetDefaults_Pod in pkg/apis/core/v1/defaults.go and plugin/pkg/admission/defaulttolerationseconds. Does not know
objects that other people write: LimitRanges, classes, quotas.
"""

from __future__ import annotations

import msgspec

from bayplan.model.labels import NO_EXECUTE
from bayplan.validating import pod_resources
from bayplan.validating.pod_resources import POD_LEVEL
from bayplan.wire.meta import Quantities
from bayplan.wire.pods import Container, Pod, PodSpec, ResourceRequirements, WireToleration

DEFAULT_SCHEDULER = "default-scheduler"
TOLERATED_SECONDS = 300
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def with_defaults(spec: PodSpec) -> PodSpec:
    """The spec of a new pod after decoding, before any admission plugin: equal to the spec if nothing is missing."""
    containers = _containers(spec.containers, host_network=spec.host_network)
    init_containers = _containers(spec.init_containers, host_network=spec.host_network)
    if containers is not spec.containers or init_containers is not spec.init_containers:
        spec = msgspec.structs.replace(spec, containers=containers, init_containers=init_containers)
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        spec = msgspec.structs.replace(spec, resources=_pod_level(spec, spec.resources))
    return spec if spec.scheduler_name else msgspec.structs.replace(spec, scheduler_name=DEFAULT_SCHEDULER)


def defaulted(pod: Pod) -> Pod:
    """A pod of a file as a server would have stored it. A pod that a server stored is returned as it is."""
    if pod.metadata.uid or pod.metadata.resource_version:
        return pod
    return msgspec.structs.replace(pod, spec=with_defaults(pod.spec))


def with_tolerations(spec: PodSpec) -> PodSpec:
    """The spec that tolerates a node which is not ready or not reachable for five minutes, unless it says otherwise."""
    own = spec.tolerations or []
    every_key = any(not t.key and t.effect in ("", NO_EXECUTE) for t in own)
    missing = [
        WireToleration(key=key, operator="Exists", effect=NO_EXECUTE, toleration_seconds=TOLERATED_SECONDS)
        for key in _TOLERATED
        if not every_key and not any(t.key == key and t.effect in ("", NO_EXECUTE) for t in own)
    ]
    return msgspec.structs.replace(spec, tolerations=[*own, *missing]) if missing else spec


def _containers(written: list[Container] | None, *, host_network: bool) -> list[Container] | None:
    """The same list if no container lacks a request or, on the network of the host, a host port."""
    found = [_container(one, host_network=host_network) for one in written or ()]
    return written if all(new is old for new, old in zip(found, written or (), strict=True)) else found


def _container(written: Container, *, host_network: bool) -> Container:
    resources = written.resources
    if resources is not None and resources.limits:
        requests = _with_missing(resources.requests, resources.limits)
        if requests is not resources.requests:
            resources = ResourceRequirements(requests=requests, limits=resources.limits)
            written = msgspec.structs.replace(written, resources=resources)
    if host_network and any(not port.host_port for port in written.ports or ()):
        ports = [
            port if port.host_port else msgspec.structs.replace(port, host_port=port.container_port)
            for port in written.ports or ()
        ]
        written = msgspec.structs.replace(written, ports=ports)
    return written


def _with_missing(requests: Quantities | None, limits: Quantities) -> Quantities | None:
    missing = {name: limits[name] for name in limits if name not in (requests or {})}
    return {**(requests or {}), **missing} if missing else requests


def _pod_level(spec: PodSpec, written: ResourceRequirements) -> ResourceRequirements:
    """The resources of the pod as a whole: absent requests are those of the containers, else the pod's limits."""
    requests, limits = written.requests or {}, dict(written.limits or {})
    for name, amount in pod_resources.containers_total(spec, "limits").items():
        if name.startswith(pod_resources.HUGE_PAGES) and name not in requests:
            limits.setdefault(name, pod_resources.written(amount))
    if not limits:
        return written
    of_containers = {
        name: pod_resources.written(amount)
        for name, amount in pod_resources.containers_total(spec, "requests").items()
        if name in POD_LEVEL
    }
    of_pod = {name: limits[name] for name in limits if pod_resources.is_of_pods(name)}
    return ResourceRequirements(requests={**of_pod, **of_containers, **requests}, limits=limits)
