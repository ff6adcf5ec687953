"""A Karmada binding: the resource to propagate, its placement and its previous scheduling result."""

from __future__ import annotations

import msgspec

from bayplan.model.placements import AffinityGroup, Placement
from bayplan.model.targets import Amounts, ReplicaDemand

# The label keys of Karmada's workload affinity groups. No template can have such keys.
AFFINITY_GROUP = "\0affinity-group"
ANTI_AFFINITY_GROUP = "\0anti-affinity-group"
# The label of a workload whose template is not known: its other labels are only those that its binding reveals.
UNKNOWN_LABELS = "\0labels-unknown"


class Component(msgspec.Struct, frozen=True):
    """
    One component of a workload that has several; `requests` None requests nothing.

    `binary` are the resources whose requests are written in binary form, such as 4Gi.
    """

    replicas: int
    requests: Amounts | None
    binary: frozenset[str] = frozenset()


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """
    `previous` is the last result, in its order. `fresh`: a rebalance was requested since, so replicas may move.

    `may_fail_back`: the hold-down is over, so it may return to an earlier group or tier that is better.

    `affinity_group` and `anti_affinity_group` are Karmada's `key=value` groups, empty for none. `namespace` and
    `name` are the template's. `group` is the cluster affinity of the placement that is being tried.
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
        """Whether replicas are assigned; other resources are propagated as they are to every selected cluster."""
        return (self.replicas > 0 or self.demand is not None) and len(self.components) <= 1

    @property
    def assigned(self) -> dict[str, int]:
        """Replicas by cluster; if a name is given twice, the first entry counts."""
        return dict(reversed(self.previous))
