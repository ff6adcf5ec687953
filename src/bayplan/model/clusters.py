"""The attributes of a cluster that nodes do not have. Does not know what is placed on it."""

from __future__ import annotations

from fractions import Fraction

import msgspec

PROVIDER, REGION, ZONE, CLUSTER = "provider", "region", "zone", "cluster"
FIELD_KEYS = {name: f"\0{name}" for name in (PROVIDER, REGION, ZONE)}  # the columns of fields, which are not labels

Amounts = tuple[tuple[str, Fraction], ...]


class ResourceSummary(msgspec.Struct, frozen=True):
    """What the cluster reports: allocatable, allocated, and allocating to pods that do not run yet."""

    allocatable: Amounts = ()
    allocated: Amounts = ()
    allocating: Amounts = ()


class NodeGrade(msgspec.Struct, frozen=True):
    """`count` nodes with at least these amounts free and capacity for `pods` pods: Karmada assumes 110."""

    count: int
    least: Amounts
    pods: int = 110


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`grades` is None if the cluster's resource models cannot be used."""

    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    apis: frozenset[tuple[str, str]] = frozenset()
    terminating: bool = False
    summary: ResourceSummary | None = None
    grades: tuple[NodeGrade, ...] | None = None
