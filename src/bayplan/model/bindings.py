"""A Karmada binding: what is to be propagated, with its placement and its previous result."""

from __future__ import annotations

import msgspec

from bayplan.model.clusters import Amounts
from bayplan.model.placements import AffinityGroup, Placement

# What terms of Karmada's groups select: labels that no template can have.
AFFINITY_GROUP = "\0affinity-group"
ANTI_AFFINITY_GROUP = "\0anti-affinity-group"


class Component(msgspec.Struct, frozen=True):
    """One part of a workload of several; `requests` None asks for nothing in particular."""

    replicas: int
    requests: Amounts | None


class ReplicaDemand(msgspec.Struct, frozen=True):
    """What one replica asks for; None where the binding does not say. It is what an estimate depends on."""

    requests: Amounts | None = None


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """
    `previous` is the last result in its order. `fresh`: a rebalance was asked for since, so the result may move.

    `may_fail_back`: it has stood long enough to go back to an earlier group or tier, if that is better.

    `affinity_group` and `anti_affinity_group` are Karmada's `key=value` groups, empty for none. `namespace` and
    `name` are the template's. `group` is the one of the placement's groups that is being tried.
    """

    namespace: str = ""
    name: str = ""
    group: AffinityGroup = AffinityGroup()

    api_version: str = ""
    kind: str = ""
    uid: str = ""
    replicas: int = 0
    demand: ReplicaDemand | None = None
    components: tuple[Component, ...] = ()
    placement: Placement = Placement()
    previous: tuple[tuple[str, int], ...] = ()
    evicted_from: tuple[str, ...] = ()
    observed: str = ""
    fresh: bool = False
    may_fail_back: bool = False
    affinity_group: str = ""
    anti_affinity_group: str = ""

    @property
    def is_workload(self) -> bool:
        return self.replicas > 0 or self.demand is not None or bool(self.components)

    @property
    def is_divisible(self) -> bool:
        """Whether replicas are assigned at all; other things go whole to every selected cluster."""
        return (self.replicas > 0 or self.demand is not None) and len(self.components) <= 1

    @property
    def assigned(self) -> dict[str, int]:
        """Replicas by cluster; of a name given twice the first counts."""
        return dict(reversed(self.previous))
