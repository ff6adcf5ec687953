"""
What a pod's containers must have before anybody places them: names, images, ports, resources and restart policies.

Mirrors `validateContainers` in pkg/apis/core/validation/validation.go as far as placing goes; probes, mounts and
security are looked at in `running`.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.validating import causes, go_text, names, paths, resources
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

PROTOCOLS = ("SCTP", "TCP", "UDP")
PORT_RANGE = "must be between 1 and 65535, inclusive"
RESTART_POLICIES = ("Always", "Never", "OnFailure")
HOST_NETWORK = "must match `containerPort` when `hostNetwork` is true"


def causes_of(spec: Field, *, template: bool) -> list[Cause]:
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
        first = paths.entry(spec["initContainers"].path, 0)
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
    if policy.present and policy.text() not in RESTART_POLICIES:
        found.append(causes.unsupported(policy.path, go_text.as_json(policy.text()), RESTART_POLICIES))
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
