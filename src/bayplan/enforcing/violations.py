"""A broken rule, with names: who holds it, where, and who is in conflict with it. Knows nothing of how it was found."""

from __future__ import annotations

from collections.abc import Collection

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

    `own_set`: the owner is one of those its affinity means; without the peers it would be alone, and in no violation.
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
    own_set: bool = False

    @property
    def id(self) -> ViolationId:
        return ViolationId(self.owner, self.uid, self.term, self.topology_key, self.target)

    def mended_without(self, gone: Collection[WorkloadKey]) -> bool:
        """Whether the rule holds again once these workloads are gone."""
        if self.owner in gone:
            return True
        left = sum(peer not in gone for peer in self.peers)
        if self.sign is Sign.APART:
            return left <= self.limit
        # Nobody's going brings a peer near; but without the others the owner is the lone member of its set.
        return self.own_set and not left
