"""
The workload affinity of the design document: terms over peers in a fleet, in domains of clusters, zones, regions,
providers or labels.

The counters are the same as for pods, with the semantics of the preset `design`: each affinity term may be met by
another peer, the first workload of a set fits anywhere, anti-affinity applies in both directions. Clusters that hold
the workload already are exempt.
"""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.indexing.owner_rules import Role
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.indexing.term_table import Reach
from bayplan.model.reasons import DocumentedReason, Reason, Scores, StatusCode
from bayplan.model.terms import TARGET, AffinityTerms
from bayplan.model.workloads import Workload
from bayplan.rules.inter_pod_affinity import (
    InterPodAffinity,
    InterPodAffinityPart,
    InterPodAffinityState,
    RequiredAffinity,
    elsewhere,
    first_by_term,
    in_detail,
    meets_affinity,
    rejected_by_existing,
    show_term,
)
from bayplan.rules.rule import MAX_SCORE, Failure, Rule

NO_PEER = Reason("workload-terms", "cluster(s) did not match workload affinity rules", StatusCode.UNRESOLVABLE)
PEER = Reason("workload-anti-terms", "cluster(s) did not match workload anti-affinity rules", StatusCode.UNSCHEDULABLE)
OWNER = Reason(
    "existing-workload-anti-affinity",
    "cluster(s) did not satisfy existing workloads anti-affinity rules",
    StatusCode.UNSCHEDULABLE,
)
LABELS_UNKNOWN = Reason("labels-unknown", "labels of <workload> are not known", StatusCode.UNSCHEDULABLE)


class WorkloadTermRule(InterPodAffinity):
    """What affinity and anti-affinity share; each of the two rules sees only its own terms."""

    reasons_by_code = (NO_PEER, PEER, OWNER)
    exempts_assigned = True
    domain_column = Rule.domain_column  # a cluster may be in several domains
    has_domain_effects = Rule.has_domain_effects
    evaluate_one = Rule.evaluate_one  # the scores differ from those for pods
    remedies = Rule.remedies  # those for pods edit the pod
    eviction_effect = Rule.eviction_effect  # preemption is for pods

    def evidence(
        self, state: InterPodAffinityState, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Failure]:
        state = in_detail(state, index)
        at, peer_index = np.array([slot]), index.peer_index
        found = []
        for required, first in zip(state.required_affinity, first_by_term(state), strict=True):
            if not meets_affinity(required, at, first=first)[0]:
                term, domain = required.use.source, _domain(required.reach, slot)
                detail = _what_is_missing(required, domain, workload)
                peers = peer_index.all_peers(required.term)
                found.append(Failure(self.id, NO_PEER.text, detail=detail, term=term.path, peers=peers))
        for counted in state.required_anti_affinity:
            if counted.reach.exceeds(counted.use.limit, at)[0]:
                term, domain = counted.use.source, _domain(counted.reach, slot)
                peers = peer_index.peers(counted.use.term, counted.reach.slots_sharing_domains(slot).tolist())
                detail = f"{_count(peers)} in {domain} match{'es' if len(peers) == 1 else ''} {show_term(term)}"
                found.append(Failure(self.id, PEER.text, detail=detail, term=term.path, domain=domain, peers=peers))
        of_existing = []
        for existing in state.existing_anti_affinity:
            if rejected_by_existing(existing, at)[0]:
                rule, reach = existing.rule, existing.rule.reach
                owners = peer_index.owners(rule, reach.slots_sharing_domains(slot).tolist())
                term, domain = rule.source, _domain(reach, slot)
                have = "has" if len(owners) == 1 else "have"
                detail = f"{_count(owners)} in {domain} {have} anti-affinity to {show_term(term)}"
                failure = Failure(self.id, OWNER.text, detail=detail, term=term.path, domain=domain, peers=owners)
                of_existing.append(failure)
        return found + sorted(of_existing, key=lambda failure: (failure.domain, failure.peers))


class WorkloadTermAffinity(WorkloadTermRule):
    name = "WorkloadAffinity"
    id = "workload-terms"
    documented = (
        DocumentedReason(
            NO_PEER,
            means=(
                "A required term of the placement's workloadAffinity matches no peer in the cluster's topology domain: "
                "the cluster itself, its zone, region or provider, or all clusters with the same label. The exception "
                "is the first workload of a set that matches its own terms."
            ),
            to_do=(
                "Compare the term's selector and namespaces with the labels of the templates that it should match, and "
                "place those first. If the affinity is not essential, make the term a preferred one."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> InterPodAffinityPart | None:  # type: ignore[override]
        affinity = workload.needs.affinity
        if affinity:
            affinity = msgspec.structs.replace(affinity, anti_required=())
        return super().part(_with(workload, affinity), index) if affinity else None

    def _roles_of_existing(self, part: InterPodAffinityPart, index: PlacementIndex) -> set[Role]:
        del part, index
        return set()

    def score(self, state: InterPodAffinityState, index: PlacementIndex, at: At) -> Scores | None:
        """The weight of the preferred terms that a cluster meets, in percent of all; existing terms do not count."""
        total = sum(term.use.weight for term in (*state.preferred_affinity, *state.preferred_anti_affinity))
        if total <= 0:
            return None
        met = np.zeros(len(index.slots.alive[at]), np.int64)
        for term in state.preferred_affinity:
            met += term.use.weight * (term.reach.counts(at) > 0)
        for term in state.preferred_anti_affinity:
            met += term.use.weight * (term.reach.counts(at) == 0)
        return MAX_SCORE * met // total


class WorkloadTermAntiAffinity(WorkloadTermRule):
    name = "WorkloadAntiAffinity"
    id = "workload-anti-terms"
    documented = (
        DocumentedReason(
            PEER,
            means=(
                "A required term of the placement's workloadAntiAffinity matches a peer in the cluster's topology "
                "domain."
            ),
            to_do=(
                "`bayplan explain` names the peers. Limit the number of clusters of each of them (maxGroups), use a "
                "smaller topology domain, or make the term a preferred one."
            ),
        ),
        DocumentedReason(
            OWNER,
            means=(
                "A workload in the cluster's topology domain has a required anti-affinity term that matches this "
                "workload. Anti-affinity is symmetric: the term of the existing workload applies although this "
                "workload has none."
            ),
            to_do=(
                "`bayplan explain` names the owners of the term. Change the labels of this template so that the "
                "selector no longer matches it, or narrow the selector."
            ),
        ),
        DocumentedReason(
            LABELS_UNKNOWN,
            means=(
                "A required term may or may not select a workload of which only the binding is known: bindings do not "
                "have the labels of their templates. Whether the cluster is feasible depends on them, so the workload "
                "is not placed."
            ),
            to_do=(
                "Add the template of the named workload to the input, give its labels as JSON in the annotation "
                "`bayplan.io/workload-labels` of its binding, or read the fleet with `--context`."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> InterPodAffinityPart | None:  # type: ignore[override]
        terms = workload.needs.affinity.anti_required
        if not terms and not index.peer_index.owner_rules.n:  # neither the workload nor a placed one has terms
            return None
        return super().part(_with(workload, AffinityTerms(anti_required=terms)), index)

    def _roles_of_existing(self, part: InterPodAffinityPart, index: PlacementIndex) -> set[Role]:
        del part, index
        return {Role.ANTI_REQUIRED}

    def score(self, state: InterPodAffinityState, index: PlacementIndex, at: At) -> Scores | None:
        del state, index, at
        return None


def _with(workload: Workload, affinity: AffinityTerms) -> Workload:
    needs = msgspec.structs.replace(workload.needs, affinity=affinity)
    return msgspec.structs.replace(workload, needs=needs)


def _what_is_missing(required: RequiredAffinity, domain: str, workload: Workload) -> str:
    """What a term of affinity looked for, and where that is; if nothing is placed yet, what the workload lacks."""
    term = required.use.source
    if not domain:
        return f"the cluster has no {' or '.join(_shown(key) for key in required.reach.keys)}"
    if term.selector is None:  # of an own label, which the workload does not have
        return "the term matches nothing: it has no selector, or selects by a label that the workload lacks"
    if required.reach.anywhere:
        return f"no workload in {domain} matches {show_term(term)}; they are in {elsewhere(required.reach)}"
    lacking = [one for one in term.selector.requirements if not one.matches(workload.labels)]
    own = ""
    if lacking:
        all_of_it = len(lacking) == len(term.selector.requirements)
        own = f", and its own labels lack {'it' if all_of_it else ','.join(map(str, lacking))}"
    return f"no placed workload matches {show_term(term)}{own}"


def _count(peers: tuple[str, ...]) -> str:
    return peers[0] if len(peers) == 1 else f"{len(peers)} workloads"


def _shown(key: str) -> str:
    return "cluster" if key == TARGET else key.removeprefix(chr(0))


def _domain(reach: Reach, slot: int) -> str:
    """The cluster's domains as `key=value`."""
    pairs = [(column.key, column.values[domain]) for column in reach.columns for domain in column.domains(slot)]
    return ", ".join(f"{_shown(key)}={value}" for key, value in pairs)
