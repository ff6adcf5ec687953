"""
A pod, or the template that pods are made from: which rule looks at which field.

Mirrors `ValidatePodCreate` and `ValidatePodTemplateSpec` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.validating import affinity_annotation as own_annotations
from bayplan.validating import (
    causes,
    fields,
    go_text,
    metadata,
    names,
    node_affinity,
    pod_affinity,
    resources,
    selectors,
    shapes,
    tolerations,
    topology_spread,
)
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import meta as wire_meta
from bayplan.wire import pods as wire_pods

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
GATED = "cannot be set until all schedulingGates have been cleared"


def pod(field: Field) -> list[Cause]:
    """What is wrong with a pod that somebody creates."""
    if misshapen := _shape(field):
        return misshapen
    labels = field.under("metadata", "labels").labels()
    return [
        *metadata.causes_of(field["metadata"], names.dns_subdomain),
        *_spec(field["spec"], labels),
        *_gated(field["spec"]),
        *own_annotations.causes_of(field["metadata"], labels),
    ]


def template(field: Field) -> list[Cause]:
    """What is wrong with a pod template; nobody has merged its label keys into its selectors yet."""
    if misshapen := _shape(field):
        return misshapen
    written = field["metadata"]
    return [
        # Upstream leaves "metadata" out of these two paths.
        *selectors.labels(written.at("labels", field["labels"].path)),
        *metadata.annotated(written.at("annotations", field["annotations"].path)),
        *_spec(field["spec"], None),
        *own_annotations.causes_of(written, None),
    ]


def _shape(field: Field) -> list[Cause]:
    return [
        *shapes.causes_of(field["metadata"], wire_meta.ObjectMeta),
        *(shapes.causes_of(field["spec"], wire_pods.PodSpec) or resources.unreadable(field["spec"])),
        *shapes.causes_of(field.under("spec", "restartPolicy"), str),
    ]


def _spec(spec: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    affinity = spec["affinity"]
    return [
        *container_causes(spec, template=pod_labels is None),
        *causes.defaulted(spec["restartPolicy"], RESTART_POLICIES),
        *selectors.labels(spec["nodeSelector"]),
        *node_affinity.causes_of(affinity["nodeAffinity"]),
        *pod_affinity.causes_of(affinity, pod_affinity.Rules(pod_labels)),
        *_gates(spec["schedulingGates"]),
        *topology_spread.causes_of(spec["topologySpreadConstraints"], pod_labels),
        *_subdomain(spec["nodeName"]),
        *tolerations.causes_of(spec["tolerations"]),
        *_subdomain(spec["priorityClassName"]),
        *_preemption(spec["preemptionPolicy"]),
        *resources.overhead(spec["overhead"]),
    ]


def _subdomain(field: Field) -> list[Cause]:
    return names.invalid(field.path, field.text(), names.dns_subdomain(field.text())) if field.text() else []


def _gates(gates: Field) -> list[Cause]:
    seen: set[str] = set()
    found: list[Cause] = []
    for gate in gates.items():
        name = gate["name"].text()
        found += names.invalid(gate.path, name, names.label_key(name))
        if name in seen:
            found.append(causes.duplicate(gate.path, go_text.quoted(name)))
        seen.add(name)
    return found


def _gated(spec: Field) -> list[Cause]:
    if spec["nodeName"].text() and spec["schedulingGates"].items():
        return [causes.forbidden(spec["nodeName"].path, GATED)]
    return []


def _preemption(field: Field) -> list[Cause]:
    if not field.present or field.text() in PREEMPTION_POLICIES:
        return []
    return causes.defaulted(field, PREEMPTION_POLICIES) if field.text() else [causes.required(field.path)]


# RF merged from validating.containers: What a pod's containers must have before anybody places them: names, images,
# ports, resources and restart policies. Mirrors `validateContainers` in pkg/apis/core/validation/validation.go as far
# as placing goes; probes, mounts and security are looked at in `running`.

PROTOCOLS = ("SCTP", "TCP", "UDP")
PORT_RANGE = "must be between 1 and 65535, inclusive"
CONTAINERS_RESTART_POLICIES = ("Always", "Never", "OnFailure")
HOST_NETWORK = "must match `containerPort` when `hostNetwork` is true"


def container_causes(spec: Field, *, template: bool) -> list[Cause]:
    """What is wrong with the containers and init containers of a pod spec."""
    regular, init = spec["containers"].items(), spec["initContainers"].items()
    if spec["hostNetwork"].flag() and not template:
        regular, init = [_on_host(container) for container in regular], [_on_host(container) for container in init]
    found = [] if regular else [causes.required(spec["containers"].path)]
    for container in [*regular, *init]:
        found += _container(container, template=template)
    found += _repeated_names(regular, init)
    found += _repeated_host_ports(regular)
    for container in init:  # they run one by one; upstream reports all of them at the first one's path
        first = fields.entry(spec["initContainers"].path, 0)
        found += _repeated_host_ports([Field(first, container.value)])
    found += resources.of_pod(spec["resources"])
    if spec["hostNetwork"].flag():
        found += _host_network(regular)
    return found


def _container(container: Field, *, template: bool) -> list[Cause]:
    name, image = container["name"], container["image"]
    found = names.invalid(name.path, name.text(), names.dns_label(name.text())) if name.text() else []
    found += [causes.required(field.path) for field in (name, image) if not field.text()]
    for port in container["ports"].items():
        found += _port(port)
    found += resources.of_container(container["resources"], template=template)
    policy = container["restartPolicy"]
    if policy.present and policy.text() not in CONTAINERS_RESTART_POLICIES:
        found.append(causes.unsupported(policy.path, go_text.as_json(policy.text()), CONTAINERS_RESTART_POLICIES))
    return found


def _port(port: Field) -> list[Cause]:
    found: list[Cause] = []
    inside, outside, protocol = port["containerPort"], port["hostPort"], port["protocol"]
    if not inside.number():
        found.append(causes.required(inside.path))
    found += [
        causes.invalid(field.path, str(field.number()), PORT_RANGE)
        for field in (inside, outside)
        if not 0 <= field.number() <= 65535
    ]
    if protocol.text() and protocol.text() not in PROTOCOLS:
        found.append(causes.unsupported(protocol.path, go_text.as_json(protocol.text()), PROTOCOLS))
    return found


def _repeated_names(regular: list[Field], init: list[Field]) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for container in [*regular, *init]:
        name = container["name"]
        if name.text() in seen:
            found.append(causes.duplicate(name.path, go_text.quoted(name.text())))
        elif name.text() or container in regular:  # a nameless init container is no namesake of the next one
            seen.add(name.text())
    return found


def _repeated_host_ports(containers: list[Field]) -> list[Cause]:
    seen: set[str] = set()
    found: list[Cause] = []
    for port in _host_ports(containers):
        key = f"{port['protocol'].text() or 'TCP'}/{port['hostIP'].text()}/{port['hostPort'].number()}"
        if key in seen:
            found.append(causes.duplicate(port["hostPort"].path, go_text.quoted(key)))
        seen.add(key)
    return found


def _on_host(container: Field) -> Field:
    """The container with a host port for every port: a pod in the host's network gets the same number there."""
    ports = [
        {**port.value, "hostPort": port["hostPort"].number() or port["containerPort"].number()}
        for port in container["ports"].items()
        if isinstance(port.value, Mapping)
    ]
    return Field(container.path, {**container.value, "ports": ports} if isinstance(container.value, Mapping) else None)


def _host_network(containers: list[Field]) -> list[Cause]:
    return [
        causes.invalid(port["hostPort"].path, str(port["hostPort"].number()), HOST_NETWORK)
        for port in _host_ports(containers)
        if port["hostPort"].number() != port["containerPort"].number()
    ]


def _host_ports(containers: list[Field]) -> list[Field]:
    return [port for container in containers for port in container["ports"].items() if port["hostPort"].number()]
