"""
Capacity constraints on the number of peers in a target's domain. Workloads are found from terms through their classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable

import numpy as np

from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.model.reasons import Mask
from bayplan.model.terms import PeerTerm
from bayplan.model.workloads import Workload
from bayplan.rules.evictions import Amounts, CapacityConstraint


class PeerConstraint(CapacityConstraint, ABC):
    """A limit on the workloads of some classes in the target's domain."""

    def __init__(self, code: int, remaining: Amounts, index: PlacementIndex) -> None:
        super().__init__(code, remaining)
        self.index = index

    @abstractmethod
    def classes(self) -> list[WorkloadClass]:
        """The classes whose members count, each as often as they count."""

    def amounts(self) -> Amounts:
        by_times: dict[int, list[WorkloadClass]] = {}
        for cls, times in Counter(self.classes()).items():
            by_times.setdefault(times, []).append(cls)
        found = np.zeros(len(self.index.pod_table), np.int64)
        for times, classes in by_times.items():
            found[member_rows(classes, self.index)] = times
        return found


def classes_matching(term: PeerTerm, index: PlacementIndex) -> list[WorkloadClass]:
    """The classes whose members a term selects. The term must be held, so that classes distinguish its labels."""
    peer_index = index.peer_index
    return [cls for cls in peer_index.classes.candidates(term) if peer_index.class_matches(term, cls)]


def member_rows(classes: Iterable[WorkloadClass], index: PlacementIndex) -> Mask:
    """The members of the classes, by row of the pod table."""
    pod_table = index.pod_table
    members: Mask = np.isin(pod_table.class_id, [cls.id for cls in classes]) & (pod_table.slot != FREE_ROW)
    return members


def selects(term: PeerTerm, workload: Workload, index: PlacementIndex) -> bool:
    """Whether a term selects a workload that need not be placed."""
    return index.peer_index.matches(term, workload.labels, workload.namespace, terminating=workload.terminating)
