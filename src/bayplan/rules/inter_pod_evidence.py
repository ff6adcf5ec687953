"""Who stands in the way of a pod's affinity on one target, term by term: for people, on demand."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.term_table import Reach
from bayplan.model.terms import PodTerm
from bayplan.rules.inter_pod_affinity import (
    AFFINITY_NOT_MATCHED,
    ANTI_AFFINITY_NOT_MATCHED,
    EXISTING_ANTI_AFFINITY_NOT_SATISFIED,
    CountedTerm,
    ExistingPodTerm,
    InterPodAffinityState,
    RequiredAffinity,
    first_by_term,
    meets_affinity,
    rejected_by_existing,
)
from bayplan.rules.rule import Failure

RULE = "pod-affinity"


def failures(state: InterPodAffinityState, slot: int, index: PlacementIndex) -> list[Failure]:
    """Everything that affinity and anti-affinity have against the target, in kube-scheduler's order of checks."""
    at = np.array([slot])
    not_near = [
        _not_near(near, state, slot)
        for near, first in zip(state.near, first_by_term(state), strict=True)
        if not meets_affinity(near, at, first=first)[0]
    ]
    too_near = [_too_near(wish, slot, index) for wish in state.apart if wish.reach.counts(at)[0] > wish.use.limit]
    unwelcome = [_unwelcome(others, slot, index) for others in state.refusing if rejected_by_existing(others, at)[0]]
    # In no order of their own, so the same question would be explained in different words.
    return [*not_near, *too_near, *sorted(unwelcome, key=lambda failure: failure.detail)]


def _not_near(near: RequiredAffinity, state: InterPodAffinityState, slot: int) -> Failure:
    shown = show_term(near.use.source)
    if near.term != near.use.term:
        shown = f"all of {' and '.join(show_term(n.use.source) for n in state.near)} at once"
    domain = _domain(near.reach, slot)
    if not domain:
        detail = f"the node has no label {' or '.join(near.reach.keys)}"
    elif near.reach.counter.anywhere == 0:
        detail = f"no placed pod matches {shown}"
    else:
        detail = f"no pod in {domain} matches {shown}; they are in {_elsewhere(near.reach)}"
    return Failure(RULE, AFFINITY_NOT_MATCHED.text, detail=detail, term=near.use.source.path, domain=domain)


def _too_near(wish: CountedTerm, slot: int, index: PlacementIndex) -> Failure:
    domain, term = _domain(wish.reach, slot), wish.use.source
    peers = index.peer_index.peers(wish.use.term, wish.reach.slots_sharing_domains(slot).tolist())
    allowed = f", more than the {term.limit} allowed" if term.limit else ""
    detail = f"{_count(peers)} in {domain} match{'es' if len(peers) == 1 else ''} {show_term(term)}{allowed}"
    return Failure(RULE, ANTI_AFFINITY_NOT_MATCHED.text, detail=detail, term=term.path, domain=domain, peers=peers)


def _unwelcome(neighbours: ExistingPodTerm, slot: int, index: PlacementIndex) -> Failure:
    rule = neighbours.rule
    domain = _domain(rule.reach, slot)
    owners = index.peer_index.owners(rule, rule.reach.slots_sharing_domains(slot).tolist())
    allowed = f" more than {rule.limit} of" if rule.limit else ""
    detail = f"{_count(owners)} in {domain} refuse{'s' if len(owners) == 1 else ''}{allowed} {show_term(rule.source)}"
    return Failure(
        RULE,
        EXISTING_ANTI_AFFINITY_NOT_SATISFIED.text,
        detail=detail,
        term=rule.source.path,
        domain=domain,
        peers=owners,
    )


def show_term(term: PodTerm) -> str:
    """The term in kubectl's grammar, with its namespaces where they are not simply the owner's."""
    selector = "nothing (a null selector)" if term.selector is None else str(term.selector)
    scope = ""
    if term.namespaces:
        scope = f" in namespace {', '.join(term.namespaces)}"
    if term.namespace_selector is not None:
        scope += (
            f" in namespaces with {term.namespace_selector}"
            if term.namespace_selector.requirements
            else " in any namespace"
        )
    return selector + scope


def _domain(reach: Reach, slot: int) -> str:
    """The target's domains as `key=value`, empty if it has none."""
    pairs = [f"{c.key}={c.values[domain]}" for c in reach.columns for domain in c.domains(slot)]
    return ", ".join(pairs)


def _elsewhere(reach: Reach, most: int = 3) -> str:
    column = reach.counter.column
    names = sorted(str(column.values[domain]) for domain in reach.counter.by_domain)
    if not names:
        return f"nodes without {column.key}"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _count(peers: tuple[str, ...]) -> str:
    return peers[0] if len(peers) == 1 else f"{len(peers)} pods"
