"""A broken rule, with names: who holds it, where, and who is in conflict with it. Knows nothing of how it was found."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from bayplan.enforcing.execution_rules import Domain, ExecutionRule, Others, RuleBreach, Sign, TrackedRule
from bayplan.indexing.peer_index import PlacedWorkload
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.clusters import CLUSTER
from bayplan.model.terms import TARGET
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


# RF merged from enforcing.telling: Breaches as violations with names, for people and for choosing victims. Knows
# nothing of how they came up.


Names = tuple[WorkloadKey, ...]


def violations_of(
    broken: Mapping[WorkloadKey, Mapping[TrackedRule, list[RuleBreach]]], index: PlacementIndex
) -> Iterator[Violation]:
    """All of them, by owner."""
    teller = _Teller(index)
    for key in sorted(broken):
        for duty, breaches in sorted(broken[key].items(), key=lambda item: _order(item[0].clause)):
            for breach in breaches:
                yield teller.violation(duty, breach, index.records[key])


class _Teller:
    """Looks names up once: they are the same for all who hold a clause in a domain, or are members of a set."""

    def __init__(self, index: PlacementIndex) -> None:
        self._index = index
        self._peers: dict[tuple[TrackedRule, tuple[Domain, ...]], Names] = {}
        self._sets: dict[tuple[Others, ...], frozenset[WorkloadKey]] = {}

    def violation(self, duty: TrackedRule, breach: RuleBreach, record: PlacedWorkload) -> Violation:
        clause, workload = duty.clause, record.workload
        peers = self._peers_of(duty, breach)
        return Violation(
            owner=workload.key,
            uid=workload.uid,
            sign=clause.sign,
            term=clause.path,
            shown=clause.shown,
            topology_key=", ".join(_plain(key) for key in clause.keys),
            domain=", ".join(f"{_plain(key)}={value}" for key, value in breach.domains),
            target=self._index.slots.at(breach.slot).name,
            peers=_without(peers, workload.key),
            limit=clause.limit,
            alone_without=self._alone_without(duty, record, peers),
        )

    def _alone_without(
        self, duty: TrackedRule, record: PlacedWorkload, peers: Names
    ) -> tuple[frozenset[WorkloadKey], ...]:
        if duty.clause.sign is Sign.WITH_ALL:
            return (frozenset(peers),)
        return tuple(map(self._members, duty.own_sets(record)))

    def _members(self, companies: tuple[Others, ...]) -> frozenset[WorkloadKey]:
        if companies not in self._sets:
            names = (key for others in companies for key in others.names(self._index))
            self._sets[companies] = frozenset(names)
        return self._sets[companies]

    def _peers_of(self, duty: TrackedRule, breach: RuleBreach) -> Names:
        where = breach.domains if duty.clause.sign is not Sign.NEAR else ()
        if (duty, where) not in self._peers:
            self._peers[duty, where] = self._look_up(duty, breach)
        return self._peers[duty, where]

    def _look_up(self, duty: TrackedRule, breach: RuleBreach) -> Names:
        peer_index, term = self._index.peer_index, duty.clause.term
        match duty.clause.sign:
            case Sign.APART:
                (counter,) = duty.counters
                column = counter.column
                slots = {int(slot) for _, value in breach.domains for slot in column.slots_in(column.by_value[value])}
                return peer_index.peers(term, slots)
            case Sign.WITH_ALL:
                here = set(peer_index.peers(term, (breach.slot,)))
                return tuple(peer for peer in peer_index.all_peers(term) if peer not in here)
            case Sign.NEAR if self._index.lost_targets_count:
                return peer_index.all_peers(term)
            case Sign.NEAR:
                return peer_index.peers(term, self._index.slots.by_name.values())


def _without(names: Names, key: WorkloadKey) -> Names:
    """Names are in order. Cut out and not picked out: a thousand who keep off each other have a million peers."""
    position = bisect.bisect_left(names, key)
    return names[:position] + names[position + 1 :] if names[position : position + 1] == (key,) else names


def _order(clause: ExecutionRule) -> tuple[str, str, tuple[str, ...]]:
    return clause.sign.value, clause.path, clause.keys


def _plain(key: str) -> str:
    """A topology key as people write it."""
    return CLUSTER if key == TARGET else key.removeprefix("\0")
