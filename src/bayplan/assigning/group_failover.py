"""
Failover of a co-located group as a whole (switch `groupsMoveTogether`).

Affinity to peers on a cluster that a workload has to leave would block its failover: each member would wait for the
others. So on clusters that the workload is evicted from, that are being deleted or that no longer exist, peers count as
leaving: affinity does not count them there, anti-affinity still does. The first member to leave is then free to choose,
and the others follow it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import AFFINITY_GROUP
from bayplan.model.labels import equals
from bayplan.model.terms import PeerTerm, TermPart, resolve
from bayplan.model.workloads import LEAVING_SUFFIX, Workload, WorkloadKey

_AS_IT_IS = nullcontext()  # the index without changes


def draining_copy(workload: Workload) -> Workload:
    """The workload as a terminating copy; there may be several, on different clusters."""
    return msgspec.structs.replace(workload, name=workload.name + LEAVING_SUFFIX, terminating=True)


def without_workload(workload: Workload, index: PlacementIndex) -> AbstractContextManager[None]:
    """The index without the workload and its draining copy."""
    key, records = workload.key, index.records
    draining = WorkloadKey(f"{key}{LEAVING_SUFFIX}")
    return _without((key, draining), index) if key in records or draining in records else nullcontext()


@contextmanager
def _without(keys: Sequence[WorkloadKey], index: PlacementIndex) -> Iterator[None]:
    with index.tentatively():
        for key in keys:
            if key in index.records:
                index.remove(key)
        yield


def with_leaving_peers(workload: Workload, index: PlacementIndex) -> AbstractContextManager[None]:
    """The index as the workload is scheduled on it: with peers marked as leaving where the semantics require it."""
    binding = workload.binding
    assert binding is not None
    has_affinity = binding.affinity_group or workload.needs.affinity.required
    if not index.semantics.groups_move_together or not has_affinity:
        return _AS_IT_IS
    lost = {*binding.evicted_from, *_clusters_being_deleted(index)}
    return _with_leaving(workload, lost, index) if lost or index.has_lost_workloads else _AS_IT_IS


@contextmanager
def _with_leaving(workload: Workload, lost: Collection[str], index: PlacementIndex) -> Iterator[None]:
    with index.tentatively():
        for key in _peers(workload, index):
            record = index.records[key]
            staying = [share for share in record.shares if share[0] in index.slots.by_name and share[0] not in lost]
            leaving = [share for share in record.shares if share not in staying]
            if leaving:
                index.remove(key)
                if staying:
                    index.add_shares(record.workload, staying)
                index.add_shares(draining_copy(draining_copy(record.workload)), leaving)
        yield


def _peers(workload: Workload, index: PlacementIndex) -> set[WorkloadKey]:
    """The placed workloads that required affinity or the affinity group selects."""
    binding = workload.binding
    assert binding is not None
    terms = [
        use.term
        for use in resolve(workload.needs.affinity, workload.namespace, index.semantics, incoming=True).required
    ]
    if binding.affinity_group:
        scope = TermPart(equals({AFFINITY_GROUP: binding.affinity_group}), (binding.namespace,))
        terms.append(PeerTerm((scope,), counts_terminating=False))
    # Held, so that classes are distinguished by the labels that the terms select by.
    held = [index.peer_index.hold(term) for term in terms]
    peers = {key for term in terms for key in index.peer_index.all_peers(term)}
    for entry in held:
        index.peer_index.release(entry)
    return peers


def _clusters_being_deleted(index: PlacementIndex) -> list[str]:
    targets = (index.slots.at(slot) for slot in index.slots.by_name.values())
    return [target.name for target in targets if target.cluster is not None and target.cluster.terminating]
