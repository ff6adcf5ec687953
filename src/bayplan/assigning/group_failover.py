"""
A co-located group moves together (switch `groupsMoveTogether`).

Peers on a cluster that a workload has to leave would hold it back: each member would wait for the others. So where a
workload is evicted from, where a cluster goes away or is gone, peers count as being on their way out: affinity does not
see them there, anti-affinity still does. The first member to leave then chooses freely, and the others follow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import AFFINITY_GROUP
from bayplan.model.labels import equals
from bayplan.model.terms import PeerTerm, TermPart, resolve
from bayplan.model.workloads import LEAVING_SUFFIX, Workload, WorkloadKey


def draining_copy(workload: Workload) -> Workload:
    """The workload as one that is on its way out; several may be, in different places."""
    return msgspec.structs.replace(workload, name=workload.name + LEAVING_SUFFIX, terminating=True)


@contextmanager
def without_workload(workload: Workload, index: PlacementIndex) -> Iterator[None]:
    """The index as if the workload, and a copy of it that drains, were nowhere."""
    with index.tentatively():
        for key in (workload.key, draining_copy(workload).key):
            if key in index.records:
                index.remove(key)
        yield


def _concerns(workload: Workload, index: PlacementIndex) -> bool:
    """Whether the workload follows anybody, and there is anywhere to be left."""
    assert workload.binding is not None
    follows = workload.binding.affinity_group or workload.needs.affinity.required
    return bool(follows) and bool(workload.binding.evicted_from or index.has_lost_workloads or _going(index))


@contextmanager
def with_leaving_peers(workload: Workload, index: PlacementIndex) -> Iterator[None]:
    """The index as the workload is judged by it: with peers set aside where the semantics say so."""
    if not index.semantics.groups_move_together or not _concerns(workload, index):
        yield
        return
    with index.tentatively():
        _set_aside(workload, index)
        yield


def _set_aside(workload: Workload, index: PlacementIndex) -> None:
    """Let peers be on their way out of the clusters that are to be left."""
    assert workload.binding is not None
    left = {*workload.binding.evicted_from, *_going(index)}
    for key in _peers(workload, index):
        record = index.records[key]
        staying = [share for share in record.shares if share[0] in index.slots.by_name and share[0] not in left]
        leaving = [share for share in record.shares if share not in staying]
        if leaving:
            index.remove(key)
            if staying:
                index.add_shares(record.workload, staying)
            index.add_shares(draining_copy(draining_copy(record.workload)), leaving)


def _peers(workload: Workload, index: PlacementIndex) -> set[WorkloadKey]:
    binding = workload.binding
    assert binding is not None
    terms = [
        use.term
        for use in resolve(workload.needs.affinity, workload.namespace, index.semantics, incoming=True).required
    ]
    if binding.affinity_group:
        scope = TermPart(equals({AFFINITY_GROUP: binding.affinity_group}), (binding.namespace,))
        terms.append(PeerTerm((scope,), counts_terminating=False))
    # Held, so that classes are told apart by the labels that the terms look at.
    held = [index.peer_index.hold(term) for term in terms]
    peers = {key for term in terms for key in index.peer_index.all_peers(term)}
    for entry in held:
        index.peer_index.release(entry)
    return peers


def _going(index: PlacementIndex) -> list[str]:
    targets = (index.slots.at(slot) for slot in index.slots.by_name.values())
    return [target.name for target in targets if target.cluster is not None and target.cluster.terminating]
