"""
Which rules are violated now, kept up to date by the index's journal.

A change is looked up from both sides: the rules that a workload owns, and the rules that match it, found by its labels.
Of the latter only the owners in the domains that the change touched are evaluated, and only if the count there crossed
a level that matters. All workloads are evaluated only at the start, or where the journal does not reach back far
enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from bayplan.enforcing import consent, execution_rules, violations
from bayplan.enforcing.consent import EvictionConsent
from bayplan.enforcing.execution_rules import Domain, ExecutionRule, RuleBreach, RuleType, TrackedRule
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import OwnedBreach, Violation, ViolationId
from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.peer_index import NO_LABELS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.term_lookup import TermLookup
from bayplan.model.labels import Labels
from bayplan.model.targets import Target
from bayplan.model.terms import PeerTerm, TermPart
from bayplan.model.workloads import Workload, WorkloadKey

Owned = tuple[tuple[TrackedRule, tuple[Domain, ...]], ...]


class _TrackedTerm(msgspec.Struct, eq=False):
    """A term with the rules that count it, and the rules with a set of this term."""

    term: PeerTerm
    rules: list[TrackedRule] = []
    set_rules: list[TrackedRule] = []


class _Touched:
    """What a sequence of changes may have affected; `targets` are all targets that were in a slot meanwhile."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self.owners: set[WorkloadKey] = set()
        self.domains: set[tuple[TrackedRule, Domain]] = set()
        self.rules: set[TrackedRule] = set()
        self.sets: set[TrackedRule] = set()
        self.targets: dict[int, list[Target]] = {}
        for change in changes:
            if change.target is not None:
                before = [change.before] if isinstance(change.before, Target) else []
                self.targets.setdefault(change.slots[0], []).extend([change.target, *before])

    @property
    def anything(self) -> bool:
        return bool(self.owners or self.domains or self.rules or self.sets)


class ViolationTracker:
    """
    Tracks the violations of an index. The rules of the `granted` namespaces may evict pods of every namespace.

    `n_evaluated` counts how often an owner was evaluated, for tests.
    """

    def __init__(self, index: PlacementIndex, granted: AbstractSet[str] = frozenset()) -> None:
        self.n_evaluated = 0
        self._index = index
        self._consent = EvictionConsent(index.semantics.evict_across_namespaces, granted, index.peer_index.namespaces)
        self._position = -1
        self._tracked_rules: dict[ExecutionRule, TrackedRule] = {}
        self._terms: dict[PeerTerm, _TrackedTerm] = {}
        self._terms_by_labels: TermLookup[_TrackedTerm] = TermLookup()
        self._namespace_selectors: dict[TrackedRule, list[TermPart]] = {}  # of the rules that have any
        self._idle: set[TrackedRule] = set()  # the rules without owners
        self._owned: dict[WorkloadKey, Owned] = {}
        self._broken: dict[WorkloadKey, dict[TrackedRule, list[RuleBreach]]] = {}
        self._listed: tuple[Violation, ...] | None = None
        self._judged: dict[int, tuple[tuple[Violation, ...], frozenset[ViolationId]]] = {}
        self.catch_up()

    def violations(self) -> tuple[Violation, ...]:
        """All violations now, by owner."""
        self.catch_up()
        if self._listed is None:
            self._listed = tuple(violations.violations_of(self._all_broken(), self._index, self._consent))
        return self._listed

    def judged_violations(self, max_peers: int) -> tuple[tuple[Violation, ...], frozenset[ViolationId]]:
        """
        The violations to judge now, which name at most that many peers altogether, and the ids of all others.

        What tenants write must not decide how much is looked up: 10,000 pods of which each excludes the others name a
        hundred million. The others are judged once the first ones are resolved. Namespaces take turns.
        """
        self.catch_up()
        if max_peers not in self._judged:
            chosen, later = _within(max_peers, self._by_turns())
            listed = tuple(violations.violations_of(chosen, self._index, self._consent))
            self._judged[max_peers] = listed, frozenset(violations.ids_of(later, self._index))
        return self._judged[max_peers]

    def precedence(self, of: Iterable[Violation] | None = None) -> dict[WorkloadKey, Precedence]:
        """The precedence of all workloads that are involved in these violations; in any if none are given."""
        return {key: self._precedence_of(key) for key in violations.involved(self.violations() if of is None else of)}

    def n_by_type(self) -> dict[RuleType, int]:
        """How many violations there are, without looking up what they name."""
        self.catch_up()
        found: dict[RuleType, int] = {}
        for broken in self._all_broken():
            found[broken.tracked.rule.rule_type] = found.get(broken.tracked.rule.rule_type, 0) + 1
        return found

    def _all_broken(self) -> Iterator[OwnedBreach]:
        for key in sorted(self._broken):
            for tracked, breaches in sorted(self._broken[key].items(), key=lambda item: violations.order(item[0].rule)):
                for breach in breaches:
                    yield OwnedBreach(self._index.records[key], tracked, breach)

    def _by_turns(self) -> list[OwnedBreach]:
        """
        The broken rules in the order in which they are judged where they are too many.

        A namespace comes the later the more peers its earlier rules name. In each of them the highest priority comes
        first, as it decides who stays, and among equals the youngest, so that the oldest remains in the end.
        """
        found = sorted(self._all_broken(), key=lambda broken: self._age_of(broken.record.workload.key), reverse=True)
        found.sort(key=lambda broken: -broken.record.workload.priority)
        named: dict[str, int] = {}
        turns: list[tuple[int, int]] = []
        for broken in found:
            namespace, n_peers = broken.record.workload.namespace, broken.tracked.n_named(broken.breach)
            turns.append((named.get(namespace, 0), n_peers))
            named[namespace] = turns[-1][0] + n_peers
        return [found[place] for place in sorted(range(len(found)), key=turns.__getitem__)]

    def _age_of(self, key: WorkloadKey) -> tuple[str, str]:
        return self._precedence_of(key).since or "9999", key

    def _precedence_of(self, key: WorkloadKey) -> Precedence:
        record = self._index.records.get(key)
        if record is None:  # only a terminating copy is left, which has the same name
            return Precedence()
        return Precedence(record.workload.priority, record.workload.started or record.workload.created)

    def catch_up(self) -> None:
        """Judge what changed since the last call."""
        journal = self._index.journal
        changes, self._position = journal.since(self._position) if self._position >= 0 else None, journal.end
        if changes is None:
            self._evaluate_all()
        elif changes:
            self._evaluate_changes(changes)

    def release(self) -> None:
        """Forget everything and release the terms held in the index."""
        for key in [*self._owned]:
            self._remove_owner(key)
        self._drop_idle()
        self._forget_listed()
        self._position = -1

    def _forget_listed(self) -> None:
        self._listed, self._judged = None, {}

    # Following

    def _evaluate_all(self) -> None:
        for key in {*self._owned, *self._index.records}:
            self._update_owner(key)
        self._drop_idle()
        for tracked in self._tracked_rules.values():
            tracked.refresh()
        self._forget_listed()

    def _evaluate_changes(self, changes: Sequence[Change]) -> None:
        touched = _Touched(changes)
        for change in changes:
            if change.workload is not None:
                self._mark_touched(change.workload, change.slots, touched)
            elif change.type is ChangeType.NAMESPACE_CHANGED:
                touched.rules.update(self._rules_scoped_to(change))
                if consent.consenting_to(_labels(change.before)) != consent.consenting_to(_labels(change.after)):
                    self._forget_listed()  # violations say which peers their rule may evict
        evaluated: set[tuple[TrackedRule, WorkloadKey]] = set()
        for key in touched.owners:
            evaluated.update((tracked, key) for tracked in self._update_owner(key))
        for tracked, key in self._owners_to_evaluate(touched):
            if (tracked, key) not in evaluated:
                evaluated.add((tracked, key))
                self._evaluate(tracked, self._index.records[key])
        self._drop_idle()
        if touched.anything:
            self._forget_listed()

    def _mark_touched(self, workload: Workload, slots: tuple[int, ...], touched: _Touched) -> None:
        """Mark what the addition or removal of a workload may have affected."""
        if workload.key in self._owned or execution_rules.execution_rules_of(workload, self._index.semantics):
            touched.owners.add(workload.key)
        peer_index = self._index.peer_index
        namespace_labels = peer_index.namespaces.get(workload.namespace, NO_LABELS)
        for term in self._terms_by_labels.find(workload.labels, workload.namespace, namespace_labels):
            if not peer_index.matches(term.term, workload.labels, workload.namespace, terminating=workload.terminating):
                continue
            touched.sets.update(term.set_rules)
            for tracked in term.rules:
                if tracked.rule.rule_type is RuleType.GROUP_AFFINITY:
                    touched.rules.add(tracked)
                for slot in slots:
                    here = self._index.slots.targets[slot]
                    for target in (*touched.targets.get(slot, ()), *([here] if here else ())):
                        touched.domains.update((tracked, domain) for domain in tracked.domains_of(target))

    def _rules_scoped_to(self, change: Change) -> Iterator[TrackedRule]:
        """The rules whose namespace selectors match the old labels of the namespace or the new ones, but not both."""
        before, after = _labels(change.before), _labels(change.after)
        for tracked, parts in self._namespace_selectors.items():
            if any(part.in_scope(change.name, before) != part.in_scope(change.name, after) for part in parts):
                yield tracked

    def _owners_to_evaluate(self, touched: _Touched) -> Iterator[tuple[TrackedRule, WorkloadKey]]:
        """The rules and owners to evaluate because other workloads changed."""
        for tracked in touched.rules:
            tracked.refresh()
            yield from ((tracked, key) for key in tracked.owners)
        for tracked, domain in touched.domains:
            if domain in tracked.owners_by_domain and tracked.level_changed(domain):
                yield from ((tracked, key) for key in tracked.owners_by_domain[domain])
        for tracked in touched.sets:
            if tracked.sets_changed():
                yield from [(tracked, key) for key in tracked.unmet]

    # Owners

    def _update_owner(self, key: WorkloadKey) -> list[TrackedRule]:
        """Register the rules that a workload now owns in its present domains, and evaluate them."""
        record = self._index.records.get(key)
        owned: Owned = ()
        if record is not None and record.slots:
            rules = dict.fromkeys(execution_rules.execution_rules_of(record.workload, self._index.semantics))
            owned = tuple((tracked, self._domains(tracked, record)) for tracked in map(self._tracked_rule, rules))
        self._remove_owner(key)
        if record is None or not owned:
            return []
        self._owned[key] = owned
        for tracked, domains in owned:
            tracked.add_owner(key, domains)
            self._evaluate(tracked, record)
        return [tracked for tracked, _ in owned]

    def _remove_owner(self, key: WorkloadKey) -> None:
        self._broken.pop(key, None)
        for tracked, domains in self._owned.pop(key, ()):
            tracked.remove_owner(key, domains)
            if not tracked.owners:
                self._idle.add(tracked)

    def _evaluate(self, tracked: TrackedRule, record: PlacedWorkload) -> None:
        self.n_evaluated += 1
        key, breaches = record.workload.key, tracked.breaches(record)
        broken = self._broken.setdefault(key, {})
        if breaches:
            broken[tracked] = breaches
        else:
            broken.pop(tracked, None)
            if not broken:
                del self._broken[key]

    def _domains(self, tracked: TrackedRule, record: PlacedWorkload) -> tuple[Domain, ...]:
        targets = (self._index.slots.at(slot) for slot in record.slots)
        return tuple(dict.fromkeys(domain for target in targets for domain in tracked.domains_of(target)))

    # Rules

    def _tracked_rule(self, rule: ExecutionRule) -> TrackedRule:
        tracked = self._tracked_rules.get(rule)
        if tracked is None:
            tracked = self._tracked_rules[rule] = TrackedRule(rule, self._index)
            self._tracked_term(tracked.entry.term).rules.append(tracked)
            for entry in dict.fromkeys(tracked.set_entries):
                self._tracked_term(entry.term).set_rules.append(tracked)
            terms = [tracked.entry.term, *(entry.term for entry in tracked.set_entries)]
            parts = [part for term in terms for part in term.parts if part.namespace_selector is not None]
            if parts:
                self._namespace_selectors[tracked] = parts
        return tracked

    def _drop_idle(self) -> None:
        for tracked in self._idle:
            if tracked.owners:  # it has an owner again
                continue
            del self._tracked_rules[tracked.rule]
            self._namespace_selectors.pop(tracked, None)
            self._terms[tracked.entry.term].rules.remove(tracked)
            for entry in dict.fromkeys(tracked.set_entries):
                self._terms[entry.term].set_rules.remove(tracked)
            for term in {entry.term for entry in (tracked.entry, *tracked.set_entries)}:
                if not self._terms[term].rules and not self._terms[term].set_rules:
                    del self._terms[term]
                    self._terms_by_labels.remove(term)
            tracked.release()
        self._idle.clear()

    def _tracked_term(self, term: PeerTerm) -> _TrackedTerm:
        found = self._terms.get(term)
        if found is None:
            found = self._terms[term] = _TrackedTerm(term)
            self._terms_by_labels.add(term, found)
        return found


def _within(max_peers: int, found: Sequence[OwnedBreach]) -> tuple[Sequence[OwnedBreach], Sequence[OwnedBreach]]:
    """The first ones, of which the sum of peers is within the limit, and the others; one at least."""
    total = 0
    for place, broken in enumerate(found):
        total += broken.tracked.n_named(broken.breach)
        if total > max_peers and place:
            return found[:place], found[place:]
    return found, ()


def _labels(labels: object) -> Labels:
    return labels if isinstance(labels, dict) else NO_LABELS
