"""PodTopologySpread: keep the number of a pod's peers even over the domains of a topology key."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.evaluations import SharedDomains, Touched
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT, ALL, At, ValueColumn
from bayplan.indexing.term_table import Counter, TermEntry
from bayplan.model.labels import EVERYTHING
from bayplan.model.node_selectors import ANY_NODE, NodeAffinity
from bayplan.model.reasons import Codes, Mask, Reason, Scores, StatusCode
from bayplan.model.taints import Toleration
from bayplan.model.terms import HOSTNAME, TARGET, ZONE, PeerTerm, TermPart
from bayplan.model.workloads import SpreadConstraint, Workload
from bayplan.rules import node_affinity, taint_toleration
from bayplan.rules.rule import MAX_REMEMBERED_CLASSES, MAX_SCORE, Failure, Rule, Scaling, common_column

CONSTRAINTS_NOT_MATCHED = Reason(
    "topology-spread", "node(s) didn't match pod topology spread constraints", StatusCode.UNSCHEDULABLE
)
LABEL_MISSING = Reason(
    "topology-spread-label",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    StatusCode.UNRESOLVABLE,
)

SYSTEM_DEFAULTS = (
    SpreadConstraint(3, HOSTNAME, hard=False, selector=None),
    SpreadConstraint(5, ZONE, hard=False, selector=None),
)


class TopologySpread(Rule):
    name = "PodTopologySpread"
    id = "topology-spread"
    scaling = Scaling.BY_ALL

    def __init__(self, defaults: tuple[SpreadConstraint, ...] = SYSTEM_DEFAULTS, *, system: bool = True) -> None:
        self.defaults = defaults
        self.system = system

    def part(self, workload: Workload, index: PlacementIndex) -> SpreadPart | None:
        del index
        spread = workload.needs.spread
        constraints = spread.constraints
        if not constraints and spread.default_selector is not None:
            constraints = tuple(msgspec.structs.replace(d, selector=spread.default_selector) for d in self.defaults)
        if not constraints:
            return None
        selves = tuple(c.selector is not None and c.selector.matches(workload.labels) for c in constraints)
        honors_affinity = any(c.honors_affinity for c in constraints)
        return SpreadPart(
            workload.namespace,
            constraints,
            selves,
            msgspec.structs.replace(workload.needs.node_affinity, preferred=None) if honors_affinity else ANY_NODE,
            workload.needs.tolerations if any(c.honors_taints for c in constraints) else (),
            bool(spread.constraints) or not self.system,
        )

    def prepare(self, part: SpreadPart, index: PlacementIndex) -> SpreadState:
        return spread_state(part, index)

    def judges_by(self, state: SpreadState, index: PlacementIndex) -> ValueColumn | None:
        del index
        return state.domain_column

    def stale(self, state: SpreadState, index: PlacementIndex) -> bool:
        return state.generation != index.targets_generation

    def release(self, state: SpreadState, index: PlacementIndex) -> None:
        for entry in state.terms:
            index.peer_index.release(entry)

    def reject(self, state: SpreadState, index: PlacementIndex, at: At) -> Codes | None:
        """Code 2i+1: skewed by the i-th hard constraint; 2i+2: its label is missing. The first to fail counts."""
        if not state.hard:
            return None
        codes = np.zeros(len(index.slots.alive[at]), np.int64)
        state.fewest = fewest(state)
        for i, (spreading, lowest) in enumerate(zip(state.hard, state.fewest, strict=True)):
            skewed = spreading.column.gather(spreading.count_by_domain(), at) > most(spreading, lowest)
            found = np.where(spreading.column.present(at), np.where(skewed, 2 * i + 1, 0), 2 * i + 2)
            codes = np.where(codes == 0, found, codes)
        return codes

    def at_one(self, state: SpreadState, index: PlacementIndex, slot: int) -> tuple[int, int] | None:
        del index
        if state.domain_column is None or not all(spreading.counts_domains for spreading in state.hard):
            return None
        state.fewest = fewest(state)
        domain = state.domain_column.at[slot]
        for i, (spreading, lowest) in enumerate(zip(state.hard, state.fewest, strict=True)):
            if domain == ABSENT:
                return 2 * i + 2, 0
            assert spreading.peers is not None
            if spreading.peers.by_domain.get(domain, 0) > most(spreading, lowest):
                return 2 * i + 1, 0
        return 0, 0

    def score(self, state: SpreadState, index: PlacementIndex, at: At) -> Scores | None:
        """The peers that each soft constraint sees from each target, shape (n_soft, n)."""
        del index
        if not state.soft:
            return None
        return np.stack([seen_from(spreading, at) for spreading in state.soft])

    def normalise(self, state: SpreadState, raw: Scores, feasible: Mask, index: PlacementIndex) -> Scores:
        ignored = np.zeros(index.slots.capacity, np.bool_)
        if state.strict:
            ignored = ~with_all_keys([spreading.column for spreading in state.soft], index)
        scored = feasible & ~ignored
        if not scored.any():
            return np.zeros(index.slots.capacity, np.int64)
        total = np.zeros(index.slots.capacity, np.float64)
        for spreading, counts in zip(state.soft, raw, strict=True):
            weight = math.log(_size(spreading, scored) + 2)
            # A node without the label gets nothing from this constraint, neither count nor skew.
            there = spreading.column.present(ALL)
            total += np.where(there, counts * weight + (spreading.constraint.max_skew - 1), 0.0)
        rounded = _round_half_up(total)
        highest, lowest = int(rounded[scored].max()), int(rounded[scored].min())
        if highest == 0:
            return np.where(ignored, 0, MAX_SCORE)
        return np.where(ignored, 0, MAX_SCORE * (highest + lowest - rounded) // highest)

    def touched(self, state: SpreadState, change: Change, index: PlacementIndex) -> Touched:
        cls = change.member_of
        if change.type in (ChangeType.TARGET_ADDED, ChangeType.TARGET_REMOVED, ChangeType.TARGET_CHANGED):
            return ALL  # a target may bring or take a domain
        if cls is None or not change.slots:
            return None
        keys = state.effects.get(cls.id)
        if keys is None:
            if len(state.effects) == MAX_REMEMBERED_CLASSES:
                state.effects.clear()
            keys = state.effects[cls.id] = effects(state, cls, index)
        if not keys:
            return None
        if state.fewest == fewest(state):
            return SharedDomains(keys, change.slots)
        # The smallest count decides everywhere.
        return ALL if state.domain_column is None else SharedDomains(keys, state.one_of_each)

    def reasons(self, state: SpreadState, code: int) -> tuple[Reason, ...]:
        del state
        return (CONSTRAINTS_NOT_MATCHED,) if code % 2 else (LABEL_MISSING,)

    def evidence(self, state: SpreadState, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        failures = []
        for spreading in state.hard:
            constraint, column = spreading.constraint, spreading.column
            if not column.domains(slot):
                detail = f"the node has no label {constraint.topology_key}"
                failures.append(Failure(self.id, LABEL_MISSING.text, detail=detail, term=_show(constraint)))
                continue
            counts = spreading.count_by_domain()
            smallest, domain = spreading.smallest(counts), column.domains(slot)[0]
            would_hold = int(counts[domain]) + spreading.counts_self
            if would_hold - smallest > constraint.max_skew:
                failures.append(self._skew(spreading, domain, would_hold, smallest, index))
        return failures

    def _skew(
        self, spreading: CountedConstraint, domain: int, would_hold: int, smallest: int, index: PlacementIndex
    ) -> Failure:
        constraint, column = spreading.constraint, spreading.column
        domains = spreading.domains
        least = f"the fewest elsewhere is {smallest}"
        if len(domains) < constraint.min_domains:
            least = f"only {len(domains)} of {constraint.min_domains} domains exist, so the fewest counts as 0"
        name = f"{constraint.topology_key}={column.values[domain]}"
        return Failure(
            self.id,
            CONSTRAINTS_NOT_MATCHED.text,
            detail=f"{name} would hold {would_hold} while {least}; maxSkew is {constraint.max_skew}",
            term=_show(constraint),
            domain=name,
            peers=index.peer_index.peers(spreading.term, column.slots_in(domain)) if spreading.term else (),
        )


def _size(spreading: CountedConstraint, scored: Mask) -> int:
    """How many domains the scored targets are in; for the hostname, how many they are."""
    if spreading.constraint.topology_key == HOSTNAME:
        return int(scored.sum())
    return int(np.count_nonzero(np.bincount(spreading.column.of_slot[scored])))


def _round_half_up(values: NDArray[np.float64]) -> NDArray[np.int64]:
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


def _show(constraint: SpreadConstraint) -> str:
    return f"topologySpreadConstraints {constraint.topology_key} maxSkew={constraint.max_skew} of {constraint.selector}"


# RF merged from rules.spread_plans: What topology spread constraints count: a pod's peers, by the domains of a key,
# on the targets that policies let in. Knows nothing of what is refused or scored.

MAX_DOMAINS_AS_INTEGERS = 16  # domains up to which plain integers are quicker than arrays


class SpreadPart(msgspec.Struct, frozen=True):
    """`selves[i]`: the pod counts in its own i-th constraint; `strict`: a node needs all keys to be scored."""

    namespace: str
    constraints: tuple[SpreadConstraint, ...]
    selves: tuple[bool, ...]
    affinity: NodeAffinity
    tolerations: tuple[Toleration, ...]
    strict: bool


class CountedConstraint(msgspec.Struct, frozen=True):
    """
    One constraint with what it counts: peers on the targets its policies let in, over the domains those are in.

    `peers` counts by domain where the policies let in every target that has the label, else by target.
    """

    constraint: SpreadConstraint
    counts_self: bool
    column: ValueColumn
    term: PeerTerm | None
    peers: Counter | None
    eligible: Mask
    domains: tuple[int, ...]

    @property
    def counts_domains(self) -> bool:
        return self.peers is not None and self.peers.column is self.column

    def count_by_domain(self) -> NDArray[np.int64]:
        """Peers on eligible targets per domain, shape (n_domains,)."""
        n_domains = self.column.n_domains
        if self.peers is None or not self.peers.by_domain:
            return np.zeros(n_domains, np.int64)
        if self.counts_domains:
            return self.peers.array()
        here = np.where(self.eligible, self.count_by_target(ALL), 0)
        counts = np.bincount(self.column.of_slot, weights=here, minlength=n_domains).astype(np.int64)
        for slot, domains in self.column.further.items():  # a target in several domains counts in each
            for domain in domains:
                counts[domain] += here[slot]
        return counts

    def eligible_domains(self) -> NDArray[np.intp]:
        """The domains that the smallest count is taken over."""
        return np.array(self.domains, np.intp)

    def smallest(self, counts: NDArray[np.int64]) -> int:
        """The fewest peers that one of the domains holds."""
        return 0 if len(self.domains) < self.constraint.min_domains else int(counts[self.eligible_domains()].min())

    def fewest(self) -> int:
        """The same without the others."""
        if self.peers is None or not self.counts_domains or len(self.domains) > MAX_DOMAINS_AS_INTEGERS:
            return self.smallest(self.count_by_domain())
        if len(self.domains) < self.constraint.min_domains:
            return 0
        by_domain = self.peers.by_domain
        return min([by_domain.get(domain, 0) for domain in self.domains])

    def count_by_target(self, at: At) -> NDArray[np.int64]:
        if self.peers is None:
            return np.zeros(len(self.column.of_slot[at]), np.int64)
        return self.peers.column.gather(self.peers.array(), at)


class SpreadState(msgspec.Struct):
    """
    Everything looked up. `domain_column` is a column that all depends on, if there is one; `one_of_each` a slot per domain.

    `effects` remembers per class in which topology keys its comings and goings matter, `fewest` the smallest count of
    each hard constraint when targets were last judged.
    """

    hard: tuple[CountedConstraint, ...]
    soft: tuple[CountedConstraint, ...]
    strict: bool
    terms: tuple[TermEntry, ...]
    generation: int
    domain_column: ValueColumn | None
    one_of_each: tuple[int, ...]
    effects: dict[int, tuple[str, ...]]
    fewest: tuple[int, ...] = ()


def spread_state(part: SpreadPart, index: PlacementIndex) -> SpreadState:
    """The constraints of a part with everything looked up."""
    terms: list[TermEntry] = []
    both = tuple(zip(part.constraints, part.selves, strict=True))
    hard = _spreadings([one for one in both if one[0].hard], part, index, terms, strict=True)
    soft = _spreadings([one for one in both if not one[0].hard], part, index, terms, strict=part.strict)
    column = None if soft else common_column((spreading.column for spreading in hard), index)
    one_of_each = () if column is None else tuple(column.representatives().tolist())
    return SpreadState(hard, soft, part.strict, tuple(terms), index.targets_generation, column, one_of_each, {})


def _spreadings(
    constraints: Sequence[tuple[SpreadConstraint, bool]],
    part: SpreadPart,
    index: PlacementIndex,
    terms: list[TermEntry],
    *,
    strict: bool,
) -> tuple[CountedConstraint, ...]:
    """The hard or the soft constraints together: where `strict`, a target counts only if it has all of their keys."""
    columns = [index.column(constraint.topology_key) for constraint, _ in constraints]
    complete = with_all_keys(columns, index) if strict else None
    found = []
    for constraint, counts_self in constraints:
        eligible = _eligible(constraint, part, complete, index)
        entry = _entry(constraint, part.namespace, index)
        if entry is not None:
            terms.append(entry)
        found.append(_spreading(constraint, eligible, entry, index, counts_self=counts_self))
    return tuple(found)


def _eligible(constraint: SpreadConstraint, part: SpreadPart, complete: Mask | None, index: PlacementIndex) -> Mask:
    """The targets that the constraint's policies let in, shape (capacity,)."""
    eligible = index.slots.alive.copy()
    if constraint.honors_affinity:
        eligible &= node_affinity.matching(part.affinity, index)
    if constraint.honors_taints:
        eligible &= taint_toleration.tolerated_mask(part.tolerations, index)
    if complete is not None:
        eligible &= complete
    return eligible


def _entry(constraint: SpreadConstraint, namespace: str, index: PlacementIndex) -> TermEntry | None:
    """Whom the constraint counts, held; None for nobody."""
    # kube-scheduler counts nobody for an empty selector, which elsewhere means everybody.
    if constraint.selector is None or constraint.selector == EVERYTHING:
        return None
    return index.peer_index.hold(PeerTerm((TermPart(constraint.selector, (namespace,)),), counts_terminating=False))


def _spreading(
    constraint: SpreadConstraint, eligible: Mask, entry: TermEntry | None, index: PlacementIndex, *, counts_self: bool
) -> CountedConstraint:
    column, term, peers = index.column(constraint.topology_key), None, None
    if entry is not None:
        everywhere = bool(eligible[column.present(ALL)].all())
        counted_by = TARGET if _sees_targets(constraint) or not everywhere else column.key
        term, peers = entry.term, index.peer_index.match_reach(entry, (counted_by,)).counter
    return CountedConstraint(constraint, counts_self, column, term, peers, eligible, _domains(column, eligible))


def _domains(column: ValueColumn, eligible: Mask) -> tuple[int, ...]:
    """The domains that the smallest count is taken over."""
    present = np.zeros(column.n_domains, np.bool_)
    present[column.of_slot[eligible]] = True
    for slot, domains in column.further.items():
        if eligible[slot]:
            present[list(domains)] = True
    present[ABSENT] = False
    return tuple(np.flatnonzero(present).tolist())


def _sees_targets(constraint: SpreadConstraint) -> bool:
    """Whether its score is of the peers on each target, whatever the targets' labels say."""
    return not constraint.hard and constraint.topology_key == HOSTNAME


def effects(state: SpreadState, cls: WorkloadClass, index: PlacementIndex) -> tuple[str, ...]:
    """The topology keys in whose domains members of the class are counted."""
    counting = [s for s in (*state.hard, *state.soft) if s.term and index.peer_index.class_matches(s.term, cls)]
    return tuple(sorted({TARGET if _sees_targets(s.constraint) else s.column.key for s in counting}))


def fewest(state: SpreadState) -> tuple[int, ...]:
    return tuple([spreading.fewest() for spreading in state.hard])


def most(spreading: CountedConstraint, fewest: int) -> int:
    """How many peers a domain may hold already."""
    return spreading.constraint.max_skew + fewest - spreading.counts_self


def with_all_keys(columns: Sequence[ValueColumn], index: PlacementIndex) -> Mask:
    complete = np.ones(index.slots.capacity, np.bool_)
    for column in columns:
        complete &= column.present(ALL)
    return complete


def seen_from(spreading: CountedConstraint, at: At) -> NDArray[np.int64]:
    if _sees_targets(spreading.constraint):
        return spreading.count_by_target(at)
    return spreading.column.gather(spreading.count_by_domain(), at)
