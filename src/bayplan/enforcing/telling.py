"""Breaches as violations with names, for people and for choosing victims. Knows nothing of how they came up."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping

from bayplan.enforcing.clauses import Clause, Sign
from bayplan.enforcing.duties import Breach, Domain, Duty, Others
from bayplan.enforcing.violations import Violation
from bayplan.indexing.census import Record
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.clusters import CLUSTER
from bayplan.model.terms import TARGET
from bayplan.model.workloads import WorkloadKey

Names = tuple[WorkloadKey, ...]


def violations(broken: Mapping[WorkloadKey, Mapping[Duty, list[Breach]]], index: PlacementIndex) -> Iterator[Violation]:
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
        self._peers: dict[tuple[Duty, tuple[Domain, ...]], Names] = {}
        self._sets: dict[tuple[Others, ...], frozenset[WorkloadKey]] = {}

    def violation(self, duty: Duty, breach: Breach, record: Record) -> Violation:
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

    def _alone_without(self, duty: Duty, record: Record, peers: Names) -> tuple[frozenset[WorkloadKey], ...]:
        if duty.clause.sign is Sign.WITH_ALL:
            return (frozenset(peers),)
        return tuple(map(self._members, duty.own_sets(record)))

    def _members(self, companies: tuple[Others, ...]) -> frozenset[WorkloadKey]:
        if companies not in self._sets:
            names = (key for others in companies for key in others.names(self._index))
            self._sets[companies] = frozenset(names)
        return self._sets[companies]

    def _peers_of(self, duty: Duty, breach: Breach) -> Names:
        where = breach.domains if duty.clause.sign is not Sign.NEAR else ()
        if (duty, where) not in self._peers:
            self._peers[duty, where] = self._look_up(duty, breach)
        return self._peers[duty, where]

    def _look_up(self, duty: Duty, breach: Breach) -> Names:
        census, term = self._index.census, duty.clause.term
        match duty.clause.sign:
            case Sign.APART:
                (counter,) = duty.counters
                column = counter.column
                slots = {int(slot) for _, value in breach.domains for slot in column.slots_in(column.by_value[value])}
                return census.peers(term, slots)
            case Sign.WITH_ALL:
                here = set(census.peers(term, (breach.slot,)))
                return tuple(peer for peer in census.all_peers(term) if peer not in here)
            case Sign.NEAR if self._index.lost_targets_count:
                return census.all_peers(term)
            case Sign.NEAR:
                return census.peers(term, self._index.slots.by_name.values())


def _without(names: Names, key: WorkloadKey) -> Names:
    """Names are in order. Cut out and not picked out: a thousand who keep off each other have a million peers."""
    position = bisect.bisect_left(names, key)
    return names[:position] + names[position + 1 :] if names[position : position + 1] == (key,) else names


def _order(clause: Clause) -> tuple[str, str, tuple[str, ...]]:
    return clause.sign.value, clause.path, clause.keys


def _plain(key: str) -> str:
    """A topology key as people write it."""
    return CLUSTER if key == TARGET else key.removeprefix("\0")
