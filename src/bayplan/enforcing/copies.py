"""
What is evicted in a fleet: a copy, which is a workload on one cluster; it stays on its other clusters.

Violations of workloads are restated as violations between their copies, so that victims are chosen as for pods. Only
rules that are enforced evict, and only copies of workloads that may be evicted at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from bayplan.assigning import unknown_labels
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.enforcing import planning
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation, involved
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.bindings import topology_column
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing import place_bindings

_SEPARATOR = "@"  # names of clusters have none
_OF_WORKLOADS = {planning.LOWER_PRIORITY: "lower priority than a workload that it conflicts with"}

MayEvict = Callable[[WorkloadKey], bool]


def copy_of(workload: WorkloadKey, cluster: str) -> WorkloadKey:
    return WorkloadKey(f"{workload}{_SEPARATOR}{cluster}")


def workload_of(copy: WorkloadKey) -> WorkloadKey:
    return WorkloadKey(copy.rpartition(_SEPARATOR)[0])


def cluster_of(copy: WorkloadKey) -> str:
    return copy.rpartition(_SEPARATOR)[2]


def reason(why: str) -> str:
    """Why a copy is the victim, in the words for workloads."""
    return _OF_WORKLOADS.get(why, why)


def enforceable(violations: Iterable[Violation], index: PlacementIndex, may_evict: MayEvict) -> list[Violation]:
    """
    The violations that may evict copies, restated for these.

    A workload that may not be evicted is protected as one of a namespace without consent is, and its own rules evict
    nothing. Nor does a rule of which labels that are not known decide whether it is violated.
    """
    return [
        _of_copies(violation, index, may_evict)
        for violation in violations
        if violation.enforced and may_evict(violation.owner) and _is_certain(violation, index)
    ]


def precedence_of(
    violations: Iterable[Violation], by_workload: Mapping[WorkloadKey, Precedence]
) -> dict[WorkloadKey, Precedence]:
    """The precedence of all copies that are involved: that of their workloads."""
    return {copy: by_workload.get(workload_of(copy), Precedence()) for copy in involved(violations)}


@contextmanager
def checking_other_clusters(engine: FleetEngine) -> Iterator[Callable[[WorkloadKey], bool]]:
    """
    A function that says whether a workload can be placed without one of its copies, while the context lasts.

    One that can is placed so on the index, and no room is given twice. The index is restored in the end.
    """
    index = engine.index

    def fits_without(copy: WorkloadKey) -> bool:
        record, mark = index.records[workload_of(copy)], index.mark()
        if place_bindings.place(_without(record.workload, record.shares, cluster_of(copy)), engine).placed:
            index.forget(mark)
            return True
        index.undo_to(mark)
        return False

    with index.tentatively():
        yield fits_without


def _without(workload: Workload, shares: Iterable[tuple[str, int]], cluster: str) -> Workload:
    """The workload as it is scheduled after the eviction of one copy."""
    binding = workload.binding
    assert binding is not None
    left = tuple(share for share in shares if share[0] != cluster)
    evicted_from = (*binding.evicted_from, cluster)
    after = msgspec.structs.replace(binding, previous=left, evicted_from=evicted_from)
    return msgspec.structs.replace(workload, binding=after)


def _is_certain(violation: Violation, index: PlacementIndex) -> bool:
    record = index.records.get(violation.owner)
    return record is not None and not unknown_labels.doubts_about(record.workload, index)


def _of_copies(violation: Violation, index: PlacementIndex, may_evict: MayEvict) -> Violation:
    peers = tuple(_peer_copies(violation, index))
    protected = frozenset(
        copy for copy in peers if workload_of(copy) in violation.protected or not may_evict(workload_of(copy))
    )
    return msgspec.structs.replace(
        violation,
        owner=copy_of(violation.owner, violation.target),
        peers=peers,
        protected=protected if violation.rule_type is RuleType.ANTI_AFFINITY else frozenset(),
        lone_member_without=tuple(
            frozenset(copy for key in members if key != violation.owner for copy in _copies(key, index))
            for members in violation.lone_member_without
        ),
    )


def _peer_copies(violation: Violation, index: PlacementIndex) -> Iterator[WorkloadKey]:
    """For anti-affinity the copies of peers that share a domain with the owner's, else all of them."""
    column = index.column(topology_column(violation.topology_key))
    here = set(column.domains(index.slots.by_name[violation.target]))
    is_anti_affinity = violation.rule_type is RuleType.ANTI_AFFINITY
    for peer in violation.peers:
        for cluster, slot in _slots(peer, index):
            if not is_anti_affinity or not here.isdisjoint(column.domains(slot)):
                yield copy_of(peer, cluster)


def _copies(workload: WorkloadKey, index: PlacementIndex) -> list[WorkloadKey]:
    return [copy_of(workload, cluster) for cluster, _ in _slots(workload, index)]


def _slots(workload: WorkloadKey, index: PlacementIndex) -> Iterator[tuple[str, int]]:
    record = index.records.get(workload)
    for slot in record.slots if record else ():
        yield index.slots.at(slot).name, slot
