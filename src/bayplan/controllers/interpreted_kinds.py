"""
The custom kinds that Karmada itself reads replicas, requests or components of.

Equals what the customizations that Karmada 1.18 ships answer (pkg/resourceinterpreter/default/thirdparty), also where
those answer nothing, and for the same versions of the kinds only. What is missing counts as in their Lua: `spec.a.b` is
absent if `spec.a` is, and a text with a number is a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from bayplan.controllers.interpretation import (
    Interpretation,
    NotInterpretedError,
    replicas_of,
    request_of,
    template_requirements,
)
from bayplan.model import quantities
from bayplan.wire.fleets import BindingComponent, ReplicaRequirements
from bayplan.wire.meta import Quantities, Quantity

Content = Mapping[str, Any]
Replicas = tuple[int, ReplicaRequirements | None]


class InterpretedKind(msgspec.Struct, frozen=True):
    """How a kind is read; None for what Karmada does not read of it."""

    replicas: Callable[[Content], Replicas] | None = None
    components: Callable[[Content], Iterable[BindingComponent]] | None = None


def interpret(kind: InterpretedKind, content: Content, *, with_components: bool) -> Interpretation:
    """What Karmada reads; raises NotInterpretedError. Components, if they are asked for, take precedence."""
    if with_components and kind.components is not None:
        return Interpretation(components=tuple(kind.components(content)))
    if kind.replicas is None:
        return Interpretation()
    replicas, requirements = kind.replicas(content)
    return Interpretation(has_replicas=True, replicas=replicas, requirements=requirements)


# Reading as Lua does

_NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+\.[0-9]*|[0-9]*\.?[0-9]+)", re.ASCII)


def _get(content: Any, path: str) -> Any:
    """The value at a path of names; None if there is none on the way. Only numbers and booleans have no fields."""
    for name in path.split("."):
        if isinstance(content, bool | int | float):
            raise NotInterpretedError(f"expected an object with {name}, got {content}")
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def _spec(content: Content, name: str) -> Any:
    """A field of the spec, which must not be missing."""
    if content.get("spec") is None:
        raise NotInterpretedError("expected a spec, got nothing")
    return _get(content, f"spec.{name}")


def _number(value: Any, default: float | None) -> float | None:
    """The number, also one in a text without an exponent, as in Karmada; the default if there is none."""
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.fullmatch(text) is None:
            return default
        return float(text) if "." in text else int(text, 0 if "x" in text.lower() else 10)
    return default if isinstance(value, bool) or not isinstance(value, int | float) else value


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _component(
    name: str, replicas: Any, requirements: ReplicaRequirements | None, where: str = "replicas"
) -> BindingComponent:
    count = replicas_of(replicas, f"{where} of {name}", whole=True)
    return BindingComponent(name=name, replicas=count, replica_requirements=requirements)


# Kinds with one pod template


def _replicated(content: Content) -> Replicas:
    replicas = replicas_of(_spec(content, "replicas"), "spec.replicas")
    return replicas, template_requirements(_spec(content, "template"), "spec.template")


def _parallel(content: Content) -> Replicas:
    return _parallelism(content), template_requirements(_spec(content, "template"), "spec.template")


def _notebook(content: Content) -> Replicas:
    return 1, template_requirements(_spec(content, "template"), "spec.template")


def _without_replicas(_: Content) -> Replicas:
    return 0, None


def _workflow(content: Content) -> Replicas:
    """Of the pods of an Argo Workflow, only on which nodes they may run is read, not what they request."""
    spec = {name: _spec(content, name) for name in ("affinity", "nodeSelector", "tolerations")}
    return _parallelism(content), template_requirements({"spec": spec}, "spec")


def _parallelism(content: Content) -> int:
    parallelism = _spec(content, "parallelism")
    return replicas_of(1 if parallelism is None else parallelism, "spec.parallelism")


# Kinds of several components, each with a pod template


def _volcano_job(content: Content) -> Iterator[BindingComponent]:
    for place, task in enumerate(_items(_get(content, "spec.tasks"))):
        name = _get(task, "name") or f"task-{place}"
        requirements = template_requirements(_get(task, "template"), f"spec.tasks[{place}].template")
        yield _component(name, _number(_get(task, "minAvailable"), 1), requirements, "minAvailable")


def _replica_specs(path: str, names: Iterable[str]) -> Callable[[Content], Iterator[BindingComponent]]:
    """The components of a training job, one for each type of replica that it has."""

    def components(content: Content) -> Iterator[BindingComponent]:
        for name in names:
            spec = _get(content, f"spec.{path}.{name}")
            if spec is not None:
                template = _get(spec, "template")
                requirements = (
                    None if template is None else template_requirements(template, f"spec.{path}.{name}.template")
                )
                yield _component(name.lower(), _number(_get(spec, "replicas"), 1), requirements)

    return components


def _mpi_job(content: Content) -> Iterator[BindingComponent]:
    """Karmada's order of the components is random; here it is that of the names."""
    specs = _get(content, "spec.mpiReplicaSpecs")
    for name, spec in sorted(specs.items()) if isinstance(specs, Mapping) else ():
        if _get(spec, "template") is not None:
            default = 0 if name.lower() == "worker" else 1
            requirements = template_requirements(spec["template"], f"spec.mpiReplicaSpecs.{name}.template")
            yield _component(name, _number(_get(spec, "replicas"), default), requirements)


def _ray_cluster(path: str) -> Callable[[Content], Iterator[BindingComponent]]:
    def components(content: Content) -> Iterator[BindingComponent]:
        cluster = _get(content, path)
        head = _get(cluster, "headGroupSpec.template")
        if head is not None:
            yield _component("ray-head", 1, template_requirements(head, f"{path}.headGroupSpec.template"))
        for place, group in enumerate(_items(_get(cluster, "workerGroupSpecs"))):
            template, where = _get(group, "template"), f"{path}.workerGroupSpecs[{place}].template"
            requirements = None if template is None else template_requirements(template, where)
            yield _component(_get(group, "groupName") or f"worker-{place + 1}", _workers(group), requirements)

    return components


def _workers(group: Any) -> Any:
    replicas = _get(group, "replicas")
    return 0 if replicas is None else replicas


def _ray_service(content: Content) -> Replicas:
    """All pods together; one replica requests the largest cpu and memory of them, and all else that the head does."""
    path = "spec.rayClusterConfig"
    head = _get(content, f"{path}.headGroupSpec.template")
    if head is None:
        return 0, None
    found, total = template_requirements(head, f"{path}.headGroupSpec.template"), 1
    largest = dict((found.resource_request if found else None) or {})
    for place, group in enumerate(_items(_get(content, f"{path}.workerGroupSpecs"))):
        where = f"{path}.workerGroupSpecs[{place}]"
        total += replicas_of(_workers(group), f"{where}.replicas")
        template = _get(group, "template")
        worker = None if template is None else template_requirements(template, f"{where}.template")
        for name, amount in ((worker.resource_request if worker else None) or {}).items():
            if name in ("cpu", "memory") and quantities.parse(amount) > quantities.parse(largest.get(name, 0)):
                largest[name] = amount
    return total, None if found is None else msgspec.structs.replace(found, resource_request=largest or None)


# Flink


def _task_managers(content: Content) -> float:
    """As written, else as many as the parallelism of the job needs."""
    replicas = _number(_get(content, "spec.taskManager.replicas"), None)
    if replicas is not None:
        return replicas
    parallelism = _number(_get(content, "spec.job.parallelism"), None)
    configuration = _get(content, "spec.flinkConfiguration")
    name = "taskmanager.numberOfTaskSlots"
    n_slots = _number(configuration.get(name) if isinstance(configuration, Mapping) else None, None)
    return 1 if parallelism is None or not n_slots else math.ceil(parallelism / n_slots)


def _job_managers(content: Content) -> float:
    return _number(_get(content, "spec.jobManager.replicas"), 1) or 0


def _flink_requests(content: Content) -> Replicas:
    """All pods together; one replica requests the larger cpu and the larger memory."""
    managers = [_get(content, f"spec.{name}.resource") for name in ("taskManager", "jobManager")]
    requests: Quantities = {}
    cpus = [cpu for one in managers if (cpu := _get(one, "cpu")) is not None]
    if len(cpus) == 1:
        requests["cpu"] = request_of(cpus[0], "cpu")
    elif cpus:
        numbers = [_number(cpu, None) for cpu in cpus]
        if None in numbers:
            raise NotInterpretedError(f"expected numbers of cpu for both managers, got {cpus[0]!r} and {cpus[1]!r}")
        requests["cpu"] = max(number for number in numbers if number is not None)
    memories = [memory for one in managers if (memory := _get(one, "memory")) is not None]
    if memories:
        larger = request_of(memories[0], "memory")
        if len(memories) > 1 and _bytes(memories[1]) > _bytes(memories[0]):
            larger = memories[1]
        requests["memory"] = larger
    replicas = replicas_of(_job_managers(content) + _task_managers(content), "the sum of the managers")
    namespace = _get(content, "metadata.namespace") or ""
    priority = _get(content, "spec.podTemplate.spec.priorityClassName") or ""
    return replicas, ReplicaRequirements(
        resource_request=requests or None, namespace=namespace, priority_class_name=priority
    )


def _flink_components(content: Content) -> Iterator[BindingComponent]:
    priority = _get(content, "spec.podTemplate.spec.priorityClassName") or ""
    for name, path, replicas in (
        ("jobmanager", "spec.jobManager.resource", _job_managers(content)),
        ("taskmanager", "spec.taskManager.resource", _task_managers(content)),
    ):
        requests: Quantities = {}
        cpu, memory = _get(content, f"{path}.cpu"), _get(content, f"{path}.memory")
        if cpu is not None:
            requests["cpu"] = request_of(cpu, f"{path}.cpu")
        if memory is not None:
            requests["memory"] = _bytes(memory)
        yield _component(
            name, replicas, ReplicaRequirements(resource_request=requests or None, priority_class_name=priority)
        )


def _bytes(memory: Any) -> float:
    """An amount of memory as a number (Karmada's kube library: `getResourceQuantity`), which takes texts only."""
    if not isinstance(memory, str):
        raise NotInterpretedError(f"expected a text with a quantity for memory, got {memory!r}")
    request_of(memory, "memory")
    return float(quantities.parse(memory))


# Spark: memory is written as for a Java virtual machine, and has an overhead

_JAVA_MEMORY = re.compile(r"([0-9]+\.?[0-9]*)([a-z]*)", re.ASCII)
_JAVA_UNITS = {"b": 0, "k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "t": 4, "tb": 4, "p": 5, "pb": 5}
_BINARY_SUFFIXES = ("B", "Ki", "Mi", "Gi", "Ti", "Pi")
_JVM_OVERHEAD, _OTHER_OVERHEAD, _LEAST_OVERHEAD = 0.10, 0.40, (384.0, 2)
JavaMemory = tuple[float, int]  # an amount, and the power of 1,024 that it is given in


def _spark_components(content: Content) -> Iterator[BindingComponent]:
    language = _get(content, "spec.type")
    if not isinstance(language, str):
        raise NotInterpretedError("expected a text at spec.type")
    usual = _JVM_OVERHEAD if language.lower() in ("java", "scala") else _OTHER_OVERHEAD
    factor = _number(_get(content, "spec.memoryOverheadFactor"), usual) or 0.0
    yield _component("driver", 1, _spark_requirements(content, "spec.driver", factor))
    executors = _number(_get(content, "spec.executor.instances"), 1)
    if _get(content, "spec.dynamicAllocation.enabled"):
        dynamic = (_get(content, f"spec.dynamicAllocation.{name}") for name in ("initialExecutors", "minExecutors"))
        executors = max(executors or 0, *(_number(count, 1) or 0 for count in dynamic))
    yield _component("executor", executors, _spark_requirements(content, "spec.executor", factor))


def _spark_requirements(content: Content, path: str, factor: float) -> ReplicaRequirements:
    part = _get(content, path)
    requests: dict[str, Quantity] = {
        "cpu": request_of(_get(part, "cores") or 1, f"{path}.cores"),
        "memory": request_of(_spark_memory(part, path, factor), f"{path}.memory"),
    }
    gpu = _get(part, "gpu")
    amount = _number(_get(gpu, "quantity"), 0) or 0
    if _get(gpu, "name") and amount > 0:
        requests[str(_get(gpu, "name"))] = amount
    return ReplicaRequirements(resource_request=requests, priority_class_name=_get(part, "priorityClassName") or "")


def _spark_memory(part: Any, path: str, factor: float) -> str:
    """The memory and its overhead, in the smaller of their units, as a text with six decimals."""
    memory = _java_memory(_get(part, "memory") or "1g", f"{path}.memory")
    written = _get(part, "memoryOverhead")
    if written:
        overhead = _java_memory(written, f"{path}.memoryOverhead")
    else:
        unit = min(memory[1], _LEAST_OVERHEAD[1])
        overhead = max(_in_unit((memory[0] * factor, memory[1]), unit), _in_unit(_LEAST_OVERHEAD, unit)), unit
    unit = min(memory[1], overhead[1])
    return f"{_in_unit(memory, unit) + _in_unit(overhead, unit):f}{_BINARY_SUFFIXES[unit]}"


def _java_memory(written: Any, where: str) -> JavaMemory:
    found = _JAVA_MEMORY.fullmatch(str(written).lower())
    if found is None or found[2] not in _JAVA_UNITS:
        raise NotInterpretedError(f"expected memory such as 512m or 2g at {where}, got {written!r}")
    return float(found[1]), _JAVA_UNITS[found[2]]


def _in_unit(memory: JavaMemory, unit: int) -> float:
    return memory[0] * float(1024 ** (memory[1] - unit))


_KRUISE = "apps.kruise.io/v1alpha1"
_TF_TYPES = ("PS", "Worker", "Chief", "Master", "Evaluator")
# By version and kind. DaemonSets of Kruise and all other kinds of the same groups are propagated as they are.
INTERPRETED: dict[tuple[str, str], InterpretedKind] = {
    (_KRUISE, "CloneSet"): InterpretedKind(_replicated),
    (_KRUISE, "UnitedDeployment"): InterpretedKind(_replicated),
    (_KRUISE, "BroadcastJob"): InterpretedKind(_parallel),
    (_KRUISE, "SidecarSet"): InterpretedKind(_without_replicas),
    ("apps.kruise.io/v1beta1", "StatefulSet"): InterpretedKind(_replicated),
    ("argoproj.io/v1alpha1", "Workflow"): InterpretedKind(_workflow),
    ("batch.volcano.sh/v1alpha1", "Job"): InterpretedKind(None, _volcano_job),
    ("flink.apache.org/v1beta1", "FlinkDeployment"): InterpretedKind(_flink_requests, _flink_components),
    ("kubeflow.org/v1", "Notebook"): InterpretedKind(_notebook),
    ("kubeflow.org/v1", "PyTorchJob"): InterpretedKind(
        None, _replica_specs("pytorchReplicaSpecs", ("Master", "Worker"))
    ),
    ("kubeflow.org/v1", "TFJob"): InterpretedKind(None, _replica_specs("tfReplicaSpecs", _TF_TYPES)),
    ("kubeflow.org/v2beta1", "MPIJob"): InterpretedKind(None, _mpi_job),
    ("ray.io/v1", "RayCluster"): InterpretedKind(None, _ray_cluster("spec")),
    ("ray.io/v1", "RayJob"): InterpretedKind(None, _ray_cluster("spec.rayClusterSpec")),
    ("ray.io/v1", "RayService"): InterpretedKind(_ray_service),
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): InterpretedKind(None, _spark_components),
}
