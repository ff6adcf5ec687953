"""
Which control-plane components run on which nodes: observed as pods, declared by endpoints, or assumed to run on every
control-plane node; and the control plane that runs as pods of another, hosting cluster.

Pods of a hosting cluster are recognised by their containers, which all hosting products name after the component.
Knows nothing of domains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing import second_sources
from bayplan.auditing.audit_input import AuditInput
from bayplan.auditing.layout import (
    APISERVER,
    COMPONENTS,
    CONTROL_PLANE,
    CONTROLLER_MANAGER,
    DECLARED,
    ETCD,
    ETCD_ROLE,
    INFERRED,
    OBSERVED,
    SCHEDULER,
    WORKER,
    AuditNode,
    ComponentInstance,
    Layout,
)
from bayplan.auditing.workload_groups import occupies_node
from bayplan.wire.observed import ObservedConfigMap, ObservedPod

_NAMESPACES = {
    "kube-system": None,
    "openshift-kube-apiserver": "kube-apiserver",
    "openshift-kube-controller-manager": "kube-controller-manager",
    "openshift-kube-scheduler": "kube-scheduler",
    "openshift-etcd": "etcd",
}
_KEYS = ("component", "k8s-app", "app")
_OPENSHIFT_APPS = {"openshift-kube-apiserver", "kube-controller-manager", "openshift-kube-scheduler", "etcd"}
_ENDPOINT = re.compile(r"https?://(\[[^\]]+\]|[^:/\s,\"']+)")
_LOOPBACK = ("127.", "localhost", "::1")
# The conditions in which Cluster API reports the health of the components on a control-plane Machine.
_HEALTH = {
    "APIServerPodHealthy": APISERVER,
    "ControllerManagerPodHealthy": CONTROLLER_MANAGER,
    "SchedulerPodHealthy": SCHEDULER,
    "EtcdPodHealthy": ETCD,
    "EtcdMemberHealthy": ETCD,
}
NO_KUBE_SYSTEM = "the pods given include none of kube-system: which components run where is not known"
HOSTING_PREFIX = "hosting/"  # a node name has no slash, so nodes of the two clusters cannot be confused
NOTHING_HOSTED = "no pod of the hosting cluster's dump runs a part of a control plane"

Members = dict[str, list[ComponentInstance]]


def with_components(layout: Layout, given: AuditInput, addresses: Mapping[str, str]) -> Layout:
    """
    The layout with the known members of every component, and the node roles that follow from them.

    `addresses` are the nodes by their own addresses.
    """
    pods = given.pods or ()
    running = _observed_members(layout, pods)
    api_servers = running[APISERVER] or _api_servers_by_address(layout, given, addresses)
    nodes = tuple(_with_role(node, {**running, APISERVER: api_servers}) for node in layout.nodes)
    layout = msgspec.structs.replace(layout, nodes=nodes, api_servers=_counted(given))
    known = _KnownMembers()
    known.put(APISERVER, api_servers, OBSERVED)
    endpoints = _endpoints(pods, given.config_maps)
    if endpoints and not running[ETCD]:
        ready = {node.name: node.ready for node in nodes}
        named = [addresses.get(endpoint, endpoint) for endpoint in endpoints]
        known.put(ETCD, [ComponentInstance(name, ready.get(name, True)) for name in named], DECLARED)
    elsewhere = bool(pods) and not any(pod.metadata.namespace in _NAMESPACES for pod in pods)
    listed = given.may_list("pods", "kube-system")
    if elsewhere and listed:
        layout = msgspec.structs.replace(layout, notes=(*layout.notes, NO_KUBE_SYSTEM))
    if listed and not elsewhere:  # otherwise a component that is not observed may still run
        any_observed = any(running[component] for component in COMPONENTS if component != ETCD)
        for component in COMPONENTS:
            if running[component] or (component != ETCD and any_observed):
                known.put(component, running[component], OBSERVED, even_if_empty=True)
            known.put(component, _assumed(layout, component), INFERRED, even_if_empty=bool(layout.control_plane))
    unhealthy = _unhealthy_members(layout, given)
    members = {
        component: [ComponentInstance(m.node, m.healthy and (component, m.node) not in unhealthy) for m in found]
        for component, found in known.members.items()
    }
    return with_members(
        layout, members, known.evidence, tuple(AuditNode(name=e) for e in endpoints if e not in addresses)
    )


class _KnownMembers:
    """The members of each component according to the first source that has them."""

    def __init__(self) -> None:
        self.members: Members = {}
        self.evidence: dict[str, str] = {}

    def put(
        self, component: str, members: list[ComponentInstance], evidence: str, *, even_if_empty: bool = False
    ) -> None:
        if component not in self.members and (members or even_if_empty):
            self.members[component], self.evidence[component] = members, evidence


def _api_servers_by_address(layout: Layout, given: AuditInput, addresses: Mapping[str, str]) -> list[ComponentInstance]:
    """
    API servers on nodes of this cluster, by their leases and by the addresses of the Service `kubernetes`.

    An address that belongs to no node may be that of a load balancer, so it is ignored.
    """
    ready = {node.name: node.ready for node in layout.nodes}
    by_hostname = {node.labels.get("kubernetes.io/hostname", node.name): node.name for node in layout.nodes}
    names = [by_hostname.get(host, "") for host in second_sources.api_server_hosts(given.leases)]
    names += [addresses.get(address, "") for address in _service_addresses(given)]
    return [ComponentInstance(name, ready[name]) for name in dict.fromkeys(names) if name in ready]


def _service_addresses(given: AuditInput) -> list[str]:
    return [
        address
        for one in given.endpoint_slices
        if (one.metadata.labels or {}).get("kubernetes.io/service-name", one.metadata.name) == "kubernetes"
        and one.metadata.namespace in ("", "default")
        for endpoint in one.endpoints or ()
        for address in endpoint.addresses or ()
    ]


def _counted(given: AuditInput) -> dict[str, int]:
    """The number of API servers by sources that do not always name their nodes."""
    counts = {
        "leases": len(second_sources.api_server_hosts(given.leases)),
        "addresses of the Service kubernetes": len(_service_addresses(given)),
    }
    return {source: n for source, n in counts.items() if n}


def _unhealthy_members(layout: Layout, given: AuditInput) -> set[tuple[str, str]]:
    """Members that Cluster API reports as unhealthy, as (component, node)."""
    found = set()
    names = {node.name for node in layout.nodes}
    for machine in given.machines:
        node = machine.status.node_ref.name if machine.status.node_ref else ""
        for condition in machine.status.conditions or ():
            component = _HEALTH.get(condition.type)
            if component and condition.status == "False" and node in names:
                found.add((component, node))
    return found


def with_members(
    layout: Layout, members: Members, evidence: Mapping[str, str], external: tuple[AuditNode, ...] = ()
) -> Layout:
    """The layout with these members, on its nodes too. Without a control plane, empty components stay unknown."""
    known = {component: tuple(found) for component, found in members.items() if layout.control_plane or found}
    on: dict[str, list[str]] = {}
    for component, found in known.items():
        for member in found:
            on.setdefault(member.node, []).append(component)
    nodes = tuple(
        msgspec.structs.replace(node, components=tuple(on.get(node.name, ()))) if known else node
        for node in layout.nodes
    )
    return msgspec.structs.replace(
        layout,
        nodes=nodes,
        members=known,
        component_evidence={component: evidence[component] for component in known},
        external=external,
    )


def _assumed(layout: Layout, component: str) -> list[ComponentInstance]:
    """One instance on each control-plane node; etcd on the nodes with its own role, if there are any."""
    of_etcd = [node for node in layout.nodes if ETCD_ROLE in node.roles]
    nodes = of_etcd if component == ETCD and of_etcd else layout.control_plane
    return [ComponentInstance(node.name, node.ready) for node in nodes]


def _observed_members(layout: Layout, pods: Iterable[ObservedPod]) -> Members:
    """Instances that run: the pod is not terminating and is in phase Running. etcd members count in any phase."""
    ready = {node.name: node.ready for node in layout.nodes}
    found: Members = {component: [] for component in COMPONENTS}
    for pod in pods:
        component = component_of(pod)
        if component and pod.spec.node_name in ready and (component == ETCD or not _is_gone(pod)):
            found[component].append(
                ComponentInstance(pod.spec.node_name, is_healthy(pod) and ready[pod.spec.node_name])
            )
    return found


def is_healthy(pod: ObservedPod) -> bool:
    """Whether the instance runs, is not terminating, and is ready."""
    ready = all(c.status == "True" for c in pod.status.conditions or () if c.type == "Ready")
    return not _is_gone(pod) and ready


def _is_gone(pod: ObservedPod) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.status.phase not in ("Running", "")


def component_of(pod: ObservedPod) -> str:
    """The component that the pod is an instance of; empty for any other pod."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels or {}
    if namespace not in _NAMESPACES:
        return ""
    only = _NAMESPACES[namespace]
    if only is not None:
        return only if _OPENSHIFT_APPS & {labels.get("app", "")} or labels.get("etcd") == "true" else ""
    named = next((labels[key] for key in _KEYS if labels.get(key) in COMPONENTS), "")
    if named:
        return named
    # Mirror pods without labels are still named after their component and their node.
    mirrored = "kubernetes.io/config.mirror" in (pod.metadata.annotations or {})
    stem = pod.metadata.name.removesuffix(f"-{pod.spec.node_name}")
    if stem == "etcd-manager-main":
        return ETCD
    return stem if mirrored and stem in COMPONENTS else ""


def _with_role(node: AuditNode, seen: Members) -> AuditNode:
    runs = {component for component, found in seen.items() if any(m.node == node.name for m in found)}
    roles = set(node.roles)
    if runs - {ETCD}:
        roles.add(CONTROL_PLANE)
    if ETCD in runs and CONTROL_PLANE not in roles:
        roles.add(ETCD_ROLE)
    if roles - {WORKER}:
        roles.discard(WORKER)
    order = (CONTROL_PLANE, ETCD_ROLE, WORKER)
    return msgspec.structs.replace(node, roles=tuple(role for role in order if role in roles))


def _endpoints(pods: Iterable[ObservedPod], config_maps: Iterable[ObservedConfigMap]) -> list[str]:
    """The addresses of an etcd outside the control-plane nodes; none if it is stacked or unknown."""
    texts = [
        word.partition("=")[2]
        for pod in pods
        if component_of(pod) == "kube-apiserver"
        for container in pod.spec.containers or ()
        for word in (*(container.command or ()), *(container.args or ()))
        if word.startswith("--etcd-servers=")
    ]
    for config in config_maps:
        text = (config.data or {}).get("ClusterConfiguration", "")
        if config.metadata.name == "kubeadm-config" and "external:" in text:
            texts.append(text.partition("external:")[2].partition("\nkind")[0])
    hosts = [host.strip("[]") for text in texts for host in _ENDPOINT.findall(text)]
    return list(dict.fromkeys(host for host in hosts if not host.startswith(_LOOPBACK)))


# Hosted control planes


def with_hosting(layout: Layout, nodes: Sequence[AuditNode], pods: Iterable[ObservedPod]) -> Layout:
    """The layout with the hosting cluster's nodes, named so, as external ones, and the control plane on them."""
    ready = {node.name: node.ready for node in nodes}
    members: Members = {}
    for pod in pods:
        host = f"{HOSTING_PREFIX}{pod.spec.node_name}"
        if not occupies_node(pod) or host not in ready:
            continue
        for component in components_of(pod):
            members.setdefault(component, []).append(ComponentInstance(host, ready[host] and is_healthy(pod)))
    # An etcd that is not among these pods may be shared, and run elsewhere.
    shown = [component for component in COMPONENTS if component in members or (members and component != ETCD)]
    known = {component: members.get(component, []) for component in shown}
    outside = tuple(_with_roles(node, known) for node in nodes)
    layout = msgspec.structs.replace(layout, external=outside)
    if not known:
        layout = msgspec.structs.replace(layout, notes=(*layout.notes, NOTHING_HOSTED))
    return with_members(layout, known, dict.fromkeys(known, OBSERVED), outside)


def components_of(pod: ObservedPod) -> list[str]:
    """The components of its containers; some products run several in one pod."""
    names = {container.name for container in pod.spec.containers or ()}
    return [component for component in COMPONENTS if component in names]


def _with_roles(node: AuditNode, members: Members) -> AuditNode:
    runs_here = [component for component, found in members.items() if any(m.node == node.name for m in found)]
    roles = (CONTROL_PLANE,) if set(runs_here) - {ETCD} else (ETCD_ROLE,) if runs_here else ()
    return msgspec.structs.replace(node, roles=roles, role_labels=False, components=tuple(runs_here))
