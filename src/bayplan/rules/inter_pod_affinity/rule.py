"""
InterPodAffinity: required and preferred affinity and anti-affinity to other pods, in both directions.

Filter and score read counters by domain, never pods. `docs/differences.md` lists what the semantics switch.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from bayplan.caching import BoundedCache
from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.owner_rules import OwnerRule, Role
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT, ALL, At, ValueColumn
from bayplan.indexing.term_table import Reach
from bayplan.model.reasons import Codes, Scores
from bayplan.model.terms import PeerTerm, resolve, topology_keys
from bayplan.model.workloads import Workload, label_keys
from bayplan.rules.evictions import EvictionEffect, Preemptor
from bayplan.rules.inter_pod_affinity import evidence, preemption, remedies
from bayplan.rules.inter_pod_affinity.arguments import InterPodAffinityArguments
from bayplan.rules.inter_pod_affinity.reasons import (
    AFFINITY_CODE,
    ANTI_AFFINITY_CODE,
    DOCUMENTED,
    EXISTING_ANTI_AFFINITY_CODE,
    NO_ANTI_AFFINITY_KEY_CODE,
    REASONS_BY_CODE,
)
from bayplan.rules.inter_pod_affinity.state import (
    CountedTerm,
    ExistingPodTerm,
    InterPodAffinityPart,
    InterPodAffinityState,
    RequiredAffinity,
    TermCounts,
    first_by_term,
    has_few_domains,
    has_needed_keys,
    in_detail,
    meets_affinity,
    rejected_by_existing,
    rejecting_reaches_of,
    scoring_reaches_of,
    sum_of_counts,
)
from bayplan.rules.remedies import Alternatives
from bayplan.rules.rule import (
    MAX_REMEMBERED_CLASSES,
    MAX_SCORE,
    DomainEffects,
    Failure,
    LiftedBy,
    Raw,
    Rule,
    Scaling,
    SharedDomains,
    Touched,
    common_column,
)

EVERYWHERE = ("\0everywhere",)  # in place of topology keys: a change that may matter on any target


class InterPodAffinity(Rule[InterPodAffinityPart, InterPodAffinityState]):
    name = "InterPodAffinity"
    id = "pod-affinity"
    extends = ("preFilter", "filter", "preScore", "score")
    filter_needs_pre_filter = True
    score_needs_pre_score = True
    lifted_by = LiftedBy.PEERS
    default_weight = 2
    arguments_type = InterPodAffinityArguments
    arguments: InterPodAffinityArguments
    reasons_by_code = REASONS_BY_CODE
    prepared_for_owners = True
    scaling = Scaling.BY_EXTREMES
    documented = DOCUMENTED

    def part(self, workload: Workload, index: PlacementIndex) -> InterPodAffinityPart:
        affinity = workload.needs.affinity
        return InterPodAffinityPart(
            workload.namespace, index.peer_index.visible(workload.labels, label_keys(workload.needs)), affinity
        )

    def prepare(self, part: InterPodAffinityPart, index: PlacementIndex) -> InterPodAffinityState:
        peer_index, semantics, labels = index.peer_index, index.semantics, dict(part.labels)
        counts = TermCounts(peer_index)
        reach = counts.reach
        own = resolve(part.affinity, part.namespace, semantics, incoming=True)
        required = []
        for use in own.required:
            conjunction = None if semantics.affinity_terms_met_apart else own.conjunction
            own_reach = reach(use.term, use.keys) if semantics.first_pod_per_term else None
            self_matching = peer_index.matches(use.term, labels, part.namespace)
            term = conjunction or use.term
            first_needs_key = semantics.first_pod_needs_topology_key
            required.append(
                RequiredAffinity(use, term, reach(term, use.keys), self_matching, own_reach, first_needs_key)
            )
        for use in own.group_required:
            self_matching, matching = peer_index.matches(use.term, labels, part.namespace), reach(use.term, use.keys)
            required.append(RequiredAffinity(use, use.term, matching, self_matching, matching, first_needs_key=True))
        anti_required = tuple([CountedTerm(reach(use.term, use.keys), use) for use in own.anti_required])
        needed_columns = []
        if semantics.anti_affinity_needs_topology_key and anti_required:
            keys = {topology_keys(use.source, semantics): None for use in own.anti_required}
            needed_columns = [tuple(map(index.column, some)) for some in keys]
        roles = self._roles_of_existing(part, index)
        rejecting: list[ExistingPodTerm] = []
        scored: list[ExistingPodTerm] = []
        while_satisfied = semantics.neighbours_reject_when_satisfied
        # What a term of existing pods does may depend on how many pods match it, so that no sum of terms will do.
        one_by_one = while_satisfied or semantics.neighbours_count_when_changed
        if one_by_one:
            existing = [(rule, rule.reach) for rule in peer_index.matching_owner_rules(labels, part.namespace, roles)]
        else:
            existing = list(peer_index.summed_owner_rules(labels, part.namespace, roles))
        for rule, owners in existing:
            rejects = rule.role is Role.ANTI_REQUIRED
            compares = rule.limit > 0 or while_satisfied if rejects else semantics.neighbours_count_when_changed
            matches = reach(rule.entry.term, rule.reach.keys) if compares else None
            if rejects:
                rejecting.append(ExistingPodTerm(rule, owners, matches, while_satisfied))
            else:
                scored.append(ExistingPodTerm(rule, owners, matches))
        return InterPodAffinityState(
            part,
            tuple(required),
            anti_required,
            tuple(needed_columns),
            tuple(rejecting),
            tuple(scored),
            counts,
            any(existing.matches is not None for existing in (*rejecting, *scored)),
            one_by_one,
            semantics.default_topology_keys,
            BoundedCache(),
            not (own.preferred or own.anti_preferred),
        )

    def prepare_scores(self, state: InterPodAffinityState, index: PlacementIndex) -> None:
        if state.is_scored:
            return
        state.is_scored = True
        own = resolve(state.part.affinity, state.part.namespace, index.semantics, incoming=True)
        state.preferred_affinity, state.preferred_anti_affinity = (
            tuple([CountedTerm(state.counts.reach(use.term, use.keys), use) for use in uses])
            for uses in (own.preferred, own.anti_preferred)
        )
        state.effects.clear()

    def _roles_of_existing(self, part: InterPodAffinityPart, index: PlacementIndex) -> set[Role]:
        """The roles of existing pods' terms that apply to the pod: required anti-affinity, and what is scored."""
        has_preferred_terms = part.affinity.preferred or part.affinity.anti_preferred
        roles = {Role.ANTI_REQUIRED}
        if self.arguments.ignore_preferred_terms_of_existing_pods and not has_preferred_terms:
            return roles
        roles.add(Role.PREFERRED)
        if self.arguments.hard_weight > 0:
            roles.add(Role.REQUIRED)
        if index.semantics.soft_anti_affinity_symmetric:
            roles.add(Role.ANTI_PREFERRED)
        return roles

    def release(self, state: InterPodAffinityState, index: PlacementIndex) -> None:
        for entry in state.counts.held.values():
            index.peer_index.release(entry)

    def is_outdated(self, state: InterPodAffinityState, index: PlacementIndex) -> bool:
        """Whether an empty topology key of the pod's own terms means other keys by now."""
        return state.default_keys != index.semantics.default_topology_keys and state.part.affinity.has_empty_key

    def concerns(self, state: InterPodAffinityState, term: PeerTerm, index: PlacementIndex) -> bool:
        if state.one_by_one:
            # Such a state is concerned by a new one whether or not it is excluded.
            term = msgspec.structs.replace(term, any_of=())
        return index.peer_index.matches(term, dict(state.part.labels), state.part.namespace)

    def has_domain_effects(self, state: InterPodAffinityState) -> bool:
        return not state.compares_matches

    def domain_effects(self, state: InterPodAffinityState) -> list[DomainEffects] | None:
        if not has_few_domains(rejecting_reaches_of(state)):
            return None
        if any(len(columns) > 1 for columns in state.needed_columns):
            return None
        found: dict[str, DomainEffects] = {}

        def of(column: ValueColumn) -> DomainEffects:
            effects = found.get(column.key)
            if effects is None:
                effects = found[column.key] = DomainEffects(column)
            return effects

        for existing in state.existing_anti_affinity:
            of(existing.owners.columns[0]).rejected.update(existing.owners.by_domain())
        for term in state.required_anti_affinity:
            limit, by_domain = term.use.limit, term.reach.by_domain()
            over = by_domain if not limit else [domain for domain, count in by_domain.items() if count > limit]
            of(term.reach.columns[0]).rejected.update(over)
        for (column,) in state.needed_columns:
            of(column).rejected.add(ABSENT)
        for required, first in zip(state.required_affinity, first_by_term(state), strict=True):
            if first:
                of(required.reach.columns[0]).rejected.update([ABSENT] if required.first_needs_key else [])
            else:
                of(required.reach.columns[0]).leave(set(required.reach.by_domain()))
        return list(found.values())

    def domain_scores(
        self, state: InterPodAffinityState, index: PlacementIndex
    ) -> dict[ValueColumn, dict[int, int]] | None:
        self.prepare_scores(state, index)
        if index.semantics.soft_terms_count_once or not has_few_domains(scoring_reaches_of(state)):
            return None
        found: dict[ValueColumn, dict[int, int]] = {}
        for reach, weight in self._scored(state):
            raw = found.setdefault(reach.columns[0], {})
            for domain, count in reach.by_domain().items():
                raw[domain] = raw.get(domain, 0) + weight * count
        return found

    def _scored(self, state: InterPodAffinityState) -> Iterator[tuple[Reach, int]]:
        """The counters that scores are made of, each with what one counted pod adds."""
        for term in state.preferred_affinity:
            yield term.reach, term.use.weight
        for term in state.preferred_anti_affinity:
            yield term.reach, -term.use.weight
        for existing in state.existing_scores:
            yield existing.owners, self._weight_of(existing.rule)

    def domain_column(self, state: InterPodAffinityState, index: PlacementIndex) -> ValueColumn | None:
        reaches = (*rejecting_reaches_of(state), *scoring_reaches_of(state))
        return common_column((column for reach in reaches for column in reach.columns), index)

    def reject(self, state: InterPodAffinityState, index: PlacementIndex, at: At) -> Codes | None:
        if not (state.required_affinity or state.required_anti_affinity or state.existing_anti_affinity):
            return None
        codes = np.zeros(len(index.slots.alive[at]), np.int64)
        # The check that kube-scheduler makes first comes last, so that its code overwrites the others.
        if state.existing_anti_affinity:
            existing = state.existing_anti_affinity
            rejected = sum_of_counts(((one.owners, 1) for one in existing if one.matches is None), at) > 0
            for one in existing:
                if one.matches is not None:
                    rejected = rejected | rejected_by_existing(one, at)
            codes[:] = np.where(rejected, EXISTING_ANTI_AFFINITY_CODE, 0)
        for term in state.required_anti_affinity:
            codes[term.reach.exceeds(term.use.limit, at)] = ANTI_AFFINITY_CODE
        if state.needed_columns:
            codes[~has_needed_keys(state, at)] = NO_ANTI_AFFINITY_KEY_CODE
        if state.required_affinity:
            state.first_by_term = first_by_term(state)
        for required, first in zip(state.required_affinity, state.first_by_term, strict=True):
            codes[~meets_affinity(required, at, first=first)] = AFFINITY_CODE
        return codes

    def score(self, state: InterPodAffinityState, index: PlacementIndex, at: At) -> Scores | None:
        if not (state.preferred_affinity or state.preferred_anti_affinity or state.existing_scores):
            return None
        once = index.semantics.soft_terms_count_once
        raw = np.zeros(len(index.slots.alive[at]), np.int64)
        for term in state.preferred_affinity:
            counts = term.reach.counts(at)
            raw += term.use.weight * (np.minimum(counts, 1) if once else counts)
        for term in state.preferred_anti_affinity:
            # By the design document a domain without a match adds the weight; kube-scheduler subtracts it per match.
            counts = term.reach.counts(at)
            raw += term.use.weight * (1 - np.minimum(counts, 1) if once else -counts)
        raw += sum_of_counts(
            ((one.owners, self._weight_of(one.rule)) for one in state.existing_scores if one.matches is None), at
        )
        for existing in state.existing_scores:
            if existing.matches is not None:
                # In the design document only owners without a match count; an owner is not its own peer.
                rule, only = existing.rule, existing.matches.counts(ALL) - existing.rule.self_matching <= 0
                raw += self._weight_of(rule) * existing.owners.counts(at, only=only)
        return raw

    def has_scores(self, state: InterPodAffinityState) -> bool:
        # A family of terms is read even if all of them exclude the pod, since one that does not may join it.
        is_scored = any(existing.owners.anywhere for existing in state.existing_scores)
        return bool(is_scored or state.preferred_affinity or state.preferred_anti_affinity)

    def scaled(self, raw: Raw, lowest: int, highest: int) -> Raw:
        """The one float expression of the plugin, truncated as Go converts."""
        if highest == lowest:
            return raw * 0
        scaled = MAX_SCORE * ((raw - lowest) / float(highest - lowest))
        return int(scaled) if isinstance(raw, int) else scaled.astype(np.int64)

    def evaluate_one(self, state: InterPodAffinityState, index: PlacementIndex, slot: int) -> tuple[int, int] | None:
        if state.compares_matches:
            return None
        code = raw = 0
        for existing in state.existing_anti_affinity:
            if existing.owners.count_at(slot):
                code = EXISTING_ANTI_AFFINITY_CODE
        for term in state.required_anti_affinity:
            if term.reach.count_at(slot) > term.use.limit:
                code = ANTI_AFFINITY_CODE
        for columns in state.needed_columns:
            if not any(column.at[slot] for column in columns):
                code = NO_ANTI_AFFINITY_KEY_CODE
        if state.required_affinity:
            state.first_by_term = first_by_term(state)
        for required, first in zip(state.required_affinity, state.first_by_term, strict=True):
            if first and not required.first_needs_key:
                continue
            if not required.reach.is_present(slot) or not (first or required.reach.count_at(slot)):
                code = AFFINITY_CODE
        once = index.semantics.soft_terms_count_once
        for term in state.preferred_affinity:
            count = term.reach.count_at(slot)
            raw += term.use.weight * (min(count, 1) if once else count)
        for term in state.preferred_anti_affinity:
            count = term.reach.count_at(slot)
            raw += term.use.weight * (1 - min(count, 1) if once else -count)
        for existing in state.existing_scores:
            raw += self._weight_of(existing.rule) * existing.owners.count_at(slot)
        return code, raw

    def touched(self, state: InterPodAffinityState, change: Change, index: PlacementIndex) -> Touched:
        cls = change.member_of
        if cls is None:
            return self._touched_by_others(state, change)
        if state.required_affinity and state.first_by_term != first_by_term(state):
            return ALL  # the first-pod exception begins or ends, on every target
        if not change.slots:  # only on unknown targets
            return None
        keys = state.effects.get(cls.id)
        if keys is None:
            keys = self._effects(state, cls, index)
            state.effects.put(cls.id, keys, MAX_REMEMBERED_CLASSES)
        if not keys:
            return None
        return ALL if keys is EVERYWHERE else SharedDomains(keys, change.slots)

    def _touched_by_others(self, state: InterPodAffinityState, change: Change) -> Touched:
        """Where a change matters that is not about a workload on a target."""
        if change.moves_domains:
            return ALL  # earlier changes of workloads there were in domains that are no longer known
        if change.type in (ChangeType.TARGET_ADDED, ChangeType.TARGET_CHANGED):
            return change.slots
        if change.type is ChangeType.NAMESPACE_CHANGED:
            state.effects.clear()
            return ALL
        return None

    def evidence(
        self, state: InterPodAffinityState, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Failure]:
        del workload
        return evidence.failures(in_detail(state, index), slot, index)

    def remedies(
        self, state: InterPodAffinityState, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Alternatives]:
        return remedies.alternatives(in_detail(state, index), workload, slot, index)

    def eviction_effect(
        self, state: InterPodAffinityState, codes: Codes | None, preemptor: Preemptor
    ) -> EvictionEffect:
        del codes
        return preemption.eviction_effect(in_detail(state, preemptor.index), preemptor)

    def _weight_of(self, rule: OwnerRule) -> int:
        """What one existing pod with this term adds to the score."""
        if rule.role is Role.REQUIRED:
            return self.arguments.hard_weight
        return rule.weight if rule.role is Role.PREFERRED else -rule.weight

    def _effects(self, state: InterPodAffinityState, cls: WorkloadClass, index: PlacementIndex) -> tuple[str, ...]:
        """The topology keys in whose domains members of the class change codes or scores."""
        peer_index, keys = index.peer_index, set[str]()
        for required in state.required_affinity:
            if peer_index.class_matches(required.term, cls):
                keys.update(required.reach.keys)
        for term in (*state.required_anti_affinity, *state.preferred_affinity, *state.preferred_anti_affinity):
            if peer_index.class_matches(term.use.term, cls):
                keys.update(term.reach.keys)
        labels = dict(state.part.labels)
        for rule in cls.owner_rules:
            if peer_index.matches(rule.entry.term, labels, state.part.namespace):
                keys.update(rule.reach.keys)
        for existing in (*state.existing_anti_affinity, *state.existing_scores):
            # Members of the class may match terms whose effect depends on the number of matches.
            if existing.matches and peer_index.class_matches(existing.rule.entry.term, cls):
                if len(existing.matches.keys) > 1:
                    return EVERYWHERE  # the owners' domains of other keys extend beyond the changed domain
                keys.update(existing.matches.keys)
        return tuple(sorted(keys))
