"""What the door may ask about the cluster it guards, if somebody watches the cluster and can tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from bayplan.enforcing.quota import QuotaLimits
from bayplan.errors import ClusterError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload


class ClusterView(Protocol):
    """Asked on the thread that owns the index, which stays the same object all along."""

    @property
    def complete(self) -> bool:
        """Whether all that there was to know has been seen."""

    @property
    def index(self) -> PlacementIndex:
        """Nodes, namespaces and the pods that have a node."""

    @property
    def limits(self) -> QuotaLimits:
        """What each namespace may be charged."""

    async def waiting(self, namespace: str) -> Iterable[Workload]:
        """The pods of a namespace that have no node yet."""

    async def pod(self, namespace: str, name: str) -> Workload | None:
        """One pod, wherever it stands; None if there is none of this name."""


def must_be_complete(view: ClusterView) -> None:
    """Raises ClusterError otherwise: by half of the cluster everything would be let in."""
    if not view.complete:
        raise ClusterError("the cluster is not known yet")
