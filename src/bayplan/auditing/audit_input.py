"""
Everything an audit is given, as one value: the objects, where they stand in files, and what could not be had.

Where they come from is not known here: files, or a live cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.auditing.objects import (
    ObservedConfigMap,
    ObservedController,
    ObservedCsiNode,
    ObservedEndpointSlice,
    ObservedLease,
    ObservedMachine,
    ObservedNode,
    ObservedPod,
)
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.wire.storage import PersistentVolume

Place = tuple[str, int]  # file and line
Inventory = Mapping[str, Mapping[str, str]]  # by node or by the server's UUID: the domain of each level


class Hosting(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster that a control plane runs on as pods: its nodes, and the pods of this control plane."""

    nodes: Sequence[ObservedNode] = ()
    pods: Sequence[ObservedPod] = ()


class Unlisted(msgspec.Struct, frozen=True):
    """What could not be listed: `pods` of one namespace or, with an empty one, of all; and what was said instead."""

    resource: str
    namespace: str = ""
    reason: str = "forbidden"


def unlisted_text(unlisted: Sequence[Unlisted]) -> list[str]:
    """What is said of it: one line for each reason, however many resources that are."""
    by_reason: dict[str, list[str]] = {}
    for one in unlisted:
        by_reason.setdefault(one.reason, []).append(one.resource + (f" of {one.namespace}" if one.namespace else ""))
    return [
        f"{', '.join(names)} could not be listed ({reason}): what depends on them is left undecided"
        for reason, names in by_reason.items()
    ]


class AuditInput(msgspec.Struct, frozen=True, kw_only=True):
    """
    Only nodes are needed. `pods` are None where none were given or none could be listed.

    `warnings` is what is odd about the objects, one line each. What could not be listed (`unlisted`) is not the same
    as what is not there.
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
    place_by_node: Mapping[str, Place] = msgspec.field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    unlisted: tuple[Unlisted, ...] = ()

    def may_list(self, resource: str, namespace: str) -> bool:
        """Whether objects that are not among these are not there either."""
        return not any(one.resource == resource and one.namespace in ("", namespace) for one in self.unlisted)
