"""
PodTopologySpread: keep the number of matching pods even over the domains of a topology key.

A constraint counts the pods that its selector matches, by domain, on the targets that its node inclusion policies
(`nodeAffinityPolicy`, `nodeTaintsPolicy`) admit.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from bayplan.caching import BoundedCache
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT, ALL, At, ValueColumn
from bayplan.indexing.term_table import TermEntry
from bayplan.model.node_selectors import ANY_NODE
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, Scores, StatusCode
from bayplan.model.terms import HOSTNAME, TARGET
from bayplan.model.workloads import SpreadConstraint, Workload
from bayplan.rules.evictions import EvictionEffect, Preemptor
from bayplan.rules.remedies import Alternatives, Manifest, Remedy, change_needs, child, items, label_target, on_workload
from bayplan.rules.rule import (
    MAX_REMEMBERED_CLASSES,
    MAX_SCORE,
    DomainEffects,
    Failure,
    LiftedBy,
    Rule,
    Scaling,
    SharedDomains,
    Touched,
    common_column,
)
from bayplan.rules.topology_spread import preemption
from bayplan.rules.topology_spread.arguments import TopologySpreadArguments
from bayplan.rules.topology_spread.state import (
    MAX_DOMAINS_AS_INTEGERS,
    SpreadPart,
    SpreadState,
    counted_constraint,
)

CONSTRAINTS_NOT_MATCHED = Reason(
    "topology-spread", "node(s) didn't match pod topology spread constraints", StatusCode.UNSCHEDULABLE
)
LABEL_MISSING = Reason(
    "topology-spread-label",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    StatusCode.UNRESOLVABLE,
)


_ACTIONS = {True: "DoNotSchedule", False: "ScheduleAnyway"}


class TopologySpread(Rule[SpreadPart, SpreadState]):
    name = "PodTopologySpread"
    id = "topology-spread"
    extends = ("preFilter", "filter", "preScore", "score")
    filter_needs_pre_filter = True
    score_needs_pre_score = True
    lifted_by = LiftedBy.PEERS
    default_weight = 2
    arguments_type = TopologySpreadArguments
    arguments: TopologySpreadArguments
    prepared_for_targets = True
    scaling = Scaling.BY_ALL
    documented = (
        DocumentedReason(
            CONSTRAINTS_NOT_MATCHED,
            means=(
                "With the pod, this node's topology domain would have more than maxSkew matching pods above the domain "
                "with the fewest, and the constraint has whenUnsatisfiable: DoNotSchedule."
            ),
            to_do=(
                "Check the domain with the fewest pods: its nodes may be full, cordoned or tainted, and still count. "
                "With nodeTaintsPolicy: Honor, tainted nodes do not count. Otherwise raise maxSkew, or use "
                "ScheduleAnyway."
            ),
        ),
        DocumentedReason(
            LABEL_MISSING,
            means="The node does not have the label of the constraint's topologyKey, so it is in no topology domain.",
            to_do="Label the node, or exclude such nodes with node affinity.",
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> SpreadPart | None:
        del index
        spread = workload.needs.spread
        constraints = spread.constraints
        if not constraints and spread.default_selector is not None:
            defaults = self.arguments.defaults
            constraints = tuple(msgspec.structs.replace(d, selector=spread.default_selector) for d in defaults)
        if not constraints:
            return None
        self_matching = tuple(c.selector is not None and c.selector.matches(workload.labels) for c in constraints)
        honors_affinity = any(c.honors_affinity for c in constraints)
        return SpreadPart(
            workload.namespace,
            constraints,
            self_matching,
            msgspec.structs.replace(workload.needs.node_affinity, preferred=None) if honors_affinity else ANY_NODE,
            workload.needs.tolerations if any(c.honors_taints for c in constraints) else (),
            bool(spread.constraints) or not self.arguments.system,
        )

    def prepare(self, part: SpreadPart, index: PlacementIndex) -> SpreadState:
        terms: list[TermEntry] = []
        pairs = tuple(zip(part.constraints, part.self_matching, strict=True))
        hard, soft = [pair for pair in pairs if pair[0].hard], [pair for pair in pairs if not pair[0].hard]
        every = np.ones(index.slots.capacity, np.bool_)
        has_key = {c.topology_key: index.column(c.topology_key).present(ALL) for c in part.constraints}
        complete: Mask = np.logical_and.reduce([every, *(has_key[c.topology_key] for c, _ in hard)])
        scorable: Mask | None = None
        if part.strict:
            scorable = np.logical_and.reduce([every, *(has_key[c.topology_key] for c, _ in soft)])
        counted_hard = tuple(counted_constraint(pair, complete, part, index, terms) for pair in hard)
        counted_soft = tuple(counted_constraint(pair, scorable, part, index, terms) for pair in soft)
        column = None if soft else common_column((counted.column for counted in counted_hard), index)
        representatives = () if column is None else tuple(column.representatives().tolist())
        return SpreadState(counted_hard, counted_soft, scorable, tuple(terms), column, representatives, BoundedCache())

    def domain_column(self, state: SpreadState, index: PlacementIndex) -> ValueColumn | None:
        del index
        return state.domain_column

    def has_domain_effects(self, state: SpreadState) -> bool:
        return not state.soft

    def domain_effects(self, state: SpreadState) -> list[DomainEffects] | None:
        found = []
        for counted in state.hard:
            rejected = {ABSENT}
            if counted.peers is not None:
                by_domain = counted.peers.by_domain
                if not counted.counts_domains or counted.column.further or len(by_domain) > MAX_DOMAINS_AS_INTEGERS:
                    return None
                most = counted.constraint.max_skew + counted.current_minimum() - counted.self_matching
                rejected.update([domain for domain, count in by_domain.items() if count > most])
            found.append(DomainEffects(counted.column, rejected))
        return found

    def release(self, state: SpreadState, index: PlacementIndex) -> None:
        for entry in state.terms:
            index.peer_index.release(entry)

    def reject(self, state: SpreadState, index: PlacementIndex, at: At) -> Codes | None:
        """Code 2i+1: the i-th hard constraint is skewed; 2i+2: its label is missing. The first failure counts."""
        if not state.hard:
            return None
        codes = np.zeros(len(index.slots.alive[at]), np.int64)
        state.minimums = state.current_minimums(index)
        for i, (counted, minimum) in enumerate(zip(state.hard, state.minimums, strict=True)):
            most = counted.constraint.max_skew + minimum - counted.self_matching
            skewed = counted.column.gather(counted.count_by_domain(), at) > most
            found = np.where(counted.column.present(at), np.where(skewed, 2 * i + 1, 0), 2 * i + 2)
            codes = np.where(codes == 0, found, codes)
        return codes

    def evaluate_one(self, state: SpreadState, index: PlacementIndex, slot: int) -> tuple[int, int] | None:
        if state.domain_column is None:
            return None
        minimums = state.minimums = state.current_minimums(index)
        domain = state.domain_column.at[slot]
        for i, counted in enumerate(state.hard):
            if not counted.counts_domains or counted.peers is None:
                return None
            if domain == ABSENT:
                return 2 * i + 2, 0
            most = counted.constraint.max_skew + minimums[i] - counted.self_matching
            if counted.peers.by_domain.get(domain, 0) > most:
                return 2 * i + 1, 0
        return 0, 0

    def score(self, state: SpreadState, index: PlacementIndex, at: At) -> Scores | None:
        """The pods that each soft constraint counts for each target, shape (n_soft, n)."""
        if not state.soft:
            return None
        raw = np.zeros((len(state.soft), len(index.slots.alive[at])), np.int64)
        for i, counted in enumerate(state.soft):
            if not counted.scores_targets:
                raw[i] = counted.column.gather(counted.count_by_domain(), at)
            elif counted.peers is not None:
                raw[i] = counted.peers.column.gather(counted.peers.array(), at)
        return raw

    def normalise(self, state: SpreadState, raw: Scores, feasible: Mask, index: PlacementIndex) -> Scores:
        scored = feasible if state.scorable is None else feasible & state.scorable
        if not scored.any():
            return np.zeros(index.slots.capacity, np.int64)
        total = np.zeros(index.slots.capacity, np.float64)
        for counted, counts in zip(state.soft, raw, strict=True):
            # By hostname each scored target is a domain.
            by_hostname = counted.constraint.topology_key == HOSTNAME
            n_domains = scored.sum() if by_hostname else np.count_nonzero(np.bincount(counted.column.of_slot[scored]))
            weight = math.log(int(n_domains) + 2)
            # A node without the label gets nothing from this constraint, neither count nor skew.
            there = counted.column.present(ALL)
            total += np.where(there, counts * weight + (counted.constraint.max_skew - 1), 0.0)
        whole = np.floor(total)
        rounded = (whole + (total - whole >= 0.5)).astype(np.int64)  # half up
        highest, lowest = int(rounded[scored].max()), int(rounded[scored].min())
        scores: Scores = (
            MAX_SCORE * (highest + lowest - rounded) // highest if highest else np.full_like(rounded, MAX_SCORE)
        )
        return scores if state.scorable is None else np.where(state.scorable, scores, 0)

    def touched(self, state: SpreadState, change: Change, index: PlacementIndex) -> Touched:
        cls = change.member_of
        if change.type in (ChangeType.TARGET_ADDED, ChangeType.TARGET_REMOVED, ChangeType.TARGET_CHANGED):
            return ALL  # a target may bring or take a domain
        if cls is None or not change.slots:
            return None
        keys = state.effects.get(cls.id)
        if keys is None:
            matches = index.peer_index.class_matches
            counting = [c for c in (*state.hard, *state.soft) if c.term and matches(c.term, cls)]
            keys = tuple(sorted({TARGET if c.scores_targets else c.column.key for c in counting}))
            state.effects.put(cls.id, keys, MAX_REMEMBERED_CLASSES)
        if not keys:
            return None
        if state.minimums == state.current_minimums(index):
            return SharedDomains(keys, change.slots)
        # The global minimum decides everywhere.
        return ALL if state.domain_column is None else SharedDomains(keys, state.representatives)

    def reasons(self, state: SpreadState, code: int) -> tuple[Reason, ...]:
        del state
        return (CONSTRAINTS_NOT_MATCHED,) if code % 2 else (LABEL_MISSING,)

    def evidence(self, state: SpreadState, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        failures = []
        for counted in state.hard:
            constraint, column = counted.constraint, counted.column
            key, max_skew = constraint.topology_key, constraint.max_skew
            term = f"topologySpreadConstraints {key} maxSkew={max_skew} of {constraint.selector}"
            if not column.domains(slot):
                failures.append(Failure(self.id, LABEL_MISSING.text, detail=f"the node has no label {key}", term=term))
                continue
            counts = counted.count_by_domain()
            minimum, domain = counted.global_minimum(counts), column.domains(slot)[0]
            would_hold = int(counts[domain]) + counted.self_matching
            if would_hold - minimum <= max_skew:
                continue
            least, n_domains = f"the fewest elsewhere is {minimum}", len(counted.domains)
            if n_domains < constraint.min_domains:
                least = f"only {n_domains} of {constraint.min_domains} domains exist, so the fewest counts as 0"
            name = f"{key}={column.values[domain]}"
            detail = f"{name} would hold {would_hold} while {least}; maxSkew is {max_skew}"
            peers = index.peer_index.peers(counted.term, column.slots_in(domain)) if counted.term else ()
            failures.append(
                Failure(self.id, CONSTRAINTS_NOT_MATCHED.text, detail=detail, term=term, domain=name, peers=peers)
            )
        return failures

    def remedies(self, state: SpreadState, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
        del workload
        found = []
        for counted in state.hard:
            constraint, column = counted.constraint, counted.column
            soft_twin = any(c.constraint.topology_key == constraint.topology_key for c in state.soft)
            # No API server admits two constraints of one key and one action.
            softened = None if soft_twin else msgspec.structs.replace(constraint, hard=False)
            soft = _loosened(constraint, softened)
            if not column.domains(slot):
                values = sorted(map(str, column.by_value))
                found.append([soft, *(label_target(slot, column.key, value, index) for value in values[:1])])
                continue
            counts = counted.count_by_domain()
            skew = int(counts[column.domains(slot)[0]]) + counted.self_matching - counted.global_minimum(counts)
            if skew > constraint.max_skew:
                wider = msgspec.structs.replace(constraint, max_skew=skew)
                found.append([_loosened(constraint, wider), soft])
        return found

    def eviction_effect(self, state: SpreadState, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        del codes
        return preemption.eviction_effect(state, preemptor.index)


def _loosened(old: SpreadConstraint, new: SpreadConstraint | None) -> Remedy:
    """A higher maxSkew, a soft constraint in place of a hard one, or none."""
    key, written = old.topology_key, (old.topology_key, _ACTIONS[True])

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        spread = workload.needs.spread
        constraints = tuple(one for c in spread.constraints if (one := new if c == old else c) is not None)
        return change_needs(spread=msgspec.structs.replace(spread, constraints=constraints))(workload, index)

    def revise(pod: Manifest, _: Manifest) -> None:
        constraints = items(child(pod, "spec"), "topologySpreadConstraints")
        for one in [one for one in constraints if (one.get("topologyKey"), one.get("whenUnsatisfiable")) == written]:
            if new is None:
                constraints.remove(one)
                continue
            one["whenUnsatisfiable"], one["maxSkew"] = _ACTIONS[new.hard], new.max_skew
            if not new.hard:
                one.pop("minDomains", None)  # valid in hard constraints only

    if new is None:
        text = f"drop the spread constraint on {key}"
    elif new.hard:
        text = f"raise maxSkew on {key} from {old.max_skew} to {new.max_skew}"
    else:
        text = f"make the spread constraint on {key} soft (whenUnsatisfiable: ScheduleAnyway)"
    size = new.max_skew - old.max_skew if new is not None and new.hard else 2**31
    return Remedy(text, edit, revisions=on_workload(revise), family=f"spread {key}", size=size)
