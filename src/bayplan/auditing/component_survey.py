"""
Which parts of the control plane run where: seen as pods, named by endpoints, or taken to be one per control-plane node.

Knows nothing of domains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing.layout import (
    COMPONENTS,
    CONTROL_PLANE,
    DECLARED,
    ETCD,
    ETCD_ROLE,
    INFERRED,
    OBSERVED,
    WORKER,
    AuditNode,
    Layout,
    Member,
)
from bayplan.auditing.objects import ConfigMap, Pod

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
NO_KUBE_SYSTEM = "the pods given include none of kube-system: which components run where is not known"

Members = dict[str, list[Member]]


def with_components(
    layout: Layout, pods: Sequence[Pod] | None, config_maps: Iterable[ConfigMap], addresses: Mapping[str, str]
) -> Layout:
    """The layout with members of every component, as well as they are known, and the roles these give to nodes."""
    seen = _seen(layout, pods or ())
    nodes = tuple(_with_role(node, seen) for node in layout.nodes)
    layout = msgspec.structs.replace(layout, nodes=nodes)
    if pods and not any(pod.metadata.namespace in _NAMESPACES for pod in pods):
        return msgspec.structs.replace(layout, notes=(*layout.notes, NO_KUBE_SYSTEM))
    endpoints = _endpoints(pods or (), config_maps)
    external = tuple(AuditNode(name=e, hosted=False) for e in endpoints if e not in addresses)
    members: Members = {}
    evidence: dict[str, str] = {}
    for component in COMPONENTS:
        if component == ETCD and endpoints and not seen[ETCD]:
            ready = {node.name: node.ready for node in nodes}
            named = [addresses.get(endpoint, endpoint) for endpoint in endpoints]
            members[ETCD], evidence[ETCD] = [Member(name, ready.get(name, True)) for name in named], DECLARED
        elif seen[component] or (component != ETCD and any(seen[other] for other in COMPONENTS if other != ETCD)):
            members[component], evidence[component] = seen[component], OBSERVED
        else:
            members[component], evidence[component] = _assumed(layout, component), INFERRED
    return _filled(layout, members, evidence, external)


def _filled(layout: Layout, members: Members, evidence: Mapping[str, str], external: tuple[AuditNode, ...]) -> Layout:
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


def _assumed(layout: Layout, component: str) -> list[Member]:
    """One on each control-plane node; etcd on the nodes of its own role where there are any."""
    of_etcd = [node for node in layout.nodes if ETCD_ROLE in node.roles]
    nodes = of_etcd if component == ETCD and of_etcd else layout.control_plane
    return [Member(node.name, node.ready) for node in nodes]


def _seen(layout: Layout, pods: Iterable[Pod]) -> Members:
    """Instances that run: the pod exists, is not going, and is in phase Running."""
    ready = {node.name: node.ready for node in layout.nodes}
    found: Members = {component: [] for component in COMPONENTS}
    for pod in pods:
        component = component_of(pod)
        gone = pod.metadata.deletion_timestamp or pod.status.phase not in ("Running", "")
        if component and pod.spec.node_name in ready and (component == ETCD or not gone):
            well = not gone and all(c.status == "True" for c in pod.status.conditions or () if c.type == "Ready")
            found[component].append(Member(pod.spec.node_name, well and ready[pod.spec.node_name]))
    return found


def component_of(pod: Pod) -> str:
    """The component a pod is an instance of; empty for any other pod."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels or {}
    if namespace not in _NAMESPACES:
        return ""
    only = _NAMESPACES[namespace]
    if only is not None:
        return only if _OPENSHIFT_APPS & {labels.get("app", "")} or labels.get("etcd") == "true" else ""
    named = next((labels[key] for key in _KEYS if labels.get(key) in COMPONENTS), "")
    if named:
        return named
    # Mirror pods without labels are still called after their component and their node.
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


def _endpoints(pods: Iterable[Pod], config_maps: Iterable[ConfigMap]) -> list[str]:
    """The addresses of etcd where it is not on the control-plane nodes themselves; none if stacked or not told."""
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
