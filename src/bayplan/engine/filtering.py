"""Run the filter halves of the rules: which targets are feasible, and for the others the first rule against them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.bounded_cache import BoundedCache
from bayplan.indexing.evaluations import Evaluation
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask, Reason, Slots
from bayplan.model.workloads import Workload, label_keys
from bayplan.rules.rule import Rule

MAX_EQUIVALENCE_CLASSES = 512  # for each index; the least recently used go first


class RuleResult(msgspec.Struct, frozen=True):
    """One rule's view of the targets for one workload."""

    rule: Rule
    evaluation: Evaluation
    exempt_slots: Slots | None = None

    @property
    def state(self) -> Any:
        return self.evaluation.state

    def refused(self) -> Mask | None:
        """Which targets the rule is against, shape (capacity,); None if it has nothing against any."""
        if self.evaluation.codes is None or not self.rule.filters:
            return None
        refused: Mask = self.evaluation.codes != 0
        if self.exempt_slots is not None:
            refused[self.exempt_slots] = False
        return refused


class Verdicts(msgspec.Struct, frozen=True):
    """
    What the rules say before scoring. Read it before the next change of the index.

    `refusal` is a rule's reason against every target, found before any was looked at. `excluded` are the targets that
    rules left out beforehand, with the names of those rules.
    """

    judged: tuple[RuleResult, ...]
    feasible: Mask
    refusal: tuple[Rule, Reason] | None = None
    excluded: Mask | None = None
    excluded_by: tuple[str, ...] = ()


def run(rules: Sequence[Rule], workload: Workload, index: PlacementIndex) -> Verdicts:
    """Which targets every rule lets through."""
    return verdicts_of(judge(rules, workload, index), index)


def verdicts_of(judged: Sequence[RuleResult], index: PlacementIndex) -> Verdicts:
    """What the rules say together, once each has had its say."""
    judged = tuple(judged)
    nowhere = np.zeros(index.slots.capacity, np.bool_)
    candidates, by = None, []
    for one in judged:
        if one.rule.filters:
            refusal = one.rule.refuse(one.state, index)
            if refusal is not None:
                return Verdicts(judged, nowhere, (one.rule, refusal))
            only = one.rule.candidates(one.state, index)
            if only is not None:
                candidates = only if candidates is None else candidates & only
                by.append(one.rule.name)
    feasible = index.slots.alive.copy() if candidates is None else index.slots.alive & candidates
    for one in judged:
        refused = one.refused()
        if refused is not None:
            feasible &= ~refused
    excluded = None if candidates is None else index.slots.alive & ~candidates
    return Verdicts(judged, feasible, excluded=excluded, excluded_by=tuple(by))


def judge(rules: Sequence[Rule], workload: Workload, index: PlacementIndex) -> list[RuleResult]:
    """Each rule's view of the targets, for the rules that have something to say about this workload."""
    found = []
    for rule in rules:
        part = rule.part(workload, index)
        if part is not None:
            found.append(RuleResult(rule, index.evaluations.get(rule, part, index), rule.exempt_slots(workload, index)))
    return found


def first_failures(verdicts: Verdicts) -> NDArray[np.int64]:
    """For each target the position in `judged` of the first rule against it, -1 if none; shape (capacity,)."""
    first = np.full(len(verdicts.feasible), -1, np.int64)
    for position, one in enumerate(verdicts.judged):
        refused = one.refused()
        if refused is not None:
            first[(first == -1) & refused] = position
    return first


class EquivalenceClass:
    """
    Workloads that no rule tells apart, with the rules' views of the targets.

    `asked` are the rules that may refuse or exclude beyond their codes, `following` those whose views change with what
    is placed. `ranking` is for `ranking` to keep, `refusal` for `placing`: what is told to the next one of the kind
    that fits nowhere, as long as nothing changes.
    """

    __slots__ = (
        "_n_dropped",
        "_targets_generation",
        "asked",
        "following",
        "judged",
        "ranking",
        "refusal",
        "rules",
        "used",
    )

    def __init__(self, rules: Sequence[Rule], judged: Sequence[RuleResult], index: PlacementIndex) -> None:
        self.rules = rules  # held, so that their id stays theirs
        self.judged = tuple(judged)
        self.asked = [one for one in judged if one.rule.filters and _looks_closer(one.rule)]
        self.following = [(one.evaluation, one.rule) for one in judged if one.rule.follows_workloads]
        self.ranking: Any = None
        self.refusal: Any = None
        self.used = index.journal.end
        self._targets_generation = index.targets_generation
        self._n_dropped = index.evaluations.n_dropped

    def is_current(self, index: PlacementIndex) -> bool:
        """Whether the same rules still have something to say, and their views are still kept."""
        if self._targets_generation != index.targets_generation:
            return False
        if self._n_dropped != index.evaluations.n_dropped:
            self._n_dropped = index.evaluations.n_dropped
            return not any(one.evaluation.dropped for one in self.judged)
        return True

    def needs_a_closer_look(self, index: PlacementIndex) -> bool:
        """Whether a rule refuses or excludes targets beyond its codes."""
        return any(
            one.rule.refuse(one.state, index) or one.rule.candidates(one.state, index) is not None for one in self.asked
        )


def equivalence_class_of(rules: Sequence[Rule], workload: Workload, index: PlacementIndex) -> EquivalenceClass:
    """The workload's kind, its rules' views up to date."""
    needs = workload.needs
    visible = index.peer_index.visible(workload.labels, label_keys(needs))
    key = (id(rules), workload.namespace, visible, needs, workload.requested_target, workload.unplaceable)
    kept: BoundedCache[Hashable, EquivalenceClass] = index.equivalence_classes
    found = kept.get(key)
    if found is None or not found.is_current(index):
        found = EquivalenceClass(rules, judge(rules, workload, index), index)
        kept.put(key, found, MAX_EQUIVALENCE_CLASSES)
        return found
    found.used = index.journal.end
    for evaluation, rule in found.following:
        index.evaluations.refresh(evaluation, rule, index)
    return found


def _looks_closer(rule: Rule) -> bool:
    return type(rule).refuse is not Rule.refuse or type(rule).candidates is not Rule.candidates
