"""A policy's placement: cluster affinities, tiers, spread constraints, division. Does not know the clusters' state."""

from __future__ import annotations

import msgspec

from bayplan.model.labels import Selector, Toleration
from bayplan.model.node_selectors import NodeRequirement
from bayplan.model.targets import CLUSTER, REGION

DUPLICATED, STATIC_WEIGHT, DYNAMIC_WEIGHT, AGGREGATED = "Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"


class ClusterAffinity(msgspec.Struct, frozen=True, cache_hash=True):
    """Conditions that must all hold; `labels` None requires no label; empty `names` allows every name."""

    labels: Selector | None = None
    fields: tuple[NodeRequirement, ...] = ()
    names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    impossible: bool = False  # an invalid selector matches nothing


ANY_CLUSTER = ClusterAffinity()


PLAIN, OVERFLOW, DESIGN = "plain", "overflow", "design"


class AffinityGroup(msgspec.Struct, frozen=True):
    """
    One group of clusters with its tiers, first tier first.

    `form` is where the tiers are written: PLAIN for a single tier, OVERFLOW for Karmada's `overflowAffinities`, DESIGN
    for one of Bayplan's four forms. `first_only`: resources without replicas stay in the first tier.
    """

    name: str = ""
    tiers: tuple[ClusterAffinity, ...] = (ANY_CLUSTER,)
    form: str = PLAIN
    first_only: bool = False


class SpreadField(msgspec.Struct, frozen=True):
    """A spread constraint: by `field`, or by `label` if that is set."""

    field: str = ""
    label: str = ""
    min_groups: int = 0
    max_groups: int = 0


class Division(msgspec.Struct, frozen=True):
    """
    How replicas are divided. `strategy` is empty for an unknown combination; `type` and `preference` are as written,
    for the message. `honors_spread` is false if static weights ignore spread constraints.
    """

    strategy: str = DUPLICATED
    type: str = ""
    preference: str = ""
    weights: tuple[tuple[ClusterAffinity, int], ...] | None = None
    honors_spread: bool = True
    counts_capacity: bool = False


class Placement(msgspec.Struct, frozen=True):
    """`groups` are tried in order; without any, nothing can be scheduled."""

    groups: tuple[AffinityGroup, ...] = (AffinityGroup(),)
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[SpreadField, ...] = ()
    division: Division = Division()

    def spread_by(self, field: str) -> SpreadField | None:
        """The spread constraint on a field; the last one if there are several."""
        for constraint in reversed(self.spread):  # a loop, because a generator costs more than few comparisons
            if constraint.field == field:
                return constraint
        return None

    @property
    def by_region(self) -> SpreadField | None:
        return self.spread_by(REGION)

    @property
    def by_cluster(self) -> SpreadField | None:
        return self.spread_by(CLUSTER)
