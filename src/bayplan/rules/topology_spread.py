"""PodTopologySpread: keep the number of a pod's peers even over the domains of a topology key."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.evaluations import Around, Touched
from bayplan.indexing.journal import Change, Kind
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.indexing.value_columns import ABSENT, ValueColumn
from bayplan.model.decisions import Codes, Mask, Reason, Scores, Status
from bayplan.model.node_selectors import ANYWHERE
from bayplan.model.terms import HOSTNAME, ZONE
from bayplan.model.workloads import SpreadConstraint, Workload
from bayplan.rules import spread_plans
from bayplan.rules.rule import HIGHEST, MOST_EFFECTS, Failure, Rule, Scaling
from bayplan.rules.spread_plans import Part, Plan, Spreading

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
        return spread_plans.plan_of(part, index)

    def judges_by(self, plan: Plan, index: PlacementIndex) -> ValueColumn | None:
        del index
        return plan.wholes

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
        plan.fewest = spread_plans.fewest(plan)
        for i, (spreading, fewest) in enumerate(zip(plan.hard, plan.fewest, strict=True)):
            skewed = spreading.column.gather(spreading.count_by_domain(), at) > spread_plans.most(spreading, fewest)
            found = np.where(spreading.column.present(at), np.where(skewed, 2 * i + 1, 0), 2 * i + 2)
            codes = np.where(codes == 0, found, codes)
        return codes

    def at_one(self, plan: Plan, index: PlacementIndex, slot: int) -> tuple[int, int] | None:
        del index
        if plan.wholes is None or not all(spreading.counts_domains for spreading in plan.hard):
            return None
        plan.fewest = spread_plans.fewest(plan)
        domain = plan.wholes.at[slot]
        for i, (spreading, fewest) in enumerate(zip(plan.hard, plan.fewest, strict=True)):
            if domain == ABSENT:
                return 2 * i + 2, 0
            assert spreading.peers is not None
            if spreading.peers.by_domain.get(domain, 0) > spread_plans.most(spreading, fewest):
                return 2 * i + 1, 0
        return 0, 0

    def score(self, plan: Plan, index: PlacementIndex, at: At) -> Scores | None:
        """The peers that each soft constraint sees from each target, shape (n_soft, n)."""
        del index
        if not plan.soft:
            return None
        return np.stack([spread_plans.seen_from(spreading, at) for spreading in plan.soft])

    def normalise(self, plan: Plan, raw: Scores, feasible: Mask, index: PlacementIndex) -> Scores:
        ignored = np.zeros(index.slots.capacity, np.bool_)
        if plan.strict:
            ignored = ~spread_plans.with_all_keys([spreading.column for spreading in plan.soft], index)
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
        cls = change.member_of
        if change.kind in (Kind.TARGET_ADDED, Kind.TARGET_REMOVED, Kind.TARGET_CHANGED):
            return ALL  # a target may bring or take a domain
        if cls is None or not change.slots:
            return None
        keys = plan.effects.get(cls.id)
        if keys is None:
            if len(plan.effects) == MOST_EFFECTS:
                plan.effects.clear()
            keys = plan.effects[cls.id] = spread_plans.effects(plan, cls, index)
        if not keys:
            return None
        if plan.fewest == spread_plans.fewest(plan):
            return Around(keys, change.slots)
        # The smallest count decides everywhere.
        return ALL if plan.wholes is None else Around(keys, plan.one_of_each)

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
        domains = spreading.domains
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


def _size(spreading: Spreading, scored: Mask) -> int:
    """How many domains the scored targets are in; for the hostname, how many they are."""
    if spreading.constraint.topology_key == HOSTNAME:
        return int(scored.sum())
    return int(np.count_nonzero(np.bincount(spreading.column.of_slot[scored])))


def _round_half_up(values: NDArray[np.float64]) -> NDArray[np.int64]:
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


def _show(constraint: SpreadConstraint) -> str:
    return f"topologySpreadConstraints {constraint.topology_key} maxSkew={constraint.max_skew} of {constraint.selector}"
