"""A broken rule, with names: who holds it, where, and who is in conflict with it. Knows nothing of how it was found."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from bayplan.enforcing.clauses import Sign
from bayplan.model.workloads import WorkloadKey


class ViolationId(msgspec.Struct, frozen=True, order=True):
    """What stays the same for as long as one rule of one workload is broken, whoever breaks it."""

    owner: WorkloadKey
    uid: str
    term: str
    topology_key: str
    target: str


class Violation(msgspec.Struct, frozen=True):
    """
    `peers` are those in conflict. For anti-affinity they stand in the domain. For affinity they stand elsewhere:
    whoever the rule means, if anybody; of a group, those who are missing on the target.

    `alone_without`: the owner is one of those whom its affinity means, and without all others of any of these sets it
    would be the lone member of its own, which is no violation. The sets may name the owner too.
    """

    owner: WorkloadKey
    uid: str
    sign: Sign
    term: str
    shown: str
    topology_key: str
    domain: str
    target: str
    peers: tuple[WorkloadKey, ...] = ()
    limit: int = 0
    alone_without: tuple[frozenset[WorkloadKey], ...] = ()

    @property
    def id(self) -> ViolationId:
        return ViolationId(self.owner, self.uid, self.term, self.topology_key, self.target)

    def mended_without(self, gone: Collection[WorkloadKey]) -> bool:
        """Whether the rule holds again once these workloads are gone."""
        if self.owner in gone:
            return True
        if self.sign is Sign.APART:
            return len(self.peers) - len(gone) <= self.limit and sum(p not in gone for p in self.peers) <= self.limit
        # Nobody's going brings a peer near; but it may leave the owner alone.
        return any(all(key in gone or key == self.owner for key in others) for others in self.alone_without)


def involved(violations: Iterable[Violation]) -> set[WorkloadKey]:
    """Everybody who has a part in one of them."""
    found: set[WorkloadKey] = set()
    for violation in violations:
        found.add(violation.owner)
        found.update(violation.peers)
    return found
