"""
Resource templates: objects of any kind that a fleet propagates, with their replicas and what one replica asks for.

Mirrors Karmada's pkg/resourceinterpreter/default/native/replica.go and `AddPodTemplateRequest` in pkg/util/resource.go.
Knows nothing of policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bayplan.controllers.desired_state import DesiredState
from bayplan.model import quantities
from bayplan.wire.controllers import Controller
from bayplan.wire.fleets import ReplicaRequirements
from bayplan.wire.meta import ApiObject, ObjectMeta, Quantities
from bayplan.wire.pods import Container, Pod, PodSpec

INTERPRETED = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
_NATIVE = ("cpu", "memory", "ephemeral-storage", "pods")


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """`interpreted`: Karmada knows where the kind keeps its replicas, so that 0 of them means just that."""

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
        """The name of its binding; the API group is no part of it."""
        return f"{self.metadata.name.replace(':', '.')}-{self.kind}".lower()

    def as_written(self) -> dict[str, Any]:
        """As much of the object as bindings are read with."""
        meta = self.metadata
        return {"metadata": {"labels": meta.labels or {}, "annotations": meta.annotations or {}}}


def templates_of(inputs: DesiredState, pods: Iterable[Pod] = ()) -> Iterator[Template]:
    """Every object of the input that could be propagated, wanted by a policy or not; `pods` are those besides."""
    for kind, controllers in inputs.controllers.items():
        for controller in controllers:
            yield of_controller(controller) if kind in INTERPRETED else _plain(controller)
    for pod in (*inputs.pods, *pods):
        yield of_pod(pod)
    for written in (*inputs.services, *inputs.claims, *inputs.volumes, *inputs.namespaces, *inputs.storage_classes):
        yield _plain(written)
    for budget in inputs.disruption_budgets:
        yield _plain(budget)
    for template in inputs.templates:
        yield _plain(template)


def of_controller(controller: Any) -> Template:
    """A kind whose replicas Karmada knows where to find; absent ones are what an API server fills in."""
    assert isinstance(controller, Controller)
    spec = controller.spec
    replicas = 1 if spec.replicas is None else spec.replicas
    if controller.kind == "Job":
        replicas = 1 if spec.parallelism is None else spec.parallelism
        replicas = min(replicas, replicas if spec.completions is None else spec.completions)
    return _interpreted(controller, replicas, spec.template.spec)


def of_pod(pod: Pod) -> Template:
    """A pod is its own only replica."""
    return _interpreted(pod, 1, pod.spec)


def requirements_of(spec: PodSpec) -> ReplicaRequirements | None:
    """What one replica asks for; None if neither resources nor particular nodes."""
    asked = _requests(spec)
    affinity = spec.affinity.node_affinity if spec.affinity else None
    on_nodes = affinity is not None and affinity.required_during_scheduling_ignored_during_execution is not None
    if not asked and not on_nodes and spec.node_selector is None and not spec.tolerations:
        return None
    return ReplicaRequirements(resource_request=asked or None)


def _interpreted(written: ApiObject, replicas: int, spec: PodSpec) -> Template:
    return Template(
        api_version=written.api_version,
        kind=written.kind,
        metadata=written.metadata,
        interpreted=True,
        replicas=replicas,
        requirements=requirements_of(spec),
    )


def _plain(written: ApiObject) -> Template:
    return Template(api_version=written.api_version, kind=written.kind, metadata=written.metadata)


def _requests(spec: PodSpec) -> Quantities:
    """
    The sum of the containers, or the largest init container where that is more, and the overhead.

    Karmada treats init containers that keep running like any other, and pod-level requests not at all.
    """
    total: dict[str, int] = {}
    for container in spec.containers or ():
        for name, amount in _asked(container).items():
            total[name] = total.get(name, 0) + amount
    for container in spec.init_containers or ():
        for name, amount in _asked(container).items():
            total[name] = max(total.get(name, 0), amount)
    for name, amount in _whole(spec.overhead).items():
        total[name] = total.get(name, 0) + amount
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in total.items() if amount > 0}


def _asked(container: Container) -> dict[str, int]:
    """Requests; a limit stands for a missing one."""
    resources = container.resources
    return {} if resources is None else {**_whole(resources.limits), **_whole(resources.requests)}


def _whole(written: Quantities | None) -> dict[str, int]:
    """Amounts rounded up one by one, cpu in thousandths; what Karmada has no place for is left out."""
    found = {}
    for name, text in (written or {}).items():
        if _counts(name):
            scaled = quantities.parse(text) * (1000 if name == "cpu" else 1)
            found[name] = -(-scaled.numerator // scaled.denominator)
    return found


def _counts(name: str) -> bool:
    prefixed = "/" in name and not name.startswith("requests.")
    return name in _NATIVE or prefixed or name.startswith(("hugepages-", "attachable-volumes-"))
