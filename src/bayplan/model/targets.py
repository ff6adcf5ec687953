"""A target: a node or a cluster on which workloads are placed. Does not know what runs on it."""

from __future__ import annotations

from typing import NewType

import msgspec

from bayplan.model.clusters import ClusterFacts
from bayplan.model.labels import Taint

TargetName = NewType("TargetName", str)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """
    A node or a cluster. `further_labels` may hold several values for one key, as for a cluster in three zones.

    `cluster` holds what only a cluster has; None for a node.
    """

    name: TargetName
    labels: dict[str, str]
    further_labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: tuple[tuple[str, int], ...] = ()
    images: tuple[tuple[str, int], ...] = ()
    cluster: ClusterFacts | None = None

    def differs_only_in_capacity(self, other: Target) -> bool:
        """Whether both are clusters that differ, if at all, only in the resources they report."""
        here, there = self.cluster, other.cluster
        if here is None or there is None:
            return False
        facts = msgspec.structs.replace(here, summary=there.summary, grades=there.grades)
        return msgspec.structs.replace(self, cluster=facts) == other
