"""
Whether putting a pod on a node would break a rule that must hold while pods run, its own or that of a pod there.

The seed has the kubelet check this; here it is checked at the door. Only rules over single nodes are looked at, as the
seed says, so only the pods of one node are: wider ones are found by `tracking` once they are broken. As everywhere, a
node is who has its hostname as a label: without that label nothing is too near, and nobody near enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bayplan.enforcing import execution_rules
from bayplan.enforcing.execution_rules import Company, ExecutionRule, Sign
from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.terms import HOSTNAME, PeerTerm
from bayplan.model.workloads import Workload, WorkloadKey


class BrokenRule(msgspec.Struct, frozen=True):
    """Whose rule would be broken, which, and by whom; nobody where an affinity finds no peer."""

    owner: WorkloadKey
    node: str
    path: str
    shown: str
    peers: tuple[WorkloadKey, ...]

    def __str__(self) -> str:
        if not self.peers:
            return f"{self.path} of {self.owner} asks for {self.shown} on its node, and {self.node} has none"
        shown = ", ".join(self.peers[:3]) + (" …" if len(self.peers) > 3 else "")
        return f"{self.path} of {self.owner} refuses {self.shown} on its node, and on {self.node} that is {shown}"


def broken_rules(
    workload: Workload, node: str, index: PlacementIndex, coming: Sequence[tuple[Workload, str]] = ()
) -> list[BrokenRule]:
    """
    The rules that the pod on this node would break; none on a node that is not known.

    `coming` are pods that the index does not have yet, each with the node where it will be.
    """
    slot = index.slots.by_name.get(node)
    if slot is None:
        return []
    coming = [(other, where) for other, where in coming if other.key != workload.key]
    hostnames = index.column(HOSTNAME)
    slots = [int(one) for domain in hostnames.domains(slot) for one in hostnames.slots_in(domain)]
    there = (index.records[key].workload for one in slots for key in index.workloads_on(one) if key != workload.key)
    others = [*there, *(other for other, where in coming if index.slots.by_name.get(where) in slots)]
    return [*_own(workload, node, others, coming, index), *_of_others(workload, node, others, index)]


def _own(
    workload: Workload,
    node: str,
    others: Sequence[Workload],
    coming: Sequence[tuple[Workload, str]],
    index: PlacementIndex,
) -> Iterator[BrokenRule]:
    for clause in _over_nodes(workload, index):
        peers = tuple(other.key for other in others if _means(clause.term, other, index))
        if clause.sign is Sign.APART:
            if len(peers) > clause.limit:
                yield BrokenRule(workload.key, node, clause.path, clause.shown, peers)
        elif not peers and not _alone(clause, workload, coming, index):
            yield BrokenRule(workload.key, node, clause.path, clause.shown, ())


def _of_others(
    workload: Workload, node: str, others: Sequence[Workload], index: PlacementIndex
) -> Iterator[BrokenRule]:
    for owner in others:
        for clause in _over_nodes(owner, index):
            if clause.sign is not Sign.APART or not _means(clause.term, workload, index):
                continue
            meant = [other for other in others if other is not owner and _means(clause.term, other, index)]
            if len(meant) + 1 > clause.limit:
                yield BrokenRule(owner.key, node, clause.path, clause.shown, (workload.key,))


def _over_nodes(workload: Workload, index: PlacementIndex) -> Iterable[ExecutionRule]:
    # An affinity over several keys may be met further away.
    return (clause for clause in execution_rules.of(workload, index.semantics) if clause.keys == (HOSTNAME,))


def _means(term: PeerTerm, workload: Workload, index: PlacementIndex) -> bool:
    return index.peer_index.matches(term, workload.labels, workload.namespace, terminating=workload.terminating)


def _alone(
    clause: ExecutionRule, workload: Workload, coming: Sequence[tuple[Workload, str]], index: PlacementIndex
) -> bool:
    """Whether the pod is the first of a set that wants to be together."""

    def nobody_else(company: Company) -> bool:
        arriving = (o for o, where in coming if where in index.slots.by_name and _means(company.term, o, index))
        return next(arriving, None) is None and not _has_members(company, workload, index)

    return any(
        all(_means(company.term, workload, index) and nobody_else(company) for company in listed)
        for listed in clause.alone
    )


def _has_members(company: Company, workload: Workload, index: PlacementIndex) -> bool:
    entry = index.peer_index.hold(company.term)  # labels that no term in use looks at tell nobody apart
    try:
        return any(_someone_else(cls, company, workload, index) for cls in index.peer_index.classes.candidates(entry))
    finally:
        index.peer_index.release(entry)


def _someone_else(cls: WorkloadClass, company: Company, workload: Workload, index: PlacementIndex) -> bool:
    if not index.peer_index.class_matches(company.term, cls):
        return False
    columns = [index.column(key) for key in company.keys]
    return any(
        here != {workload.key} and (not columns or any(column.domains(slot) for column in columns))
        for slot, here in cls.members.items()
    )
