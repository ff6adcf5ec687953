"""
The peers of a pod: which others attract or repel it, by which term of which of the two, and in which topology.

Evidence for people: it reads what it needs, and lists a bounded number of peers for each term.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.indexing.owner_rules import Role
from bayplan.model import terms

if TYPE_CHECKING:
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.terms import PodTerm
    from bayplan.model.workloads import Workload

MAX_PEERS_OF_A_TERM = 200
ATTRACTS, REPELS = "attracts", "repels"


class PeerRelation(msgspec.Struct, frozen=True, rename="camel"):
    """
    One term between a pod and others.

    `effect` is "attracts" or "repels". `of_peer`: the term is of the peers and selects the pod; else it is the pod's
    own. A `weight` of 0 means that the term is required. `n_peers` counts those that are not listed too.
    """

    effect: str
    of_peer: bool
    weight: int
    term: str
    topology_keys: tuple[str, ...]
    peers: tuple[str, ...]
    n_peers: int


def relations(workload: Workload, index: PlacementIndex) -> list[PeerRelation]:
    """All terms between the pod and the placed pods, in both directions; those without a peer too."""
    return [*_own(workload, index), *_of_peers(workload, index)]


def _own(workload: Workload, index: PlacementIndex) -> Iterator[PeerRelation]:
    resolved = terms.resolve(workload.needs.affinity, workload.namespace, index.semantics, incoming=True)
    for effect, found in (
        (ATTRACTS, (*resolved.required, *resolved.group_required, *resolved.preferred)),
        (REPELS, (*resolved.anti_required, *resolved.anti_preferred)),
    ):
        for one in found:
            peers = [key for key in index.peer_index.all_peers(one.term) if key != workload.key]
            yield _relation(effect, one.source, one.keys, peers, of_peer=False, weight=one.weight)


def _of_peers(workload: Workload, index: PlacementIndex) -> Iterator[PeerRelation]:
    slots = list(index.slots.by_name.values())
    for rule in index.peer_index.matching_owner_rules(workload.labels, workload.namespace):
        effect = REPELS if rule.role in (Role.ANTI_REQUIRED, Role.ANTI_PREFERRED) else ATTRACTS
        owners = [key for key in index.peer_index.owners(rule, slots) if key != workload.key]
        if owners:
            weight = 0 if rule.role in (Role.REQUIRED, Role.ANTI_REQUIRED) else rule.weight
            yield _relation(effect, rule.source, rule.reach.keys, owners, of_peer=True, weight=weight)


def _relation(
    effect: str, source: PodTerm, keys: tuple[str, ...], peers: list[Any], *, of_peer: bool, weight: int
) -> PeerRelation:
    listed = tuple(peers[:MAX_PEERS_OF_A_TERM])
    return PeerRelation(effect, of_peer, weight, source.path, keys, listed, len(peers))
