"""A target: a node or a cluster on which workloads are placed. Does not know what runs on it."""

from __future__ import annotations

from fractions import Fraction
from typing import NewType

import msgspec

from bayplan.model.labels import Taint

TargetName = NewType("TargetName", str)
PROVIDER, REGION, ZONE, CLUSTER = "provider", "region", "zone", "cluster"
FIELD_KEYS = {name: f"\0{name}" for name in (PROVIDER, REGION, ZONE)}  # the columns of fields, which are not labels

Amounts = tuple[tuple[str, Fraction], ...]


class ResourceSummary(msgspec.Struct, frozen=True):
    """
    What the cluster reports: allocatable, allocated, and allocating to pods that do not run yet.

    `binary` are the resources of which what is left is written in binary form, such as 4Gi.
    """

    allocatable: Amounts = ()
    allocated: Amounts = ()
    allocating: Amounts = ()
    binary: frozenset[str] = frozenset()


class NodeGrade(msgspec.Struct, frozen=True):
    """`count` nodes with at least these amounts free and capacity for `pods` pods: Karmada assumes 110."""

    count: int
    least: Amounts
    pods: int = 110


class ReplicaDemand(msgspec.Struct, frozen=True, cache_hash=True):
    """
    The requests of one replica, which estimates depend on; None if the binding has none.

    `claim` is what else accurate estimators are asked with, as JSON; empty if they are not asked.
    """

    requests: Amounts | None = None
    claim: str = ""


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """
    `grades` is None if the cluster's resource models cannot be used. `estimates` are answers of its accurate estimator:
    how many more replicas of a demand fit.
    """

    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    apis: frozenset[tuple[str, str]] = frozenset()
    terminating: bool = False
    summary: ResourceSummary | None = None
    grades: tuple[NodeGrade, ...] | None = None
    estimates: tuple[tuple[ReplicaDemand, int], ...] = ()


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
        facts = msgspec.structs.replace(here, summary=there.summary, grades=there.grades, estimates=there.estimates)
        return msgspec.structs.replace(self, cluster=facts) == other
