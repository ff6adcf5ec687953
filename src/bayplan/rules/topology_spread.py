"""PodTopologySpread: keep the number of a pod's peers even over the domains of a topology key."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.counters import Counter
from bayplan.indexing.evaluations import Touched
from bayplan.indexing.journal import Change, Kind
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.indexing.term_table import TermEntry
from bayplan.indexing.value_columns import ABSENT, ValueColumn
from bayplan.model.decisions import Codes, Mask, Reason, Scores, Status
from bayplan.model.labels import EVERYTHING
from bayplan.model.node_selectors import ANYWHERE, NodeAffinity
from bayplan.model.taints import Toleration
from bayplan.model.terms import HOSTNAME, TARGET, ZONE, PeerTerm, TermPart
from bayplan.model.workloads import SpreadConstraint, Workload
from bayplan.rules import node_affinity, taint_toleration
from bayplan.rules.rule import HIGHEST, Failure, Rule, Scaling

SKEWED = Reason("topology-spread", "node(s) didn't match pod topology spread constraints", Status.UNSCHEDULABLE)
NO_LABEL = Reason(
    "topology-spread-label",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    Status.UNRESOLVABLE,
)

SYSTEM_DEFAULTS = (
    SpreadConstraint(3, HOSTNAME, hard=False, selector=None),
    SpreadConstraint(5, ZONE, hard=False, selector=None),
)


class Part(msgspec.Struct, frozen=True):
    """`selves[i]`: the pod counts in its own i-th constraint; `strict`: a node needs all keys to be scored."""

    namespace: str
    constraints: tuple[SpreadConstraint, ...]
    selves: tuple[bool, ...]
    affinity: NodeAffinity
    tolerations: tuple[Toleration, ...]
    strict: bool


class Spreading(msgspec.Struct, frozen=True):
    """One constraint with what it counts: peers per target, over the targets its policies let in."""

    constraint: SpreadConstraint
    counts_self: bool
    column: ValueColumn
    term: PeerTerm | None
    peers: Counter | None
    eligible: Mask

    def count_by_domain(self) -> NDArray[np.int64]:
        """Peers on eligible targets per domain, shape (n_domains,)."""
        n_domains = self.column.n_domains
        if self.peers is None or not self.peers.by_domain:
            return np.zeros(n_domains, np.int64)
        here = np.where(self.eligible, self.count_by_target(ALL), 0)
        counts = np.bincount(self.column.of_slot, weights=here, minlength=n_domains).astype(np.int64)
        for slot, domains in self.column.further.items():  # a target in several domains counts in each
            for domain in domains:
                counts[domain] += here[slot]
        return counts

    def eligible_domains(self) -> NDArray[np.intp]:
        """The domains that the smallest count is taken over."""
        present = np.zeros(self.column.n_domains, np.bool_)
        present[self.column.of_slot[self.eligible]] = True
        for slot, domains in self.column.further.items():
            if self.eligible[slot]:
                present[list(domains)] = True
        present[ABSENT] = False
        return np.flatnonzero(present)

    def smallest(self, counts: NDArray[np.int64]) -> int:
        domains = self.eligible_domains()
        return 0 if len(domains) < self.constraint.min_domains else int(counts[domains].min())

    def count_by_target(self, at: At) -> NDArray[np.int64]:
        if self.peers is None:
            return np.zeros(len(self.column.of_slot[at]), np.int64)
        return self.peers.column.gather(self.peers.array(), at)


class Plan(msgspec.Struct, frozen=True):
    hard: tuple[Spreading, ...]
    soft: tuple[Spreading, ...]
    strict: bool
    terms: tuple[TermEntry, ...]
    generation: int


class TopologySpread(Rule):
    name = "PodTopologySpread"
    id = "topology-spread"
    scaling = Scaling.BY_ALL

    def __init__(self, defaults: tuple[SpreadConstraint, ...] = SYSTEM_DEFAULTS, *, system: bool = True) -> None:
        self.defaults = defaults
        self.system = system

    def part(self, workload: Workload, index: PlacementIndex) -> Part | None:
        del index
        spread = workload.needs.spread
        constraints = spread.constraints
        if not constraints and spread.default_selector is not None:
            constraints = tuple(msgspec.structs.replace(d, selector=spread.default_selector) for d in self.defaults)
        if not constraints:
            return None
        selves = tuple(c.selector is not None and c.selector.matches(workload.labels) for c in constraints)
        honors_affinity = any(c.honors_affinity for c in constraints)
        return Part(
            workload.namespace,
            constraints,
            selves,
            msgspec.structs.replace(workload.needs.node_affinity, preferred=None) if honors_affinity else ANYWHERE,
            workload.needs.tolerations if any(c.honors_taints for c in constraints) else (),
            bool(spread.constraints) or not self.system,
        )

    def prepare(self, part: Part, index: PlacementIndex) -> Plan:
        terms: list[TermEntry] = []
        spreadings = [
            _spreading(c, counts, part, index, terms) for c, counts in zip(part.constraints, part.selves, strict=True)
        ]
        hard = tuple(s for s in spreadings if s.constraint.hard)
        soft = tuple(s for s in spreadings if not s.constraint.hard)
        for group, strict in ((hard, True), (soft, part.strict)):
            complete = _with_all_keys(group) if strict and group else None
            for spreading in group:
                if complete is not None:
                    spreading.eligible[~complete] = False
        return Plan(hard, soft, part.strict, tuple(terms), index.targets_generation)

    def stale(self, plan: Plan, index: PlacementIndex) -> bool:
        return plan.generation != index.targets_generation

    def release(self, plan: Plan, index: PlacementIndex) -> None:
        for entry in plan.terms:
            index.census.release(entry)

    def reject(self, plan: Plan, index: PlacementIndex, at: At) -> Codes | None:
        """Code 2i+1: skewed by the i-th hard constraint; 2i+2: its label is missing. The first to fail counts."""
        if not plan.hard:
            return None
        codes = np.zeros(len(index.slots.alive[at]), np.int64)
        for i, spreading in enumerate(plan.hard):
            counts = spreading.count_by_domain()
            most = spreading.constraint.max_skew + spreading.smallest(counts) - spreading.counts_self
            skewed = spreading.column.gather(counts, at) > most
            found = np.where(spreading.column.present(at), np.where(skewed, 2 * i + 1, 0), 2 * i + 2)
            codes = np.where(codes == 0, found, codes)
        return codes

    def score(self, plan: Plan, index: PlacementIndex, at: At) -> Scores | None:
        """The peers that each soft constraint sees from each target, shape (n_soft, n)."""
        del index
        if not plan.soft:
            return None
        return np.stack([_seen_from(spreading, at) for spreading in plan.soft])

    def normalise(self, plan: Plan, raw: Scores, feasible: Mask, index: PlacementIndex) -> Scores:
        ignored = ~_with_all_keys(plan.soft) if plan.strict else np.zeros(index.slots.capacity, np.bool_)
        scored = feasible & ~ignored
        if not scored.any():
            return np.zeros(index.slots.capacity, np.int64)
        total = np.zeros(index.slots.capacity, np.float64)
        for spreading, counts in zip(plan.soft, raw, strict=True):
            weight = math.log(_size(spreading, scored) + 2)
            # A node without the label gets nothing from this constraint, neither count nor skew.
            there = spreading.column.present(ALL)
            total += np.where(there, counts * weight + (spreading.constraint.max_skew - 1), 0.0)
        rounded = _round_half_up(total)
        highest, lowest = int(rounded[scored].max()), int(rounded[scored].min())
        if highest == 0:
            return np.where(ignored, 0, HIGHEST)
        return np.where(ignored, 0, HIGHEST * (highest + lowest - rounded) // highest)

    def touched(self, plan: Plan, change: Change, index: PlacementIndex) -> Touched:
        # A target may bring or take a domain, a peer may move the smallest count: either can matter everywhere.
        if change.kind in (Kind.TARGET_ADDED, Kind.TARGET_REMOVED, Kind.TARGET_CHANGED):
            return ALL
        cls = change.member_of
        if cls is None or not change.slots:
            return None
        return ALL if any(index.census.class_matches(entry.term, cls) for entry in plan.terms) else None

    def reasons(self, plan: Plan, code: int) -> tuple[Reason, ...]:
        del plan
        return (SKEWED,) if code % 2 else (NO_LABEL,)

    def evidence(self, plan: Plan, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        failures = []
        for spreading in plan.hard:
            constraint, column = spreading.constraint, spreading.column
            if not column.domains(slot):
                detail = f"the node has no label {constraint.topology_key}"
                failures.append(Failure(self.id, NO_LABEL.text, detail=detail, term=_show(constraint)))
                continue
            counts = spreading.count_by_domain()
            smallest, domain = spreading.smallest(counts), column.domains(slot)[0]
            would_hold = int(counts[domain]) + spreading.counts_self
            if would_hold - smallest > constraint.max_skew:
                failures.append(self._skew(spreading, domain, would_hold, smallest, index))
        return failures

    def _skew(
        self, spreading: Spreading, domain: int, would_hold: int, smallest: int, index: PlacementIndex
    ) -> Failure:
        constraint, column = spreading.constraint, spreading.column
        domains = spreading.eligible_domains()
        least = f"the fewest elsewhere is {smallest}"
        if len(domains) < constraint.min_domains:
            least = f"only {len(domains)} of {constraint.min_domains} domains exist, so the fewest counts as 0"
        name = f"{constraint.topology_key}={column.values[domain]}"
        return Failure(
            self.id,
            SKEWED.text,
            detail=f"{name} would hold {would_hold} while {least}; maxSkew is {constraint.max_skew}",
            term=_show(constraint),
            domain=name,
            peers=index.census.peers(spreading.term, column.slots_in(domain)) if spreading.term else (),
        )


def _spreading(
    constraint: SpreadConstraint, counts_self: bool, part: Part, index: PlacementIndex, terms: list[TermEntry]
) -> Spreading:
    eligible = index.slots.alive.copy()
    if constraint.honors_affinity:
        eligible &= node_affinity.matching(part.affinity, index)
    if constraint.honors_taints:
        eligible &= taint_toleration.tolerated_mask(part.tolerations, index)
    column = index.column(constraint.topology_key)
    term = peers = None
    # kube-scheduler counts nobody for an empty selector, which elsewhere means everybody.
    if constraint.selector is not None and constraint.selector != EVERYTHING:
        term = PeerTerm((TermPart(constraint.selector, (part.namespace,)),), counts_terminating=False)
        entry = index.census.hold(term)
        terms.append(entry)
        peers = index.census.match_reach(entry, (TARGET,)).counter
    return Spreading(constraint, counts_self, column, term, peers, eligible)


def _with_all_keys(group: Sequence[Spreading]) -> Mask:
    complete = group[0].column.present(ALL)
    for spreading in group[1:]:
        complete = complete & spreading.column.present(ALL)
    return complete


def _seen_from(spreading: Spreading, at: At) -> NDArray[np.int64]:
    if spreading.constraint.topology_key == HOSTNAME:
        return spreading.count_by_target(at)
    return spreading.column.gather(spreading.count_by_domain(), at)


def _size(spreading: Spreading, scored: Mask) -> int:
    """How many domains the scored targets are in; for the hostname, how many they are."""
    if spreading.constraint.topology_key == HOSTNAME:
        return int(scored.sum())
    return len(np.unique(spreading.column.of_slot[scored]))


def _round_half_up(values: NDArray[np.float64]) -> NDArray[np.int64]:
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


def _show(constraint: SpreadConstraint) -> str:
    return f"topologySpreadConstraints {constraint.topology_key} maxSkew={constraint.max_skew} of {constraint.selector}"
