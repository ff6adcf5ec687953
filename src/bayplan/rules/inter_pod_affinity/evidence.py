"""Which pods make a node fail a pod's affinity, term by term: for people, on demand."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.term_table import Reach
from bayplan.model.groups import MEMBER_OF
from bayplan.model.labels import IN, Selector
from bayplan.model.terms import PodTerm
from bayplan.rules.inter_pod_affinity.reasons import (
    AFFINITY_NOT_MATCHED,
    ANTI_AFFINITY_NOT_MATCHED,
    EXISTING_ANTI_AFFINITY_NOT_SATISFIED,
    NO_ANTI_AFFINITY_KEY,
)
from bayplan.rules.inter_pod_affinity.state import (
    CountedTerm,
    ExistingPodTerm,
    InterPodAffinityState,
    RequiredAffinity,
    first_by_term,
    meets_affinity,
    rejected_by_existing,
    terms_without_key,
)
from bayplan.rules.rule import Failure

RULE = "pod-affinity"
MAX_DOMAINS_NAMED = 3
MAX_TERMS_NAMED = 16


def failures(state: InterPodAffinityState, slot: int, index: PlacementIndex) -> list[Failure]:
    """Every term that the target fails, in kube-scheduler's order of checks."""
    at = np.array([slot])
    at_once = [one for one in state.required_affinity if one.term != one.use.term]
    named = [show_term(one.use.source) for one in at_once[:MAX_TERMS_NAMED]]
    if len(at_once) > MAX_TERMS_NAMED:
        named.append(f"{len(at_once) - MAX_TERMS_NAMED} more")
    all_terms = " and ".join(named)
    affinity = [
        _affinity_failure(required, f"all of {all_terms} at once", slot)
        for required, first in zip(state.required_affinity, first_by_term(state), strict=True)
        if not meets_affinity(required, at, first=first)[0]
    ]
    anti_affinity = [
        _anti_affinity_failure(term, slot, index)
        for term in state.required_anti_affinity
        if term.reach.exceeds(term.use.limit, at)[0]
    ]
    without_key = [_missing_key_failure(term) for term in terms_without_key(state, slot)]
    existing = [
        _existing_failure(term, slot, index)
        for term in state.existing_anti_affinity
        if rejected_by_existing(term, at)[0]
    ]
    # Terms of existing pods have no order, so they are sorted: the same question gets the same text.
    return [*affinity, *without_key, *anti_affinity, *sorted(existing, key=lambda failure: failure.detail)]


def _affinity_failure(required: RequiredAffinity, all_terms: str, slot: int) -> Failure:
    shown = show_term(required.use.source) if required.term == required.use.term else all_terms
    domain = _domain(required.reach, slot)
    if not domain:
        detail = f"the node has no label {' or '.join(required.reach.keys)}"
    elif required.reach.anywhere == 0:
        detail = f"no placed pod matches {shown}"
    else:
        detail = f"no pod in {domain} matches {shown}; they are in {elsewhere(required.reach)}"
    return Failure(RULE, AFFINITY_NOT_MATCHED.text, detail=detail, term=required.use.source.path, domain=domain)


def _anti_affinity_failure(counted: CountedTerm, slot: int, index: PlacementIndex) -> Failure:
    domain, term = _domain(counted.reach, slot), counted.use.source
    peers = index.peer_index.peers(counted.use.term, counted.reach.slots_sharing_domains(slot).tolist())
    allowed = f", more than the {term.limit} allowed" if term.limit else ""
    detail = f"{_count(peers)} in {domain} match{'es' if len(peers) == 1 else ''} {show_term(term)}{allowed}"
    return Failure(RULE, ANTI_AFFINITY_NOT_MATCHED.text, detail=detail, term=term.path, domain=domain, peers=peers)


def _missing_key_failure(term: PodTerm) -> Failure:
    detail = f"the node has no label {term.topology_key}" if term.topology_key else "the node has no label"
    return Failure(RULE, NO_ANTI_AFFINITY_KEY.text, detail=detail, term=term.path)


def _existing_failure(existing: ExistingPodTerm, slot: int, index: PlacementIndex) -> Failure:
    rule = existing.rule
    domain = _domain(rule.reach, slot)
    owners = index.peer_index.owners(rule, rule.reach.slots_sharing_domains(slot).tolist())
    have, limit = "has" if len(owners) == 1 else "have", f"more than {rule.limit} of " if rule.limit else ""
    detail = f"{_count(owners)} in {domain} {have} anti-affinity to {limit}{show_term(rule.source)}"
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
    selector = "nothing (a null selector)" if term.selector is None else _show_selector(term.selector)
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


def _show_selector(selector: Selector) -> str:
    """The selector; what terms of groups select members by is said in words."""
    of_group = [one for one in selector.requirements if one.key == MEMBER_OF]
    if not of_group:
        return str(selector)
    if own := [value for one in of_group if one.operator == IN for value in one.values]:
        return f"group {own[0]}"
    written = Selector(tuple(one for one in selector.requirements if one.key != MEMBER_OF))
    return f"{written} in {'another' if len(of_group) > 1 else 'a'} group"


def _domain(reach: Reach, slot: int) -> str:
    """The target's domains as `key=value`, empty if it has none."""
    pairs = [f"{c.key}={c.values[domain]}" for c in reach.columns for domain in c.domains(slot)]
    return ", ".join(pairs)


def elsewhere(reach: Reach) -> str:
    """The first domains that hold a match, by name."""
    column = reach.counter.column
    names = sorted(str(column.values[domain]) for domain in reach.by_domain())
    if not names:
        return f"nodes without {column.key}"
    n_more = len(names) - MAX_DOMAINS_NAMED
    return ", ".join(names[:MAX_DOMAINS_NAMED]) + (f" and {n_more} more" if n_more > 0 else "")


def _count(peers: tuple[str, ...]) -> str:
    return peers[0] if len(peers) == 1 else f"{len(peers)} pods"
