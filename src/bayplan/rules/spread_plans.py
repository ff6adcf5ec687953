"""
What topology spread constraints count: a pod's peers, by the domains of a key, on the targets that policies let in.

Knows nothing of what is refused or scored.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.counters import Counter
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.indexing.term_table import TermEntry
from bayplan.indexing.value_columns import ABSENT, ValueColumn
from bayplan.model.decisions import Mask
from bayplan.model.labels import EVERYTHING
from bayplan.model.node_selectors import NodeAffinity
from bayplan.model.taints import Toleration
from bayplan.model.terms import HOSTNAME, TARGET, PeerTerm, TermPart
from bayplan.model.workloads import SpreadConstraint
from bayplan.rules import node_affinity, taint_toleration
from bayplan.rules.rule import wholes

FEW = 16  # domains up to which plain integers are quicker than arrays


class Part(msgspec.Struct, frozen=True):
    """`selves[i]`: the pod counts in its own i-th constraint; `strict`: a node needs all keys to be scored."""

    namespace: str
    constraints: tuple[SpreadConstraint, ...]
    selves: tuple[bool, ...]
    affinity: NodeAffinity
    tolerations: tuple[Toleration, ...]
    strict: bool


class Spreading(msgspec.Struct, frozen=True):
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
        if self.peers is None or not self.counts_domains or len(self.domains) > FEW:
            return self.smallest(self.count_by_domain())
        if len(self.domains) < self.constraint.min_domains:
            return 0
        by_domain = self.peers.by_domain
        return min([by_domain.get(domain, 0) for domain in self.domains])

    def count_by_target(self, at: At) -> NDArray[np.int64]:
        if self.peers is None:
            return np.zeros(len(self.column.of_slot[at]), np.int64)
        return self.peers.column.gather(self.peers.array(), at)


class Plan(msgspec.Struct):
    """
    Everything looked up. `wholes` is a column that all depends on, if there is one; `one_of_each` a slot per domain.

    `effects` remembers per class in which topology keys its comings and goings matter, `fewest` the smallest count of
    each hard constraint when targets were last judged.
    """

    hard: tuple[Spreading, ...]
    soft: tuple[Spreading, ...]
    strict: bool
    terms: tuple[TermEntry, ...]
    generation: int
    wholes: ValueColumn | None
    one_of_each: tuple[int, ...]
    effects: dict[int, tuple[str, ...]]
    fewest: tuple[int, ...] = ()


def plan_of(part: Part, index: PlacementIndex) -> Plan:
    """The constraints of a part with everything looked up."""
    terms: list[TermEntry] = []
    both = tuple(zip(part.constraints, part.selves, strict=True))
    hard = _spreadings([one for one in both if one[0].hard], part, index, terms, strict=True)
    soft = _spreadings([one for one in both if not one[0].hard], part, index, terms, strict=part.strict)
    column = None if soft else wholes((spreading.column for spreading in hard), index)
    one_of_each = () if column is None else tuple(column.representatives().tolist())
    return Plan(hard, soft, part.strict, tuple(terms), index.targets_generation, column, one_of_each, {})


def _spreadings(
    constraints: Sequence[tuple[SpreadConstraint, bool]],
    part: Part,
    index: PlacementIndex,
    terms: list[TermEntry],
    *,
    strict: bool,
) -> tuple[Spreading, ...]:
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


def _eligible(constraint: SpreadConstraint, part: Part, complete: Mask | None, index: PlacementIndex) -> Mask:
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
    return index.census.hold(PeerTerm((TermPart(constraint.selector, (namespace,)),), counts_terminating=False))


def _spreading(
    constraint: SpreadConstraint, eligible: Mask, entry: TermEntry | None, index: PlacementIndex, *, counts_self: bool
) -> Spreading:
    column, term, peers = index.column(constraint.topology_key), None, None
    if entry is not None:
        everywhere = bool(eligible[column.present(ALL)].all())
        counted_by = TARGET if _sees_targets(constraint) or not everywhere else column.key
        term, peers = entry.term, index.census.match_reach(entry, (counted_by,)).counter
    return Spreading(constraint, counts_self, column, term, peers, eligible, _domains(column, eligible))


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


def effects(plan: Plan, cls: WorkloadClass, index: PlacementIndex) -> tuple[str, ...]:
    """The topology keys in whose domains members of the class are counted."""
    counting = [s for s in (*plan.hard, *plan.soft) if s.term and index.census.class_matches(s.term, cls)]
    return tuple(sorted({TARGET if _sees_targets(s.constraint) else s.column.key for s in counting}))


def fewest(plan: Plan) -> tuple[int, ...]:
    return tuple([spreading.fewest() for spreading in plan.hard])


def most(spreading: Spreading, fewest: int) -> int:
    """How many peers a domain may hold already."""
    return spreading.constraint.max_skew + fewest - spreading.counts_self


def with_all_keys(columns: Sequence[ValueColumn], index: PlacementIndex) -> Mask:
    complete = np.ones(index.slots.capacity, np.bool_)
    for column in columns:
        complete &= column.present(ALL)
    return complete


def seen_from(spreading: Spreading, at: At) -> NDArray[np.int64]:
    if _sees_targets(spreading.constraint):
        return spreading.count_by_target(at)
    return spreading.column.gather(spreading.count_by_domain(), at)
