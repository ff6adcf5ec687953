"""
Everything an audit is given, as one value: API objects, their lines in files, and what could not be listed.

Whether they come from files or a live cluster is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.wire.observed import (
    ObservedConfigMap,
    ObservedController,
    ObservedCsiNode,
    ObservedEndpointSlice,
    ObservedLease,
    ObservedMachine,
    ObservedNode,
    ObservedPod,
)
from bayplan.wire.storage import PersistentVolume

SERVER_ID = "server-id"  # in an inventory beside the domains, where it is known
FileLine = tuple[str, int]
Inventory = Mapping[str, Mapping[str, str]]  # the domain of each level, by node name or server UUID


def entry_of(node: ObservedNode, inventory: Inventory) -> Mapping[str, str] | None:
    """
    The inventory's entry of a node: by the id of its server before its name, which others may have too.

    A server of OpenStack with the node's name and another id is a server of another cluster.
    """
    scheme, _, rest = node.spec.provider_id.partition("://")
    server = rest.rpartition("/")[2]
    if server in inventory:
        return inventory[server]
    entry = inventory.get(node.metadata.name)
    if entry is not None and scheme == "openstack" and entry.get(SERVER_ID, server) != server:
        return None
    return entry


class Hosting(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster that a control plane runs on as pods: its nodes, and the pods of this control plane."""

    nodes: Sequence[ObservedNode] = ()
    pods: Sequence[ObservedPod] = ()


class Unlisted(msgspec.Struct, frozen=True):
    """A resource that could not be listed, in one namespace or, if that is empty, in all; `reason` is the error."""

    resource: str
    namespace: str = ""
    reason: str = "forbidden"


def unlisted_text(unlisted: Sequence[Unlisted]) -> list[str]:
    """One line for each reason, with all resources that it concerns."""
    by_reason: dict[str, list[str]] = {}
    for one in unlisted:
        by_reason.setdefault(one.reason, []).append(one.resource + (f" of {one.namespace}" if one.namespace else ""))
    return [
        f"{', '.join(names)} could not be listed ({reason}): what depends on them is left undecided"
        for reason, names in by_reason.items()
    ]


class AuditInput(msgspec.Struct, frozen=True, kw_only=True):
    """
    Only `nodes` are required. `pods` are None where none were given or none could be listed.

    `warnings` are oddities of the objects, one line each. Resources that could not be listed (`unlisted`) may exist.
    """

    nodes: Sequence[ObservedNode]
    pods: Sequence[ObservedPod] | None = None
    leases: Sequence[ObservedLease] = ()
    machines: Sequence[ObservedMachine] = ()
    config_maps: Sequence[ObservedConfigMap] = ()
    endpoint_slices: Sequence[ObservedEndpointSlice] = ()
    csi_nodes: Sequence[ObservedCsiNode] = ()
    volumes: Sequence[PersistentVolume] = ()
    controllers: Sequence[ObservedController] = ()
    budgets: Sequence[DisruptionBudget] = ()
    hosting: Hosting | None = None
    inventory: Inventory = msgspec.field(default_factory=dict)
    line_by_node: Mapping[str, FileLine] = msgspec.field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    unlisted: tuple[Unlisted, ...] = ()

    def may_list(self, resource: str, namespace: str) -> bool:
        """Whether the list is complete: an object of the resource that is not in the input does not exist."""
        return not any(one.resource == resource and one.namespace in ("", namespace) for one in self.unlisted)
