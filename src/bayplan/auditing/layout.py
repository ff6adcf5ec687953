"""
Where every node sits, level by level, what of the control plane runs on it, and how each of these is known.

Knows nothing of rules: `spread` counts, `checks` judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

HOST, RACK, ZONE, REGION, CLOUD = "host", "rack", "zone", "region", "cloud"
# From small to large. A region is what the record calls a site.
LEVELS = (HOST, RACK, ZONE, REGION, CLOUD)
# The stages of the record, by the level whose loss they are about.
STAGES = {"machines": HOST, "zones": ZONE, "sites": REGION, "clouds": CLOUD}
STAGE_OF = {HOST: "machines", RACK: "racks", ZONE: "zones", REGION: "sites", CLOUD: "clouds"}

# How a fact is known: a label says so, it follows from other facts, or a second source has seen it.
DECLARED, INFERRED, OBSERVED = "declared", "inferred", "observed"

CONTROL_PLANE, ETCD_ROLE, WORKER = "control-plane", "etcd", "worker"

APISERVER, CONTROLLER_MANAGER, SCHEDULER, ETCD = "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"
COMPONENTS = (APISERVER, CONTROLLER_MANAGER, SCHEDULER, ETCD)


class AuditNode(msgspec.Struct, frozen=True, kw_only=True):
    """
    One node. `domains` has a value or None for every level; `evidence` says of each value how it is known.

    `components` are those that run on it, or are taken to (`Layout.component_evidence` says which); None where
    nothing can be said. `keys` are the labels that the values came from. `second` are values of other sources, as
    (source, level, value). A `vacuous` host value names the virtual machine itself and is therefore no domain.
    """

    name: str
    roles: tuple[str, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    components: tuple[str, ...] | None = None
    domains: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    evidence: Mapping[str, str] = msgspec.field(default_factory=dict)
    keys: Mapping[str, str] = msgspec.field(default_factory=dict)
    second: tuple[tuple[str, str, str], ...] = ()
    vacuous: str = ""
    role_labels: bool = False
    provider_id: str = ""
    created: str = ""
    kernel: str = ""
    os_image: str = ""
    kubelet: str = ""
    ready: bool = True
    unschedulable: bool = False
    hosted: bool = True  # False for an etcd member that is no node of this cluster

    def at(self, level: str) -> str | None:
        """The node's domain at the level, None if unknown."""
        return self.domains.get(level)

    @property
    def is_control_plane(self) -> bool:
        """Whether it carries the role or runs a part of it; a node with etcd alone does not count."""
        return CONTROL_PLANE in self.roles

    @property
    def is_worker(self) -> bool:
        """Whether it is there for workloads."""
        return WORKER in self.roles


class Member(msgspec.Struct, frozen=True):
    """One instance of a component and its node; unhealthy ones still count as members."""

    node: str
    healthy: bool = True


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """
    All nodes, and the members of every component.

    `component_evidence` is `observed` (pods), `declared` (endpoints) or `inferred` (one per control-plane node) by
    component; a component that nothing can be said of is in neither mapping. `external` are etcd members outside the
    cluster, of whom only the address is known. `n_leases` counts API servers by their leases.
    """

    nodes: tuple[AuditNode, ...]
    levels: tuple[str, ...] = LEVELS
    members: Mapping[str, tuple[Member, ...]] = msgspec.field(default_factory=dict)
    component_evidence: Mapping[str, str] = msgspec.field(default_factory=dict)
    external: tuple[AuditNode, ...] = ()
    n_leases: int = 0
    notes: tuple[str, ...] = ()

    @property
    def control_plane(self) -> tuple[AuditNode, ...]:
        """The control-plane nodes."""
        return tuple(node for node in self.nodes if node.is_control_plane)

    @property
    def workers(self) -> tuple[AuditNode, ...]:
        """The nodes for workloads."""
        return tuple(node for node in self.nodes if node.is_worker)

    def by_name(self) -> dict[str, AuditNode]:
        """Every node, etcd members outside the cluster included, by its name."""
        return {node.name: node for node in (*self.nodes, *self.external)}

    def nodes_of(self, component: str) -> list[AuditNode]:
        """The node of each member; empty where the members are unknown."""
        known = self.by_name()
        return [known[member.node] for member in self.members.get(component, ()) if member.node in known]

    def moved(self, name: str, domains: Mapping[str, str | None]) -> Layout:
        """The layout with one node elsewhere: what a repair plan tries."""
        nodes = tuple(
            msgspec.structs.replace(node, domains={**node.domains, **domains}) if node.name == name else node
            for node in self.nodes
        )
        return msgspec.structs.replace(self, nodes=nodes)


def select(layout: Layout, names: Sequence[str]) -> list[AuditNode]:
    """The nodes of these names, in this order."""
    known = layout.by_name()
    return [known[name] for name in names]
