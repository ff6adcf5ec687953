"""
What one replica of a pod template requests, as Karmada counts it.

Mirrors `AddPodTemplateRequest` and `ResourceList` in pkg/util/resource.go, `GenerateReplicaRequirements` in
pkg/util/helper/binding.go.
"""

from __future__ import annotations

from fractions import Fraction

from bayplan.model import quantities
from bayplan.wire.fleets import ReplicaRequirements
from bayplan.wire.meta import Quantities
from bayplan.wire.pods import Container, PodSpec

_NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
_OF_BYTES = ("memory", "ephemeral-storage")


def requirements_of(spec: PodSpec) -> ReplicaRequirements | None:
    """The requirements of one replica; None if it requires neither resources nor particular nodes."""
    requests = _requests(spec)
    affinity = spec.affinity.node_affinity if spec.affinity else None
    on_nodes = affinity is not None and affinity.required_during_scheduling_ignored_during_execution is not None
    if not requests and not on_nodes and spec.node_selector is None and not spec.tolerations:
        return None
    return ReplicaRequirements(resource_request=requests or None)


def _requests(spec: PodSpec) -> Quantities:
    """
    The sum of the containers, or the largest init container if that is more, and the overhead.

    As in Karmada, restartable init containers are not treated specially, and pod-level requests are ignored.
    """
    total: dict[str, int] = {}
    for container in spec.containers or ():
        for name, amount in _container_requests(container).items():
            total[name] = total.get(name, 0) + amount
    for container in spec.init_containers or ():
        for name, amount in _container_requests(container).items():
            total[name] = max(total.get(name, 0), amount)
    for name, amount in _whole(spec.overhead).items():
        total[name] = total.get(name, 0) + amount
    return {name: _written(name, amount) for name, amount in total.items() if amount > 0}


def _written(name: str, amount: int) -> str:
    if name == "cpu":
        return quantities.canonical(Fraction(amount, 1000))
    return quantities.canonical(Fraction(amount), binary=name in _OF_BYTES or name.startswith("hugepages-"))


def _container_requests(container: Container) -> dict[str, int]:
    """The requests; a limit replaces a missing request."""
    resources = container.resources
    return {} if resources is None else {**_whole(resources.limits), **_whole(resources.requests)}


def _whole(written: Quantities | None) -> dict[str, int]:
    """Amounts, each rounded up, cpu in thousandths; resources that Karmada does not count are left out."""
    found = {}
    for name, text in (written or {}).items():
        if _is_counted(name):
            found[name] = quantities.rounded(name, quantities.parse(text))
    return found


def _is_counted(name: str) -> bool:
    prefixed = "/" in name and not name.startswith("requests.")
    return name in _NATIVE_RESOURCES or prefixed or name.startswith(("hugepages-", "attachable-volumes-"))
