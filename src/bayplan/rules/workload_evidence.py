"""Which workloads stand in the way of a workload's terms on one cluster: for people, on demand."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.counters import Reach
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.terms import TARGET
from bayplan.rules import workload_terms
from bayplan.rules.inter_pod_affinity import InterPodAffinityState, alone, near_enough, refuse
from bayplan.rules.rule import Failure


def failures(rule: str, state: InterPodAffinityState, slot: int, index: PlacementIndex) -> list[Failure]:
    """Everything that the terms of one sign have against the cluster."""
    at, peer_index = np.array([slot]), index.peer_index
    found = []
    for near, first in zip(state.near, alone(state), strict=True):
        if not near_enough(near, at, first=first)[0]:
            peers = peer_index.all_peers(near.term)
            found.append(Failure(rule, workload_terms.NO_PEER.text, term=near.use.source.path, peers=peers))
    for wish in state.apart:
        if wish.reach.counts(at)[0] > wish.use.limit:
            peers = peer_index.peers(wish.use.term, wish.reach.around(slot).tolist())
            reason, domain = workload_terms.PEER.text, _domain(wish.reach, slot)
            found.append(Failure(rule, reason, term=wish.use.source.path, domain=domain, peers=peers))
    unwelcome = []
    for neighbours in state.refusing:
        if refuse(neighbours, at)[0]:
            held, reach = neighbours.rule, neighbours.rule.reach
            peers = peer_index.owners(held, reach.around(slot).tolist())
            reason, domain = workload_terms.OWNER.text, _domain(reach, slot)
            unwelcome.append(Failure(rule, reason, term=held.source.path, domain=domain, peers=peers))
    return found + sorted(unwelcome, key=lambda failure: (failure.domain, failure.peers))


def _domain(reach: Reach, slot: int) -> str:
    """The cluster's domains as `key=value`."""
    pairs = [(column.key, column.values[domain]) for column in reach.columns for domain in column.domains(slot)]
    return ", ".join(f"{'cluster' if key == TARGET else key.removeprefix(chr(0))}={value}" for key, value in pairs)
