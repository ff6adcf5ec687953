"""What a cluster has beyond what every target has. Knows nothing of what is placed on it."""

from __future__ import annotations

from fractions import Fraction

import msgspec

PROVIDER, REGION, ZONE, CLUSTER = "provider", "region", "zone", "cluster"
FIELD_KEYS = {name: f"\0{name}" for name in (PROVIDER, REGION, ZONE)}  # the columns of fields that are no labels

Amounts = tuple[tuple[str, Fraction], ...]


class ResourceSummary(msgspec.Struct, frozen=True):
    """What the cluster reports: offered, in use, and promised to pods that do not run yet."""

    allocatable: Amounts = ()
    allocated: Amounts = ()
    allocating: Amounts = ()


class NodeGrade(msgspec.Struct, frozen=True):
    """So many nodes that have at least these amounts left, and room for so many pods: Karmada assumes 110."""

    count: int
    least: Amounts
    pods: int = 110


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`grades` is None where the cluster's resource models cannot be used."""

    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    apis: frozenset[tuple[str, str]] = frozenset()
    terminating: bool = False
    summary: ResourceSummary | None = None
    grades: tuple[NodeGrade, ...] | None = None
