"""
The failure domain of every node at every level, the control-plane components on it, and the evidence for both.

Holds facts only: `spread` counts them, `checks` evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

HOST, RACK, ZONE, REGION, CLOUD = "host", "rack", "zone", "region", "cloud"
# From small to large. A region is a site in the terms of SCS-0213.
LEVELS = (HOST, RACK, ZONE, REGION, CLOUD)
# The stages of SCS-0213 in its order, by the level whose loss they are about.
STAGES = {"machines": HOST, "zones": ZONE, "clouds": CLOUD, "sites": REGION}

# The evidence for a fact: a label declares it, it is inferred from other facts, or a second source observed it.
DECLARED, INFERRED, OBSERVED = "declared", "inferred", "observed"

CONTROL_PLANE, ETCD_ROLE, WORKER = "control-plane", "etcd", "worker"

APISERVER, CONTROLLER_MANAGER, SCHEDULER, ETCD = "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"
COMPONENTS = (APISERVER, CONTROLLER_MANAGER, SCHEDULER, ETCD)


class AuditNode(msgspec.Struct, frozen=True, kw_only=True):
    """
    One node. `domains` has a value or None for every level; `evidence` is the evidence for each value.

    `components` run on it, or are assumed to (see `Layout.component_evidence`); None where nothing is known. `keys` are
    the labels that the values come from. `other_sources` are values of other sources, as (source, level, value). A
    `vacuous` host value names the virtual machine itself and is therefore no domain.

    `shares` are other things that it may have in common with nodes, by name: a kernel version, a power feed. `holds`
    is what only this node has at the moment, such as a leader's lease or a local volume. `cloud_assumed`: its cloud is
    only the kind of its provider, of which there may be several clouds. `together` has a value for levels whose domain
    is unknown, equal for nodes that certainly share it.
    """

    name: str
    roles: tuple[str, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    components: tuple[str, ...] | None = None
    domains: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    together: Mapping[str, str] = msgspec.field(default_factory=dict)
    evidence: Mapping[str, str] = msgspec.field(default_factory=dict)
    keys: Mapping[str, str] = msgspec.field(default_factory=dict)
    other_sources: tuple[tuple[str, str, str], ...] = ()
    vacuous: str = ""
    role_labels: bool = False
    provider_id: str = ""
    created: str = ""
    shares: Mapping[str, str] = msgspec.field(default_factory=dict)
    holds: tuple[str, ...] = ()
    ready: bool = True
    unschedulable: bool = False
    cloud_assumed: bool = False

    def at(self, level: str) -> str | None:
        """The node's domain at the level, None if unknown."""
        return self.domains.get(level)

    @property
    def is_control_plane(self) -> bool:
        """Whether it has the role or runs a component; a node with only etcd does not count."""
        return CONTROL_PLANE in self.roles

    @property
    def is_worker(self) -> bool:
        """Whether it has the worker role."""
        return WORKER in self.roles


class ComponentInstance(msgspec.Struct, frozen=True):
    """One instance of a component and its node. An unhealthy instance is still a member."""

    node: str
    healthy: bool = True


class Grouping(msgspec.Struct, frozen=True):
    """
    Obfuscated labels of a level beside another source, such as an inventory, as (node, label, name in the source).

    They agree if the same nodes share a domain by both. `revealed`: texts may say which label is which machine.
    """

    level: str
    pairs: tuple[tuple[str, str, str], ...]
    revealed: bool = False
    source: str = "the inventory"

    def conflicts(self) -> list[tuple[tuple[str, ...], str]]:
        """The nodes that one of the two puts together and the other apart, with a text; empty if they agree."""
        found = []
        for own, other, text in (
            (1, 2, "one {0} by label, {1} by {2}"),
            (2, 1, "one {0} by {2}, {1} by label"),
        ):
            names: dict[str, list[str]] = {}
            others: dict[str, set[str]] = {}
            for pair in self.pairs:
                names.setdefault(pair[own], []).append(pair[0])
                others.setdefault(pair[own], set()).add(pair[other])
            for domain, apart in sorted(others.items()):
                if len(apart) > 1:
                    shown = f" ({domain}: {', '.join(sorted(apart))})" if self.revealed else ""
                    nodes = tuple(sorted(names[domain]))
                    found.append(
                        (nodes, f"{', '.join(nodes)}: {text.format(self.level, len(apart), self.source)}{shown}")
                    )
        return found


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """
    All nodes, and the members of every component.

    `component_evidence` is `observed` (pods), `declared` (endpoints) or `inferred` (one per control-plane node) by
    component; a component of which nothing is known is in neither mapping. `external` are machines outside the cluster
    that run parts of its control plane: etcd members known only by address, or the nodes of a hosting cluster.
    `api_servers` is the number of API servers according to other sources, by source. `groupings` are obfuscated labels
    to compare with other sources.
    """

    nodes: tuple[AuditNode, ...]
    levels: tuple[str, ...] = LEVELS
    members: Mapping[str, tuple[ComponentInstance, ...]] = msgspec.field(default_factory=dict)
    component_evidence: Mapping[str, str] = msgspec.field(default_factory=dict)
    external: tuple[AuditNode, ...] = ()
    api_servers: Mapping[str, int] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    groupings: tuple[Grouping, ...] = ()

    @property
    def control_plane(self) -> tuple[AuditNode, ...]:
        """The control-plane nodes, those of a hosting cluster included."""
        return tuple(node for node in (*self.nodes, *self.external) if node.is_control_plane)

    @property
    def is_hosted(self) -> bool:
        """Whether the control plane runs as pods of another cluster."""
        return any(node.is_control_plane for node in self.external)

    @property
    def workers(self) -> tuple[AuditNode, ...]:
        """The nodes with the worker role."""
        return tuple(node for node in self.nodes if node.is_worker)

    def by_name(self) -> dict[str, AuditNode]:
        """Every node by name, `external` ones included."""
        return {node.name: node for node in (*self.nodes, *self.external)}

    def nodes_of(self, component: str) -> list[AuditNode]:
        """The node of each member; empty where the members are unknown."""
        known = self.by_name()
        return [known[member.node] for member in self.members.get(component, ()) if member.node in known]
