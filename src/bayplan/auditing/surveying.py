"""From the objects of a cluster to its layout: roles, domains, components. Knows nothing of rules or files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing import component_survey
from bayplan.auditing.catalogue import BARE_METAL, CSI_ZONE_KEY, ZONE_IS_HOST, Catalogue
from bayplan.auditing.layout import (
    CLOUD,
    CONTROL_PLANE,
    DECLARED,
    ETCD_ROLE,
    HOST,
    INFERRED,
    LEVELS,
    OBSERVED,
    REGION,
    WORKER,
    ZONE,
    AuditNode,
    Layout,
)
from bayplan.auditing.objects import ConfigMap, Lease, Machine, Node, Pod

Inventory = Mapping[str, Mapping[str, str]]  # by node or by the server's UUID: the domain of each level

CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
IGNORED = "bayplan.io/audit"  # `ignore` on a pod: its workload need not be spread
ETCD_LABEL = "node-role.kubernetes.io/etcd"
_REPLICATED = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
_OWNER_KIND = "cluster.x-k8s.io/owner-kind"
_COPIED = {ZONE: "topology.kubernetes.io/zone", REGION: "topology.kubernetes.io/region"}


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an input has to say; only nodes are needed."""

    nodes: Sequence[Node]
    pods: Sequence[Pod] | None = None
    leases: Sequence[Lease] = ()
    machines: Sequence[Machine] = ()
    config_maps: Sequence[ConfigMap] = ()
    inventory: Inventory = msgspec.field(default_factory=dict)


def layout_of(survey: Survey, catalogue: Catalogue | None = None) -> Layout:
    """The layout of the cluster. Of nodes given twice the first counts."""
    catalogue = catalogue or Catalogue()
    found = {node.metadata.name: node for node in reversed(survey.nodes)}
    ordered = [node for node in survey.nodes if found[node.metadata.name] is node]
    machines = _machines_by_node(survey.machines, ordered)
    copied = _copied_labels(survey.pods or ())
    nodes = [
        _node(node, catalogue, survey.inventory, (*machines.get(name, ()), *copied.get(name, ())))
        for node in ordered
        for name in (node.metadata.name,)
    ]
    addresses = {
        address.address: node.metadata.name
        for node in ordered
        for address in node.status.addresses or ()
        if address.type == "InternalIP"
    }
    return component_survey.with_components(
        Layout(nodes=tuple(nodes), n_leases=sum(map(_is_api_server, survey.leases))),
        survey.pods,
        survey.config_maps,
        addresses,
    )


def _is_api_server(lease: Lease) -> bool:
    labels = lease.metadata.labels or {}
    named = labels.get("apiserver.kubernetes.io/identity") or labels.get("k8s.io/component")
    return named == "kube-apiserver"


def _node(node: Node, catalogue: Catalogue, inventory: Inventory, second: Iterable[tuple[str, str, str]]) -> AuditNode:
    labels, annotations = node.metadata.labels or {}, node.metadata.annotations or {}
    declared, keys = _declared(labels, catalogue)
    vacuous = declared.get(HOST, "") if is_vacuous(declared.get(HOST, ""), node) else ""
    domains: dict[str, str | None] = {level: declared.get(level) for level in LEVELS}
    evidence = dict.fromkeys(declared, DECLARED)
    if vacuous:
        domains[HOST] = None
        del evidence[HOST]
    for level, value in _inferred(node, domains, catalogue).items():
        domains[level], evidence[level] = value, INFERRED
    seen = _of_inventory(node, inventory)
    others = [*second, *(("inventory", level, value) for level, value in seen.items() if level in declared)]
    for level, value in seen.items():
        domains[level], evidence[level] = value, OBSERVED
    if CSI_ZONE_KEY in labels and ZONE in declared:
        others.append((CSI_ZONE_KEY, ZONE, labels[CSI_ZONE_KEY]))
    info = node.status.node_info
    return AuditNode(
        name=node.metadata.name,
        roles=_roles(labels, annotations, node),
        role_labels=any(label in labels for label in CONTROL_PLANE_LABELS),
        labels=labels,
        annotations=annotations,
        domains=domains,
        evidence=evidence,
        keys=keys,
        second=tuple(others),
        vacuous=vacuous,
        provider_id=node.spec.provider_id,
        created=node.metadata.creation_timestamp or "",
        kernel=info.kernel_version,
        os_image=info.os_image,
        kubelet=info.kubelet_version,
        ready=all(c.status == "True" for c in node.status.conditions or () if c.type == "Ready"),
        unschedulable=node.spec.unschedulable,
    )


def _declared(labels: Mapping[str, str], catalogue: Catalogue) -> tuple[dict[str, str], dict[str, str]]:
    """Value and key by level; an empty label says nothing."""
    values: dict[str, str] = {}
    keys: dict[str, str] = {}
    for level, candidates in catalogue.keys.items():
        for key in candidates:
            if labels.get(key):
                values[level], keys[level] = labels[key], key
                break
    return values, keys


def is_vacuous(host: str, node: Node) -> bool:
    """Whether the value names the virtual machine rather than what it runs on."""
    info, provider = node.status.node_info, node.spec.provider_id
    own = (node.metadata.name, info.system_uuid, info.machine_id, provider, provider.rpartition("/")[2])
    return bool(host) and host.casefold() in {name.casefold() for name in own if name}


def _inferred(node: Node, domains: Mapping[str, str | None], catalogue: Catalogue) -> dict[str, str]:
    """What follows from the provider: machines that are nodes, zones that are hosts, the cloud."""
    scheme, _, rest = node.spec.provider_id.partition("://")
    found: dict[str, str] = {}
    if not domains[HOST]:
        if catalogue.bare_metal or scheme in BARE_METAL:
            found[HOST] = node.metadata.name
        elif (catalogue.zone_is_host or scheme in ZONE_IS_HOST) and domains[ZONE]:
            found[HOST] = str(domains[ZONE])
    if scheme and rest and not domains[CLOUD]:
        found[CLOUD] = scheme
    region = rest.partition("/")[0]
    if scheme == "openstack" and region and not domains[REGION]:
        found[REGION] = region
    return found


def _of_inventory(node: Node, inventory: Inventory) -> dict[str, str]:
    uuid = node.spec.provider_id.rpartition("/")[2]
    entry = inventory.get(node.metadata.name) or (inventory.get(uuid) if uuid else None) or {}
    return {level: value for level, value in entry.items() if level in LEVELS and value}


def _roles(labels: Mapping[str, str], annotations: Mapping[str, str], node: Node) -> tuple[str, ...]:
    """By labels, taints and Cluster API; the presence of a label decides, not its value."""
    owner = annotations.get(_OWNER_KIND, "")
    tainted = any(taint.key in CONTROL_PLANE_LABELS for taint in node.spec.taints or ())
    roles = []
    if any(label in labels for label in CONTROL_PLANE_LABELS) or tainted or owner == "KubeadmControlPlane":
        roles.append(CONTROL_PLANE)
    if ETCD_LABEL in labels:
        roles.append(ETCD_ROLE)
    return tuple(roles) or (WORKER,)


def _machines_by_node(machines: Iterable[Machine], nodes: Iterable[Node]) -> dict[str, list[tuple[str, str, str]]]:
    """The zone that Cluster API meant each node for."""
    by_provider = {node.spec.provider_id: node.metadata.name for node in nodes if node.spec.provider_id}
    found: dict[str, list[tuple[str, str, str]]] = {}
    for machine in machines:
        reference = machine.status.node_ref
        name = reference.name if reference else by_provider.get(machine.spec.provider_id, "")
        if name and machine.spec.failure_domain:
            source = f"Machine {machine.metadata.name}"
            found.setdefault(name, []).append((source, ZONE, machine.spec.failure_domain))
    return found


def _copied_labels(pods: Iterable[Pod]) -> dict[str, list[tuple[str, str, str]]]:
    """Zone and region as they were when a pod was bound: Kubernetes copies them since 1.35. One of each is enough."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for pod in pods:
        labels = pod.metadata.labels or {}
        if not pod.spec.node_name or pod.metadata.deletion_timestamp:
            continue
        for level, key in _COPIED.items():
            if labels.get(key):
                source = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
                found.setdefault(pod.spec.node_name, {}).setdefault((level, labels[key]), source)
    return {
        node: [(source, level, value) for (level, value), source in entries.items()] for node, entries in found.items()
    }


def workloads_of(pods: Iterable[Pod], excluded: re.Pattern[str] | None = None) -> dict[str, list[str]]:
    """
    The node of every running replica, by namespace and owner.

    Pods of DaemonSets and Jobs, mirror pods and bare pods are left out: they are no replicas of each other. So are
    those whose namespace and owner are `excluded`, and those that carry the annotation.
    """
    found: dict[str, list[str]] = {}
    for pod in pods:
        owner = next((owner for owner in pod.metadata.owner_references or () if owner.controller is not False), None)
        if owner is None or owner.kind not in _REPLICATED or not pod.spec.node_name or pod.metadata.deletion_timestamp:
            continue
        if pod.status.phase in ("Succeeded", "Failed"):
            continue
        kind, name = owner.kind, owner.name
        template = (pod.metadata.labels or {}).get("pod-template-hash")
        if kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
            kind, name = "Deployment", name.removesuffix(f"-{template}")
        ignored = (pod.metadata.annotations or {}).get(IGNORED) == "ignore"
        if ignored or (excluded is not None and excluded.fullmatch(f"{pod.metadata.namespace}/{name}")):
            continue
        found.setdefault(f"{kind} {pod.metadata.namespace}/{name}", []).append(pod.spec.node_name)
    return found
