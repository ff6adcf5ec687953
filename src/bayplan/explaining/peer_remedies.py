"""Remedies for what stands beside what: affinity, anti-affinity, spread, claims that one pod at a time may use."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from bayplan.explaining.remedies import OTHERS, Alternatives, Edit, Remedy, change_needs, labelling, moving
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.term_table import Reach
from bayplan.model.terms import AffinityTerms, PodTerm
from bayplan.model.workloads import SpreadConstraint, Workload, WorkloadKey
from bayplan.rules import inter_pod_affinity, topology_spread
from bayplan.rules.inter_pod_evidence import show_term


def for_affinity(
    state: inter_pod_affinity.InterPodAffinityState, workload: Workload, slot: int, index: PlacementIndex
) -> list[Alternatives]:
    """One list of alternatives for each thing that affinity has against the target."""
    at, found = np.array([slot]), []
    for required, first in zip(state.required_affinity, inter_pod_affinity.first_by_term(state), strict=True):
        if not inter_pod_affinity.meets_affinity(required, at, first=first)[0]:
            # Where one pod must meet all terms, dropping another term may be what helps.
            terms = (required.use.source,) if required.term == required.use.term else workload.needs.affinity.required
            found.append([*_dropping(terms), *_label_for(required.reach, slot, index)])
    for own in state.required_anti_affinity:
        if own.reach.counts(at)[0] > own.use.limit:
            peers = index.peer_index.peers(own.use.term, own.reach.slots_sharing_domains(slot).tolist())
            found.append([*_dropping((own.use.source,)), *_raising(own, len(peers)), *moving(peers)])
    for existing in state.existing_anti_affinity:
        if inter_pod_affinity.rejected_by_existing(existing, at)[0]:
            rule = existing.rule
            owners = index.peer_index.owners(rule, rule.reach.slots_sharing_domains(slot).tolist())
            found.append([*moving(owners), _disarming(owners, rule.source)])
    return found


def _dropping(terms: tuple[PodTerm, ...]) -> Alternatives:
    if len(terms) == 1:
        return [Remedy(f"drop {terms[0].path} ({show_term(terms[0])})", _without_terms(terms))]
    one_by_one = [Remedy(f"drop {term.path} ({show_term(term)})", _without_terms((term,))) for term in terms]
    return [*one_by_one, Remedy("drop all required pod affinity", _without_terms(terms))]


def _raising(own: inter_pod_affinity.CountedTerm, n_peers: int) -> Alternatives:
    term = own.use.source
    if not term.limit:
        return []
    raised = msgspec.structs.replace(term, limit=n_peers)

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        affinity = workload.needs.affinity
        terms = tuple(raised if t == term else t for t in affinity.anti_required)
        return change_needs(affinity=msgspec.structs.replace(affinity, anti_required=terms))(workload, index)

    return [Remedy(f"raise the limit of {term.path} from {term.limit} to {n_peers}", edit)]


def _without_terms(terms: tuple[PodTerm, ...]) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        return change_needs(affinity=_left(workload.needs.affinity, terms))(workload, index)

    return edit


def _left(affinity: AffinityTerms, gone: tuple[PodTerm, ...]) -> AffinityTerms:
    return msgspec.structs.replace(
        affinity,
        required=tuple(t for t in affinity.required if t not in gone),
        anti_required=tuple(t for t in affinity.anti_required if t not in gone),
    )


def _label_for(reach: Reach, slot: int, index: PlacementIndex) -> Alternatives:
    """Where the node only lacks the topology label: the value of a domain that has the peers."""
    column = reach.columns[0]
    if len(reach.columns) > 1 or column.domains(slot) or not column.by_value:
        return []
    counts = reach.counter.by_domain
    domains = sorted(counts, key=lambda domain: (-counts[domain], str(column.values[domain])))
    value = str(column.values[domains[0]]) if domains else min(map(str, column.by_value))
    return [labelling(slot, column.key, value, index)]


def _disarming(owners: tuple[WorkloadKey, ...], term: PodTerm) -> Remedy:
    """The same pods without the term that refuses us."""

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        for key in owners:
            holder = index.records[key].workload
            affinity = holder.needs.affinity
            kept = tuple(t for t in affinity.anti_required if not _same(t, term))
            needs = msgspec.structs.replace(
                holder.needs, affinity=msgspec.structs.replace(affinity, anti_required=kept)
            )
            index.replace(msgspec.structs.replace(holder, needs=needs))
        return workload

    whose = " and ".join(owners) if len(owners) <= 3 else f"{len(owners)} pods such as {owners[0]}"
    return Remedy(f"drop the required anti-affinity to {show_term(term)} from {whose}", edit, OTHERS)


def _same(one: PodTerm, other: PodTerm) -> bool:
    return msgspec.structs.replace(one, path="") == msgspec.structs.replace(other, path="")


def for_spread(
    state: topology_spread.SpreadState, workload: Workload, slot: int, index: PlacementIndex
) -> list[Alternatives]:
    found = []
    for counted in state.hard:
        constraint, column = counted.constraint, counted.column
        drop = Remedy(f"drop the spread constraint on {constraint.topology_key}", _spread_without(constraint, None))
        if not column.domains(slot):
            values = sorted(map(str, column.by_value))
            found.append([drop, *(labelling(slot, column.key, value, index) for value in values[:1])])
            continue
        counts = counted.count_by_domain()
        skew = int(counts[column.domains(slot)[0]]) + counted.self_matching - counted.global_minimum(counts)
        if skew > constraint.max_skew:
            wider = msgspec.structs.replace(constraint, max_skew=skew)
            text = f"raise maxSkew on {constraint.topology_key} from {constraint.max_skew} to {skew}"
            found.append([Remedy(text, _spread_without(constraint, wider)), drop])
    del workload
    return found


def _spread_without(gone: SpreadConstraint, instead: SpreadConstraint | None) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        spread = workload.needs.spread
        kept = tuple(instead if c == gone else c for c in spread.constraints)
        constraints = tuple(c for c in kept if c is not None)
        return change_needs(spread=msgspec.structs.replace(spread, constraints=constraints))(workload, index)

    return edit


def for_claims(state: Any, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
    """A ReadWriteOncePod claim is free once its pod is gone."""
    del workload, slot
    users = tuple(sorted({key for claim in state.claims() for key in index.claim_users.users(claim)}))
    return [moving(users)]
