"""Hard topology spread constraints between pending pods. What they count beside these comes from the rule."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import msgspec

from bayplan.grouping.linear_model import Term
from bayplan.grouping.plan_model import PendingClass, PlanModel, RuleKey
from bayplan.indexing.slots import ABSENT, ALL
from bayplan.model.reasons import Mask
from bayplan.rules.topology_spread.rule import TopologySpread
from bayplan.rules.topology_spread.state import CountedConstraint


class SpreadCounts(msgspec.Struct, frozen=True):
    """
    What constraints of one selector count: pending pods and the number of placed ones, by domain.

    `lowest` is a variable that is at most the lowest sum; None if the lowest counts as 0, for want of domains.
    """

    pending: dict[int, list[Term]]
    placed: dict[int, int]
    lowest: int | None


def rejections(model: PlanModel) -> Iterator[tuple[PendingClass, RuleKey, Mask]]:
    """The nodes without the label of a constraint."""
    for one in model.classes:
        for counted in _hard_constraints(one):
            yield one, _key(one, counted), ~counted.column.present(ALL)


def add(model: PlanModel) -> None:
    """Where a pod is, there are at most `maxSkew` more matching pods than in the domain with the fewest."""
    known: dict[Hashable, SpreadCounts] = {}
    for one in model.classes:
        for counted in _hard_constraints(one):
            if counted.term is None or counted.column.further or model.reads_copied_labels(counted.term):
                continue
            has_all = len(counted.domains) >= counted.constraint.min_domains
            shared = (counted.term, counted.column.key, counted.eligible.tobytes(), has_all)
            if shared not in known:
                known[shared] = _counts(model, counted, has_all=has_all)
            counts = known[shared]
            number = model.rule(_key(one, counted), one)
            minus_lowest = [] if counts.lowest is None else [(counts.lowest, -1)]
            for domain in model.domains_of(one, counted.column):
                if domain in counts.pending:
                    here = model.present(one, counted.column, domain)
                    most = counted.constraint.max_skew - counts.placed[domain]
                    model.linear.at_most([*counts.pending[domain], *minus_lowest], most, number, when=here)
        model.check_size()


def _counts(model: PlanModel, counted: CountedConstraint, *, has_all: bool) -> SpreadCounts:
    assert counted.term is not None
    column, eligible = counted.column, counted.eligible
    pending: dict[int, list[Term]] = {}
    for domain in [domain for domain in model.domains(column) if domain in counted.domains]:
        terms = pending[domain] = []
        for other in model.matching(counted.term):
            if all(eligible[slot] or column.at[slot] == ABSENT for slot in other.counts):
                terms += model.in_domain([other], column, domain)
            else:
                slots = column.slots_in(domain).tolist()
                terms += [(other.counts[slot], 1) for slot in slots if eligible[slot] and slot in other.counts]
    by_domain = counted.count_by_domain()
    placed = {domain: int(by_domain[domain]) for domain in pending}
    if not has_all or not pending:
        return SpreadCounts(pending, placed, None)
    lowest = model.linear.variable(min(placed.values()) + len(model.problem.pods))
    for domain, terms in pending.items():
        minus = [(variable, -factor) for variable, factor in terms]
        model.linear.at_most([(lowest, 1), *minus], placed[domain])
    return SpreadCounts(pending, placed, lowest)


def _hard_constraints(one: PendingClass) -> Iterator[CountedConstraint]:
    for result in one.results:
        if isinstance(result.rule, TopologySpread) and result.rule.filters:
            yield from result.evaluation.state.hard


def _key(one: PendingClass, counted: CountedConstraint) -> RuleKey:
    constraint = counted.constraint
    detail = f"{constraint.topology_key} maxSkew={constraint.max_skew} of {constraint.selector}"
    return RuleKey(TopologySpread.id, (one.first.namespace, constraint), "spec.topologySpreadConstraints", detail)
