"""
The variables of a plan: how many pods of each equivalence class are on each node and in each domain.

What they may be is said by the modules of the rules: `model_capacity`, `model_affinity`, `model_spread`. Every
constraint follows from rules; what is not modelled makes none. So a model without a solution proves that there is no
plan, and a solution is a plan only once the engine has checked it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from bayplan.engine.evaluations import RuleResult
from bayplan.grouping.linear_model import LinearModel, Term
from bayplan.grouping.problem import GroupPlan, GroupProblem, GroupToPlace
from bayplan.indexing.slots import ABSENT, ALL, ValueColumn
from bayplan.model.reasons import Mask
from bayplan.model.terms import REGION, ZONE, PeerTerm, resolve
from bayplan.model.workloads import Needs, Workload, WorkloadKey
from bayplan.rules.topology_spread.rule import TopologySpread

COPIED_LABELS = (ZONE, REGION)  # labels that a pod gets from its node when it is placed
MAX_MODEL_TERMS = 3_000_000  # of all constraints together: some 100 bytes each, and more in the solver


class ModelTooLargeError(Exception):
    """The constraints would have more than `MAX_MODEL_TERMS` terms."""


class RuleKey(msgspec.Struct, frozen=True):
    """
    One rule as a user knows it: the id of the rule with what pods have written for it.

    `path` is where that is written, `detail` a text.
    """

    rule: str
    written: Hashable = None
    path: str = ""
    detail: str = ""


class PendingClass(msgspec.Struct, eq=False):
    """
    Pending pods that no rule distinguishes, and the variables of their number on each node, by slot.

    `is_required`: all of them must be placed. `results` are those of the rules without any pending pod.
    """

    pods: list[Workload]
    group: str
    is_required: bool
    results: list[RuleResult]
    counts: dict[int, int] = {}

    @property
    def first(self) -> Workload:
        return self.pods[0]


class PlanModel:
    """
    The linear model of a problem with what its variables mean.

    Pods for which `apart` is different are never one class. With `every_node`, there are variables also for nodes that
    a rule rejects whatever other pending pods do; a constraint of that rule keeps them 0. That is needed to find out
    which rules are in conflict.
    """

    def __init__(
        self,
        problem: GroupProblem,
        *,
        every_node: bool = False,
        apart: Callable[[Workload], Hashable] = lambda _: None,
    ) -> None:
        self.problem, self.index, self.every_node = problem, problem.index, every_node
        self.linear = LinearModel()
        self.pods_of_rule: dict[int, dict[WorkloadKey, None]] = defaultdict(dict)
        self.slots = sorted(
            np.flatnonzero(self.index.slots.alive).tolist(), key=self._name
        )  # in any order of the input
        self._sums: dict[tuple[int, str, int], int] = {}
        self._presences: dict[tuple[int, str, int], int] = {}
        self._matching: dict[PeerTerm, list[PendingClass]] = {}
        self._domains: dict[str, list[int]] = {}
        self._with_sums: dict[str, ValueColumn | None] = {}
        self.classes = self._classes(apart)

    def _name(self, slot: int) -> str:
        return self.index.slots.at(slot).name

    # Classes of pods

    def _classes(self, apart: Callable[[Workload], Hashable]) -> list[PendingClass]:
        group_of = {key: group for group in self.problem.groups for key in group.pods}
        found: dict[Hashable, PendingClass] = {}
        terms = self._terms()
        for workload in sorted(self.problem.pods, key=lambda one: one.key):
            group, engine = group_of.get(workload.key), self.problem.engine_of(workload)
            matched = tuple([self.selects(term, workload) for term in terms])
            visible = self.index.peer_index.visible(workload.labels)
            key = (id(engine), workload.namespace, workload.needs, matched, visible, group and group.key)
            is_optional = workload.key in self.problem.optional if group is None else group.is_optional
            equal = (*key, workload.requested_target, workload.unplaceable, is_optional, apart(workload))
            if equal in found:
                found[equal].pods.append(workload)
            else:
                needs_all = group is None or group.min_members - group.n_placed >= len(group.pods)
                is_required = needs_all and not is_optional
                name = "" if group is None else group.key
                found[equal] = PendingClass([workload], name, is_required, engine.evaluate(workload))
        return list(found.values())

    def _terms(self) -> list[PeerTerm]:
        """The terms of pending pods that may distinguish pending pods."""
        found: dict[PeerTerm, None] = {}
        seen: set[tuple[str, Needs]] = set()
        for workload in self.problem.pods:
            if (workload.namespace, workload.needs) in seen:
                continue
            seen.add((workload.namespace, workload.needs))
            for incoming in (True, False):
                own = resolve(workload.needs.affinity, workload.namespace, self.index.semantics, incoming=incoming)
                uses = (*own.required, *own.anti_required, *own.group_required)
                found.update((use.term, None) for use in uses)
            for result in self.problem.engine_of(workload).evaluate(workload):
                if isinstance(result.rule, TopologySpread):
                    hard = result.evaluation.state.hard
                    found.update((counted.term, None) for counted in hard if counted.term is not None)
        return list(found)

    def selects(self, term: PeerTerm, workload: Workload) -> bool:
        return self.index.peer_index.matches(term, workload.labels, workload.namespace)

    def matching(self, term: PeerTerm) -> list[PendingClass]:
        """The classes that a term selects."""
        if term not in self._matching:
            self._matching[term] = [one for one in self.classes if self.selects(term, one.first)]
        return self._matching[term]

    def reads_copied_labels(self, term: PeerTerm) -> bool:
        """Whether a term selects by labels that a pod has only once it is placed."""
        selectors = [part.selector for part in term.parts if part.selector is not None]
        keys = {one.key for selector in selectors for one in selector.requirements} | {one.key for one in term.any_of}
        return not keys.isdisjoint(COPIED_LABELS)

    # Rules

    def rule(self, key: RuleKey, *classes: PendingClass) -> int:
        """The number of a rule, which is noted as one of these pods."""
        number = self.linear.rule(key)
        for one in classes:
            self.pods_of_rule[number].update((pod.key, None) for pod in one.pods)
        return number

    def check_size(self) -> None:
        if self.linear.n_terms + len(self.linear.upper) > MAX_MODEL_TERMS:
            raise ModelTooLargeError

    # Variables

    def add_counts(self, rejections: Iterable[tuple[PendingClass, RuleKey, Mask]]) -> None:
        """The variables of pods on nodes, with the nodes that rules reject whatever other pending pods do."""
        rejected: dict[PendingClass, list[tuple[int, Mask]]] = {one: [] for one in self.classes}
        for one, key, mask in rejections:
            rejected[one].append((self.rule(key, one), mask))
        for one in self.classes:
            masks = rejected[one]
            for slot in self.slots:
                if self.every_node or not any(mask[slot] for _, mask in masks):
                    one.counts[slot] = self.linear.variable(len(one.pods), is_detail=True)
            if self.every_node:
                for rule, mask in masks:
                    self.linear.at_most([(v, 1) for slot, v in one.counts.items() if mask[slot]], 0, rule)
            self._limit_total([(variable, 1) for variable in one.counts.values()], one)
            self.check_size()

    def _limit_total(self, terms: Sequence[Term], one: PendingClass) -> None:
        self.linear.at_most(terms, len(one.pods))
        if one.is_required:
            self.linear.at_least(terms, len(one.pods))

    def domains(self, column: ValueColumn) -> list[int]:
        """The domains of a key that have nodes, by their names."""
        if column.key not in self._domains:
            found = sorted((str(value), domain) for value, domain in column.by_value.items())
            self._domains[column.key] = [domain for _, domain in found if domain != ABSENT]
        return self._domains[column.key]

    def domains_of(self, one: PendingClass, column: ValueColumn) -> list[int]:
        """The domains of a key where pods of the class may be."""
        here = {column.at[slot] for slot in one.counts}
        return [domain for domain in self.domains(column) if domain in here]

    def counts_in(self, one: PendingClass, column: ValueColumn, domain: int) -> list[int]:
        """The variables of pods of the class on the nodes of a domain; `ABSENT` are the nodes without the label."""
        if domain == ABSENT:
            return [variable for slot, variable in one.counts.items() if column.at[slot] == ABSENT]
        return [one.counts[slot] for slot in column.slots_in(domain).tolist() if slot in one.counts]

    def in_domain(self, classes: Iterable[PendingClass], column: ValueColumn, domain: int) -> list[Term]:
        """The number of pods of some classes in a domain."""
        if domain != ABSENT and self.has_sums(column):
            return [(self.sum_in(one, column, domain), 1) for one in classes]
        return [(variable, 1) for one in classes for variable in self.counts_in(one, column, domain)]

    def has_sums(self, column: ValueColumn) -> bool:
        """Whether the key has domains of several nodes, so that their sums are variables."""
        if column.key not in self._with_sums:
            present = column.of_slot[self.index.slots.alive & column.present(ALL)]
            is_coarse = not column.further and len(np.unique(present)) < len(present)
            self._with_sums[column.key] = column if is_coarse else None
        return self._with_sums[column.key] is not None

    def columns_with_sums(self) -> list[ValueColumn]:
        """The keys with domains of several nodes that are in use."""
        return [column for _, column in sorted(self._with_sums.items()) if column is not None]

    def sum_in(self, one: PendingClass, column: ValueColumn, domain: int) -> int:
        """The variable of the number of pods of the class in a domain."""
        key = (id(one), column.key, domain)
        if key not in self._sums:
            variable = self._sums[key] = self.linear.variable(len(one.pods))
            terms = [(variable, -1), *((count, 1) for count in self.counts_in(one, column, domain))]
            self.linear.at_most(terms, 0)
            self.linear.at_least(terms, 0)
        return self._sums[key]

    def present(self, one: PendingClass, column: ValueColumn, domain: int) -> int:
        """A variable that is 1 if pods of the class are in a domain; `ABSENT` as in `counts_in`."""
        terms = self.in_domain([one], column, domain)
        if len(terms) == 1 and self.linear.upper[terms[0][0]] <= 1:
            return terms[0][0]
        key = (id(one), column.key, domain)
        if key not in self._presences:
            present = self._presences[key] = self.linear.variable(1)
            self.linear.at_most([*terms, (present, -len(one.pods))], 0)
        return self._presences[key]

    def add_domains(self) -> None:
        """What follows for sums from the numbers on nodes, and for the domains of one key from those inside them."""
        columns = self.columns_with_sums()
        for column in columns:
            for one in self.classes:
                terms = self.in_domains([one], column)
                self._limit_total([*terms, *((v, 1) for v in self.counts_in(one, column, ABSENT))], one)
            self.check_size()
        for fine in columns:
            for coarse in columns:
                pairs = {(fine.at[slot], coarse.at[slot]) for slot in self.slots}
                is_part = len({inner for inner, _ in pairs}) == len(pairs) and ABSENT not in {a for a, _ in pairs}
                if fine is not coarse and is_part:
                    self._nest(fine, coarse, pairs)

    def in_domains(self, classes: Iterable[PendingClass], column: ValueColumn) -> list[Term]:
        some = list(classes)
        return [term for domain in self.domains(column) for term in self.in_domain(some, column, domain)]

    def _nest(self, fine: ValueColumn, coarse: ValueColumn, pairs: set[tuple[int, int]]) -> None:
        for outer in self.domains(coarse):
            inner = [domain for domain in self.domains(fine) if (domain, outer) in pairs]
            for one in self.classes:
                terms = [(self.sum_in(one, coarse, outer), -1)]
                terms += [(self.sum_in(one, fine, domain), 1) for domain in inner]
                self.linear.at_most(terms, 0)
                self.linear.at_least(terms, 0)

    # Groups

    def members(self) -> Iterator[tuple[GroupToPlace, list[PendingClass]]]:
        """Each group with the classes of its pods."""
        found: dict[str, list[PendingClass]] = defaultdict(list)
        for one in self.classes:
            found[one.group].append(one)
        for group in self.problem.groups:
            yield group, found[group.key]

    # Plans

    def values_of(self, plan: GroupPlan) -> dict[int, int]:
        """The number of pods of each class on each node in a plan, by variable; nothing for an empty plan."""
        if not plan.nodes:
            return {}
        found = {variable: 0 for one in self.classes for variable in one.counts.values()}
        by_name = self.index.slots.by_name
        for one in self.classes:
            for pod in one.pods:
                slot = by_name.get(plan.nodes.get(pod.key, ""), -1)
                if slot in one.counts:
                    found[one.counts[slot]] += 1
        return found

    def plan_of(self, values: Sequence[int]) -> GroupPlan:
        """The plan that a solution stands for: pods of a class are interchangeable."""
        nodes: dict[WorkloadKey, str] = {}
        for one in self.classes:
            waiting = iter(one.pods)
            for slot, variable in one.counts.items():
                for _ in range(values[variable]):
                    nodes[next(waiting).key] = self._name(slot)
        return GroupPlan(nodes)
