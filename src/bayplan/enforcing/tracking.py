"""
Which clauses are broken right now, kept up to date by the index's journal.

A change is looked up from both sides: the clauses that a workload holds, and the clauses that mean it, found by its
labels. Of the latter only the holders in the domains that the change touched are judged, and only if the count there
crossed what makes a difference. All workloads are looked at only at the start, or where the journal no longer reaches
back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayplan.enforcing import execution_rules, violations
from bayplan.enforcing.execution_rules import Domain, ExecutionRule, RuleBreach, RuleType, TrackedRule
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation
from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.peer_index import NO_LABELS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import Labels
from bayplan.model.targets import Target
from bayplan.model.terms import TermPart
from bayplan.model.workloads import Workload, WorkloadKey

Held = tuple[tuple[TrackedRule, tuple[Domain, ...]], ...]


class _Touched:
    """What a run of changes may have altered; `targets` has all that stood in a slot meanwhile."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self.owners: set[WorkloadKey] = set()
        self.domains: set[tuple[TrackedRule, Domain]] = set()
        self.whole: set[TrackedRule] = set()
        self.matching_set: set[TrackedRule] = set()
        self.targets: dict[int, list[Target]] = {}
        for change in changes:
            if change.target is not None:
                before = [change.before] if isinstance(change.before, Target) else []
                self.targets.setdefault(change.slots[0], []).extend([change.target, *before])

    @property
    def anything(self) -> bool:
        return bool(self.owners or self.domains or self.whole or self.matching_set)


class ViolationTracker:
    """`n_judged` counts how often an owner was looked at, for tests and metrics."""

    def __init__(self, index: PlacementIndex) -> None:
        self.n_judged = 0
        self._index = index
        self._position = -1
        self._tracked_rules: dict[ExecutionRule, TrackedRule] = {}
        self._meaning: dict[int, list[TrackedRule]] = {}  # by the id of the term's entry: whose counts it is in
        self._accompanying: dict[int, list[TrackedRule]] = {}  # likewise: for whom it decides who is alone
        self._scoped: dict[TrackedRule, list[TermPart]] = {}  # those that look into namespaces by label
        self._idle: set[TrackedRule] = set()  # whose last holder has left
        self._held: dict[WorkloadKey, Held] = {}
        self._broken: dict[WorkloadKey, dict[TrackedRule, list[RuleBreach]]] = {}
        self._listed: tuple[Violation, ...] | None = None
        self.catch_up()

    def violations(self) -> tuple[Violation, ...]:
        """Everything that is broken now, by owner."""
        self.catch_up()
        if self._listed is None:
            self._listed = tuple(violations.violations_of(self._broken, self._index))
        return self._listed

    def precedence(self) -> dict[WorkloadKey, Precedence]:
        """What decides between those who have a part in something that is broken."""
        return {key: self._precedence_of(key) for key in violations.involved(self.violations())}

    def _precedence_of(self, key: WorkloadKey) -> Precedence:
        record = self._index.records.get(key)
        if record is None:  # only a copy on its way out is left, which goes by the name of the whole
            return Precedence()
        return Precedence(record.workload.priority, record.workload.started or record.workload.created)

    def catch_up(self) -> None:
        """Judge what changed since the last time."""
        journal = self._index.journal
        changes, self._position = journal.since(self._position) if self._position >= 0 else None, journal.end
        if changes is None:
            self._begin()
        elif changes:
            self._follow(changes)

    def release(self) -> None:
        """Forget everything and let go of the terms held in the index."""
        for key in [*self._held]:
            self._remove_owner(key)
        self._drop_idle()
        self._listed, self._position = None, -1

    # Following

    def _begin(self) -> None:
        for key in {*self._held, *self._index.records}:
            self._settle(key)
        self._drop_idle()
        for tracked in self._tracked_rules.values():
            tracked.refresh()
        self._listed = None

    def _follow(self, changes: Sequence[Change]) -> None:
        touched = _Touched(changes)
        for change in changes:
            if change.workload is not None:
                self._notice(change.workload, change.slots, touched)
            elif change.type is ChangeType.NAMESPACE_CHANGED:
                touched.whole.update(self._minding(change))
        judged: set[tuple[TrackedRule, WorkloadKey]] = set()
        for key in touched.owners:
            judged.update((tracked, key) for tracked in self._settle(key))
        for tracked, key in self._concerned(touched):
            if (tracked, key) not in judged:
                judged.add((tracked, key))
                self._judge(tracked, self._index.records[key])
        self._drop_idle()
        if touched.anything:
            self._listed = None

    def _notice(self, workload: Workload, slots: tuple[int, ...], touched: _Touched) -> None:
        """Mark what a workload that came or went, with these labels, may have altered."""
        if workload.key in self._held or execution_rules.execution_rules_of(workload, self._index.semantics):
            touched.owners.add(workload.key)
        peer_index = self._index.peer_index
        for entry in peer_index.terms.candidates(workload.labels) if self._tracked_rules else ():
            meaning, accompanying = self._meaning.get(id(entry)), self._accompanying.get(id(entry))
            if not meaning and not accompanying:
                continue
            if not peer_index.matches(
                entry.term, workload.labels, workload.namespace, terminating=workload.terminating
            ):
                continue
            touched.matching_set.update(accompanying or ())
            for tracked in meaning or ():
                if tracked.rule.rule_type is RuleType.GROUP_AFFINITY:
                    touched.whole.add(tracked)
                for slot in slots:
                    here = self._index.slots.targets[slot]
                    for target in (*touched.targets.get(slot, ()), *([here] if here else ())):
                        touched.domains.update((tracked, domain) for domain in tracked.domains_of(target))

    def _minding(self, change: Change) -> Iterator[TrackedRule]:
        """The clauses that look into a namespace by its old labels or by its new ones, but not by both."""
        before, after = _labels(change.before), _labels(change.after)
        for tracked, parts in self._scoped.items():
            if any(part.in_scope(change.name, before) != part.in_scope(change.name, after) for part in parts):
                yield tracked

    def _concerned(self, touched: _Touched) -> Iterator[tuple[TrackedRule, WorkloadKey]]:
        """Whom to judge because of others."""
        for tracked in touched.whole:
            tracked.refresh()
            yield from ((tracked, key) for key in tracked.owners)
        for tracked, domain in touched.domains:
            if domain in tracked.owners_by_domain and tracked.crossed(domain):
                yield from ((tracked, key) for key in tracked.owners_by_domain[domain])
        for tracked in touched.matching_set:
            if tracked.sets_changed():
                yield from [(tracked, key) for key in tracked.unmet]

    # Owners

    def _settle(self, key: WorkloadKey) -> list[TrackedRule]:
        """Let a workload hold what it now holds where it now is, and judge that."""
        record = self._index.records.get(key)
        held: Held = ()
        if record is not None and record.slots:
            held = tuple(
                (tracked, self._domains(tracked, record))
                for tracked in map(
                    self._tracked_rule,
                    dict.fromkeys(execution_rules.execution_rules_of(record.workload, self._index.semantics)),
                )
            )
        self._remove_owner(key)
        if record is None or not held:
            return []
        self._held[key] = held
        for tracked, domains in held:
            tracked.add_owner(key, domains)
            self._judge(tracked, record)
        return [tracked for tracked, _ in held]

    def _remove_owner(self, key: WorkloadKey) -> None:
        self._broken.pop(key, None)
        for tracked, domains in self._held.pop(key, ()):
            tracked.remove_owner(key, domains)
            if not tracked.owners:
                self._idle.add(tracked)

    def _judge(self, tracked: TrackedRule, record: PlacedWorkload) -> None:
        self.n_judged += 1
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

    # Duties

    def _tracked_rule(self, rule: ExecutionRule) -> TrackedRule:
        tracked = self._tracked_rules.get(rule)
        if tracked is None:
            tracked = self._tracked_rules[rule] = TrackedRule(rule, self._index)
            self._meaning.setdefault(id(tracked.entry), []).append(tracked)
            for entry in dict.fromkeys(tracked.set_entries):
                self._accompanying.setdefault(id(entry), []).append(tracked)
            terms = [tracked.entry.term, *(entry.term for entry in tracked.set_entries)]
            parts = [part for term in terms for part in term.parts if part.namespace_selector is not None]
            if parts:
                self._scoped[tracked] = parts
        return tracked

    def _drop_idle(self) -> None:
        for tracked in self._idle:
            if tracked.owners:  # somebody has taken it up since
                continue
            del self._tracked_rules[tracked.rule]
            self._scoped.pop(tracked, None)
            _forget(self._meaning, id(tracked.entry), tracked)
            for entry in dict.fromkeys(tracked.set_entries):
                _forget(self._accompanying, id(entry), tracked)
            tracked.release()
        self._idle.clear()


def _labels(labels: object) -> Labels:
    return labels if isinstance(labels, dict) else NO_LABELS


def _forget(table: dict[int, list[TrackedRule]], entry_id: int, tracked: TrackedRule) -> None:
    table[entry_id].remove(tracked)
    if not table[entry_id]:
        del table[entry_id]
