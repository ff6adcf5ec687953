"""
Resource templates: objects of any kind that a fleet propagates, with their replicas and the requests of one replica.

Mirrors Karmada's pkg/resourceinterpreter/default/native/replica.go and `AddPodTemplateRequest` in pkg/util/resource.go.
Does not know policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bayplan.controllers.desired_state import DesiredState
from bayplan.mapping import bindings
from bayplan.model import quantities
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller
from bayplan.wire.fleets import ReplicaRequirements
from bayplan.wire.kinds import ApiKind, Trait
from bayplan.wire.meta import ApiObject, ObjectMeta, Quantities
from bayplan.wire.pods import Container, Pod, PodSpec

_NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


class ResourceTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """`interpreted`: Karmada knows the replica field of the kind, so that 0 replicas are meant as such."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    interpreted: bool = False
    replicas: int = 0
    requirements: ReplicaRequirements | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.api_version, self.kind, self.metadata.namespace, self.metadata.name

    @property
    def binding_name(self) -> str:
        return bindings.binding_name(self.metadata.name, self.kind)

    def as_written(self) -> dict[str, Any]:
        """The part of the object that bindings are mapped with."""
        meta = self.metadata
        return {"metadata": {"labels": meta.labels or {}, "annotations": meta.annotations or {}}}


def templates_of(inputs: DesiredState, pods: Iterable[Pod] = ()) -> Iterator[ResourceTemplate]:
    """Every object of the input that can be propagated, selected by a policy or not; `pods` are further ones."""
    for row in kinds.propagated():
        for written in inputs.list_of(row):
            yield _template_of(written, row)
    for pod in pods:
        yield template_of_pod(pod)
    for template in inputs.templates:
        yield _uninterpreted_template(template)


def template_of_controller(controller: Any) -> ResourceTemplate:
    """The template of a controller with a replica field; absent replicas are those an API server defaults to."""
    assert isinstance(controller, Controller)
    spec = controller.spec
    replicas = 1 if spec.replicas is None else spec.replicas
    if controller.kind == "Job":
        replicas = 1 if spec.parallelism is None else spec.parallelism
        replicas = min(replicas, replicas if spec.completions is None else spec.completions)
    return _interpreted_template(controller, replicas, spec.template.spec)


def template_of_pod(pod: Pod) -> ResourceTemplate:
    """The template of a pod, which has one replica."""
    return _interpreted_template(pod, 1, pod.spec)


def requirements_of(spec: PodSpec) -> ReplicaRequirements | None:
    """The requirements of one replica; None if it requires neither resources nor particular nodes."""
    requests = _requests(spec)
    affinity = spec.affinity.node_affinity if spec.affinity else None
    on_nodes = affinity is not None and affinity.required_during_scheduling_ignored_during_execution is not None
    if not requests and not on_nodes and spec.node_selector is None and not spec.tolerations:
        return None
    return ReplicaRequirements(resource_request=requests or None)


def _template_of(written: Any, row: ApiKind) -> ResourceTemplate:
    if row.key == kinds.POD:
        return template_of_pod(written)
    return template_of_controller(written) if Trait.INTERPRETED in row.traits else _uninterpreted_template(written)


def _interpreted_template(written: ApiObject, replicas: int, spec: PodSpec) -> ResourceTemplate:
    return ResourceTemplate(
        api_version=written.api_version,
        kind=written.kind,
        metadata=written.metadata,
        interpreted=True,
        replicas=replicas,
        requirements=requirements_of(spec),
    )


def _uninterpreted_template(written: ApiObject) -> ResourceTemplate:
    return ResourceTemplate(api_version=written.api_version, kind=written.kind, metadata=written.metadata)


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
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in total.items() if amount > 0}


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
