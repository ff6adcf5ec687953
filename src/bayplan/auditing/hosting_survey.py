"""
A control plane that runs as pods of another cluster: its members there, on nodes that this cluster does not have.

Pods are known by their containers, which all hosting products call after the component. Knows nothing of domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bayplan.auditing import component_survey
from bayplan.auditing.layout import (
    COMPONENTS,
    CONTROL_PLANE,
    ETCD,
    ETCD_ROLE,
    OBSERVED,
    AuditNode,
    ComponentInstance,
    Layout,
)
from bayplan.auditing.objects import ObservedPod
from bayplan.auditing.workload_groups import runs

PREFIX = "hosting/"  # no node's name holds a slash, so the two clusters' nodes cannot be mistaken for each other

NOTHING_HOSTED = "no pod of the hosting cluster's dump runs a part of a control plane"


def with_hosting(layout: Layout, nodes: Sequence[AuditNode], pods: Iterable[ObservedPod]) -> Layout:
    """The layout with the hosting cluster's nodes, and the members of the control plane on them."""
    ready = {node.name: node.ready for node in nodes}
    members: component_survey.Members = {}
    for pod in pods:
        if not runs(pod) or pod.spec.node_name not in ready:
            continue
        for component in components_of(pod):
            healthy = ready[pod.spec.node_name] and component_survey.is_well(pod)
            members.setdefault(component, []).append(ComponentInstance(f"{PREFIX}{pod.spec.node_name}", healthy))
    # An etcd that is not among these pods may be shared, and live elsewhere.
    shown = [component for component in COMPONENTS if component in members or (members and component != ETCD)]
    known = {component: members.get(component, []) for component in shown}
    outside = tuple(_renamed(node, known) for node in nodes)
    layout = msgspec.structs.replace(layout, external=outside)
    if not known:
        layout = msgspec.structs.replace(layout, notes=(*layout.notes, NOTHING_HOSTED))
    return component_survey.filled(layout, known, dict.fromkeys(known, OBSERVED), outside)


def components_of(pod: ObservedPod) -> list[str]:
    """The components that its containers are; some products run several in one pod."""
    names = {container.name for container in pod.spec.containers or ()}
    return [component for component in COMPONENTS if component in names]


def _renamed(node: AuditNode, members: component_survey.Members) -> AuditNode:
    name = f"{PREFIX}{node.name}"
    runs_here = [component for component, found in members.items() if any(m.node == name for m in found)]
    roles = (CONTROL_PLANE,) if set(runs_here) - {ETCD} else (ETCD_ROLE,) if runs_here else ()
    return msgspec.structs.replace(node, name=name, roles=roles, role_labels=False, components=tuple(runs_here))
