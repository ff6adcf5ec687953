"""
What the input says of a node besides its labels: its domains according to other sources, and what only it holds.

Does not decide which source is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bayplan.auditing.audit_input import AuditInput
from bayplan.auditing.catalogue import CSI_ZONE_KEY, Catalogue
from bayplan.auditing.layout import REGION, ZONE
from bayplan.auditing.workload_groups import occupies_node
from bayplan.wire.observed import ObservedLease, ObservedMachine, ObservedNode, ObservedPod
from bayplan.wire.storage import PersistentVolume

Statement = tuple[str, str, str]  # source, level, value
_COPIED = {ZONE: "topology.kubernetes.io/zone", REGION: "topology.kubernetes.io/region"}
_SUFFIXES = {"/zone": ZONE, "/region": REGION}  # of the topology keys of storage drivers
_HOSTNAME = "kubernetes.io/hostname"
_LEADERS = ("kube-scheduler", "kube-controller-manager")


def statements(given: AuditInput, nodes: Sequence[ObservedNode], catalogue: Catalogue) -> dict[str, list[Statement]]:
    """The domains of each node according to every source, each statement once."""
    found: dict[str, list[Statement]] = {node.metadata.name: [] for node in nodes}
    for source in (
        _of_providers(nodes),
        _of_machines(given.machines, nodes),
        _of_pods(given.pods or ()),
        _of_storage_drivers(given, nodes, catalogue),
        _of_volumes(given, nodes, catalogue),
    ):
        for name, statement in source:
            if name in found and statement not in found[name]:
                found[name].append(statement)
    return found


def region_of_provider(node: ObservedNode) -> str:
    """The region in a provider id such as `openstack://REGION/ID`, empty if there is none."""
    scheme, _, rest = node.spec.provider_id.partition("://")
    region, slash, _ = rest.partition("/")
    return region if scheme == "openstack" and slash else ""


def _of_providers(nodes: Iterable[ObservedNode]) -> Iterator[tuple[str, Statement]]:
    for node in nodes:
        if region := region_of_provider(node):
            yield node.metadata.name, ("the provider id", REGION, region)


def _of_machines(machines: Iterable[ObservedMachine], nodes: Iterable[ObservedNode]) -> Iterator[tuple[str, Statement]]:
    """The zone that Cluster API intended for each node."""
    for name, machine in machines_by_node(machines, nodes):
        if machine.spec.failure_domain:
            yield name, (f"Machine {machine.metadata.name}", ZONE, machine.spec.failure_domain)


def machines_by_node(
    machines: Iterable[ObservedMachine], nodes: Iterable[ObservedNode]
) -> Iterator[tuple[str, ObservedMachine]]:
    """The Machines with the names of their nodes, by reference or by provider id."""
    by_provider = {node.spec.provider_id: node.metadata.name for node in nodes if node.spec.provider_id}
    for machine in machines:
        reference = machine.status.node_ref
        name = reference.name if reference else by_provider.get(machine.spec.provider_id, "")
        if name:
            yield name, machine


def _of_pods(pods: Iterable[ObservedPod]) -> Iterator[tuple[str, Statement]]:
    """Zone and region at the time a pod was bound, which Kubernetes copies since 1.35; each value once per node."""
    seen: set[tuple[str, str, str]] = set()
    for pod in pods:
        labels, node = pod.metadata.labels or {}, pod.spec.node_name
        if not node or pod.metadata.deletion_timestamp:
            continue
        for level, key in _COPIED.items():
            value = labels.get(key)
            if value and (node, level, value) not in seen:
                seen.add((node, level, value))
                yield node, (f"Pod {pod.metadata.namespace}/{pod.metadata.name}", level, value)


def _of_storage_drivers(
    given: AuditInput, nodes: Iterable[ObservedNode], catalogue: Catalogue
) -> Iterator[tuple[str, Statement]]:
    """Labels that a storage driver wrote when it registered, recognised by the CSINode or by the key."""
    keys = {
        one.metadata.name: [key for driver in one.spec.drivers or () for key in driver.topology_keys or ()]
        for one in given.csi_nodes
    }
    for node in nodes:
        labels = node.metadata.labels or {}
        for key in (CSI_ZONE_KEY, *(k for k in keys.get(node.metadata.name, ()) if k != CSI_ZONE_KEY)):
            level = _level_of(key)
            if level and labels.get(key) and key not in catalogue.keys[level]:
                yield node.metadata.name, (key, level, labels[key])


def _level_of(key: str) -> str:
    return next((level for suffix, level in _SUFFIXES.items() if key.endswith(suffix)), "")


def _of_volumes(
    given: AuditInput, nodes: Iterable[ObservedNode], catalogue: Catalogue
) -> Iterator[tuple[str, Statement]]:
    """The zone and region of volumes that are mounted on the node: they must be the node's own."""
    volumes = _by_claim(given.volumes)
    if not volumes:
        return
    labels = {node.metadata.name: node.metadata.labels or {} for node in nodes}
    for node, claim in _mounted(given.pods or ()):
        volume = volumes.get(claim)
        if volume is None or node not in labels:
            continue
        for key, values in _required(volume):
            level = _level_of(key)
            if level:
                own = next((labels[node][k] for k in catalogue.keys[level] if labels[node].get(k)), "")
                value = own if own in values else values[0]
                yield node, (f"PersistentVolume {volume.metadata.name}", level, value)


def _by_claim(volumes: Iterable[PersistentVolume]) -> dict[str, PersistentVolume]:
    return {
        f"{volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}": volume
        for volume in volumes
        if volume.spec.claim_ref is not None
    }


def _mounted(pods: Iterable[ObservedPod]) -> Iterator[tuple[str, str]]:
    for pod in pods:
        if occupies_node(pod):
            for volume in pod.spec.volumes or ():
                if volume.persistent_volume_claim is not None:
                    claim = volume.persistent_volume_claim.claim_name
                    yield pod.spec.node_name, f"{pod.metadata.namespace or 'default'}/{claim}"


def _required(volume: PersistentVolume) -> Iterator[tuple[str, list[str]]]:
    """The keys and values that the volume requires of its node, if it has a single term."""
    affinity = volume.spec.node_affinity
    terms = (affinity.required.node_selector_terms if affinity and affinity.required else None) or []
    if len(terms) == 1:
        for expression in terms[0].match_expressions or ():
            if expression.operator == "In" and expression.values:
                yield expression.key, expression.values


def holdings(given: AuditInput, nodes: Sequence[ObservedNode]) -> dict[str, list[str]]:
    """What only exists on the node: the lease of a leader, a local volume."""
    found: dict[str, list[str]] = {}
    by_hostname = {(node.metadata.labels or {}).get(_HOSTNAME, ""): node.metadata.name for node in nodes}
    names = {node.metadata.name for node in nodes}
    for lease in given.leases:
        if lease.metadata.name in _LEADERS and lease.spec.holder_identity:
            holder = lease.spec.holder_identity.partition("_")[0]
            name = holder if holder in names else by_hostname.get(holder, "")
            if name:
                found.setdefault(name, []).append(f"the lease {lease.metadata.name}")
    for volume in given.volumes:
        for key, values in _required(volume):
            name = by_hostname.get(values[0], values[0] if values[0] in names else "")
            if key == _HOSTNAME and len(values) == 1 and name:
                found.setdefault(name, []).append(f"the volume {volume.metadata.name}")
    return found


def api_server_hosts(leases: Iterable[ObservedLease]) -> list[str]:
    """The host name in each API server's lease; empty where there is none."""
    found = []
    for lease in leases:
        labels = lease.metadata.labels or {}
        if "kube-apiserver" in (labels.get("apiserver.kubernetes.io/identity"), labels.get("k8s.io/component")):
            found.append(labels.get(_HOSTNAME, ""))
    return found
