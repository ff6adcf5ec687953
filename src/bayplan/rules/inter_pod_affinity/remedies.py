"""What would lift the rejection of a node by affinity or anti-affinity to other pods, term by term."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec
import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.term_table import Reach
from bayplan.model.terms import PodTerm, selects_members
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.inter_pod_affinity.evidence import show_term
from bayplan.rules.inter_pod_affinity.state import (
    CountedTerm,
    InterPodAffinityState,
    first_by_term,
    meets_affinity,
    rejected_by_existing,
    terms_without_key,
)
from bayplan.rules.remedies import (
    MAX_CHANGES_PER_FIX,
    OTHERS,
    Alternatives,
    Edit,
    Manifest,
    Remedy,
    Revision,
    change_needs,
    label_target,
    move_pods,
    on_workload,
)


def alternatives(
    state: InterPodAffinityState, workload: Workload, slot: int, index: PlacementIndex
) -> list[Alternatives]:
    """
    One list of alternatives for each term that the target fails.

    Where it fails more terms than a fix may change, the list ends: a pod may have thousands of them.
    """
    return list(itertools.islice(_by_term(state, workload, slot, index), MAX_CHANGES_PER_FIX + 1))


def _by_term(
    state: InterPodAffinityState, workload: Workload, slot: int, index: PlacementIndex
) -> Iterator[Alternatives]:
    at = np.array([slot])
    for required, first in zip(state.required_affinity, first_by_term(state), strict=True):
        if not meets_affinity(required, at, first=first)[0]:
            # Where one pod must match all terms, dropping another term may help.
            terms = (required.use.source,) if required.term == required.use.term else workload.needs.affinity.required
            yield [*_prefer_terms(terms), *_label_for(required.reach, slot, index)]
    for term in terms_without_key(state, slot):
        own_terms = [own for own in state.required_anti_affinity if own.use.source == term]
        yield [*_prefer_terms((term,)), *_label_without_peers(own_terms, slot, index)]
    for own in state.required_anti_affinity:
        if own.reach.exceeds(own.use.limit, at)[0]:
            peers = index.peer_index.peers(own.use.term, own.reach.slots_sharing_domains(slot).tolist())
            loosened = [*_raise_limit(own, len(peers)), *_prefer_terms((own.use.source,))]
            yield [*loosened, *move_pods(peers, workload, index)]
    for existing in state.existing_anti_affinity:
        if rejected_by_existing(existing, at)[0]:
            rule = existing.rule
            owners = index.peer_index.owners(rule, rule.reach.slots_sharing_domains(slot).tolist())
            loosened = [] if selects_members(rule.source) else [_prefer_term_of_others(owners, rule.source)]
            yield [*move_pods(owners, workload, index), *loosened]


def _prefer_terms(terms: tuple[PodTerm, ...]) -> Alternatives:
    if any(map(selects_members, terms)):
        return []  # a rule of a group is one of all its members
    if len(terms) == 1:
        return [_prefer(terms, f"make {terms[0].path} ({show_term(terms[0])}) preferred")]
    one_by_one = [_prefer((term,), f"make {term.path} ({show_term(term)}) preferred") for term in terms]
    return [*one_by_one, _prefer(terms, "make all required pod affinity preferred")]


def _prefer(terms: tuple[PodTerm, ...], text: str) -> Remedy:
    def revise(pod: Manifest, original: Manifest) -> None:
        from bayplan.rules.inter_pod_affinity import term_manifests  # it parses YAML

        term_manifests.make_preferred(pod, original, [term.path for term in terms])

    return Remedy(text, _without_terms(terms), revisions=on_workload(revise))


def _raise_limit(own: CountedTerm, n_peers: int) -> Alternatives:
    term = own.use.source
    if not term.limit:
        return []
    raised = msgspec.structs.replace(term, limit=n_peers)

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        affinity = workload.needs.affinity
        terms = tuple(raised if t == term else t for t in affinity.anti_required)
        return change_needs(affinity=msgspec.structs.replace(affinity, anti_required=terms))(workload, index)

    def revise(pod: Manifest, original: Manifest) -> None:
        from bayplan.rules.inter_pod_affinity import term_manifests  # it parses YAML

        term_manifests.set_limit(pod, original, term.path, n_peers)

    text = f"raise the limit of {term.path} from {term.limit} to {n_peers}"
    return [Remedy(text, edit, revisions=on_workload(revise), family=f"limit of {term.path}", size=n_peers)]


def _without_terms(terms: tuple[PodTerm, ...]) -> Edit:
    """What the filters see of terms that become preferred: nothing."""

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        affinity = workload.needs.affinity
        required = tuple(t for t in affinity.required if t not in terms)
        anti_required = tuple(t for t in affinity.anti_required if t not in terms)
        affinity = msgspec.structs.replace(affinity, required=required, anti_required=anti_required)
        return change_needs(affinity=affinity)(workload, index)

    return edit


def _label_for(reach: Reach, slot: int, index: PlacementIndex) -> Alternatives:
    """If the node lacks the topology label: labelling it with the value of the domain that has the most peers."""
    column = reach.columns[0]
    if len(reach.columns) > 1 or column.domains(slot) or not column.by_value:
        return []
    counts = reach.by_domain()
    domains = sorted(counts, key=lambda domain: (-counts[domain], str(column.values[domain])))
    value = str(column.values[domains[0]]) if domains else min(map(str, column.by_value))
    return [label_target(slot, column.key, value, index)]


def _label_without_peers(terms: list[CountedTerm], slot: int, index: PlacementIndex) -> Alternatives:
    """Labelling a node without the topology label with the value of a domain that has room for the pod."""
    if len(terms) > 1:  # one for each of the default keys
        return []
    reach = terms[0].reach
    counts, column = reach.by_domain(), reach.columns[0]
    free = [str(value) for value, domain in column.by_value.items() if counts.get(domain, 0) <= terms[0].use.limit]
    return [label_target(slot, column.key, min(free), index)] if free else []


def _prefer_term_of_others(owners: tuple[WorkloadKey, ...], term: PodTerm) -> Remedy:
    """Making the anti-affinity term that selects the pod a preferred one of its owners."""

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        for key in owners:
            owner = index.records[key].workload
            affinity = owner.needs.affinity
            kept = tuple(t for t in affinity.anti_required if not _same(t, term))
            needs = msgspec.structs.replace(owner.needs, affinity=msgspec.structs.replace(affinity, anti_required=kept))
            index.replace(msgspec.structs.replace(owner, needs=needs))
        return workload

    def revise(pod: Manifest, original: Manifest) -> None:
        from bayplan.rules.inter_pod_affinity import term_manifests  # it parses YAML

        # Equal terms may be written in other places, and the same term in several.
        paths = term_manifests.paths_of(original, lambda one: _same(one, term))
        term_manifests.make_preferred(pod, original, paths)

    names = " and ".join(owners) if len(owners) <= 3 else f"{len(owners)} pods such as {owners[0]}"
    text = f"make the required anti-affinity to {show_term(term)} of {names} preferred"
    return Remedy(text, edit, OTHERS, tuple(Revision(revise, pod=key) for key in owners))


def _same(one: PodTerm, other: PodTerm) -> bool:
    return msgspec.structs.replace(one, path="") == msgspec.structs.replace(other, path="")
