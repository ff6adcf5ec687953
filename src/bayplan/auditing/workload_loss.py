"""
What an event does to workloads: which needs break, where the scheduler puts what was displaced, what is missing, and
which stanza would keep replicas apart.

Everything happens on the index and is taken back. Nothing is preempted: who finds no room waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from bayplan import schedule
from bayplan.auditing.layout import Member
from bayplan.auditing.survivability import (
    BELOW_NEED,
    DOWN,
    Event,
    Group,
    effect,
    label_events,
    majority,
    standing,
)
from bayplan.explaining import tally, what_would_fit
from bayplan.explaining.what_would_fit import Fix
from bayplan.filtering import Verdicts
from bayplan.indexing.capacity import PODS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import labels as label_model
from bayplan.model import quantities
from bayplan.model.labels import Selector
from bayplan.model.node_selectors import NAME_FIELD
from bayplan.model.terms import REGION, ZONE, PodTerm
from bayplan.model.workloads import Needs, Spread, SpreadConstraint, Workload, WorkloadKey
from bayplan.rules.resources_fit import ResourcesFit
from bayplan.rules.rule import Rule

Amounts = tuple[tuple[str, int], ...]  # resource → amount, cpu in thousandths
# Labels that controllers and binding write, different from one revision, replica or place to the next.
VOLATILE = frozenset({
    "pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index", ZONE, REGION,
})  # fmt: skip
SPREAD, ANTI_AFFINITY, SOFT_SPREAD = "spread", "anti-affinity", "soft spread"
GATED = "Scheduling is blocked due to non-empty scheduling gates"


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A PodDisruptionBudget; a null selector selects nothing. `expected`: what its controllers want, 0 if unknown."""

    namespace: str
    name: str
    selector: Selector | None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    expected: int = 0

    def need(self, n: int) -> int:
        """How many of its n pods must be healthy; shares are rounded up, as the disruption controller does."""
        expected = max(n, self.expected)
        if self.max_unavailable is not None:
            return max(expected - _scaled(self.max_unavailable, expected), 0)
        return _scaled(1 if self.min_available is None else self.min_available, expected)


class Replicas(msgspec.Struct, frozen=True):
    """A group and the workloads that are its members, in the same order."""

    group: Group
    keys: tuple[WorkloadKey, ...]


class Stranded(msgspec.Struct, frozen=True):
    """
    A displaced workload that fits nowhere: the scheduler's sentence, and what is missing.

    `missing` is the smallest shortage: that of node `nearest`, where nothing but resources is in the way. Both are
    empty if there is no such node, and the sentence then says what else is.
    """

    key: WorkloadKey
    message: str
    nearest: str = ""
    missing: Amounts = ()
    fixes: list[Fix] = []


class Loss(msgspec.Struct, frozen=True):
    """
    What an event does. `gone` dies with its node: daemons, mirror pods, pods that were leaving anyway.

    `broken` are the groups below their need at once, `still_broken` those that rescheduling does not mend. `shortage`
    is all that the stranded ones ask for together.
    """

    event: Event
    gone: tuple[WorkloadKey, ...]
    placed: tuple[tuple[WorkloadKey, str], ...]
    stranded: tuple[Stranded, ...]
    broken: tuple[str, ...]
    still_broken: tuple[str, ...]
    shortage: Amounts = ()

    @property
    def n_displaced(self) -> int:
        return len(self.placed) + len(self.stranded)


# Groups


def budget_replicas(index: PlacementIndex, budgets: Iterable[Budget]) -> list[Replicas]:
    """Each budget with the running pods that it selects; one that selects nothing is left out."""
    by_namespace: dict[str, list[WorkloadKey]] = {}
    for key in sorted(index.records):
        by_namespace.setdefault(index.records[key].workload.namespace, []).append(key)
    found = []
    for budget in budgets:
        keys = [
            key
            for key in by_namespace.get(budget.namespace, ())
            if budget.selector is not None and budget.selector.matches(index.records[key].workload.labels)
        ]
        if keys:
            name = f"PodDisruptionBudget {budget.namespace}/{budget.name}"
            found.append(replicas(name, keys, index, at_least=budget.need(len(keys))))
    return found


def owner_replicas(
    index: PlacementIndex, owners: Mapping[WorkloadKey, str], quorum: frozenset[str] = frozenset()
) -> list[Replicas]:
    """
    The running pods of each owner (`Deployment shop/web`), at least one of which must be left, or a majority.

    Leave out the owners that replicas are no protection for: DaemonSets, Jobs, mirror pods.
    """
    by_owner: dict[str, list[WorkloadKey]] = {}
    for key in sorted(index.records):
        if key in owners:
            by_owner.setdefault(owners[key], []).append(key)
    return [
        replicas(owner, keys, index, at_least=majority(len(keys)) if owner in quorum else 1)
        for owner, keys in sorted(by_owner.items())
    ]


def replicas(name: str, keys: Sequence[WorkloadKey], index: PlacementIndex, *, at_least: int = 1) -> Replicas:
    """A group of workloads where they are now; those that are leaving or nowhere are members, but not healthy."""
    members = []
    for key in keys:
        record = index.records.get(key)
        node = record.shares[0][0] if record is not None and record.shares else ""
        healthy = record is not None and not record.workload.terminating and node in index.slots.by_name
        members.append(Member(node, healthy))
    return Replicas(Group(name, tuple(members), at_least=at_least), tuple(keys))


def _scaled(value: int | str, n: int) -> int:
    if isinstance(value, int):
        return value
    return -(-int(value.rstrip("%")) * n // 100)


# Losing


def lose_each(
    events: Iterable[Event],
    index: PlacementIndex,
    rules: Sequence[Rule],
    groups: Sequence[Replicas] = (),
    *,
    stays: frozenset[WorkloadKey] = frozenset(),
    most_fixes: int = 0,
) -> Iterator[Loss]:
    """One loss after another, each from the same start; `stays` and `most_fixes` as for `lose`."""
    on_node: dict[str, list[int]] = {}
    for position, one in enumerate(groups):
        for node in {member.node for member in one.group.members}:
            on_node.setdefault(node, []).append(position)
    for event in events:
        hit = sorted({position for node in event.nodes for position in on_node.get(node, ())})
        yield lose(event, index, rules, [groups[i] for i in hit], stays=stays, most_fixes=most_fixes)


def lose(
    event: Event,
    index: PlacementIndex,
    rules: Sequence[Rule],
    groups: Sequence[Replicas] = (),
    *,
    stays: frozenset[WorkloadKey] = frozenset(),
    most_fixes: int = 0,
) -> Loss:
    """
    Take the event's nodes away and place what ran there anew, in the order of the scheduling queue.

    `stays` are the pods that nobody makes again elsewhere: mirror pods and the like; daemons are found by their node
    affinity. For so many of the stranded the smallest fixes are looked for. The index is left as it was.
    """
    broken = [one for one in groups if effect(one.group, event) in (DOWN, BELOW_NEED)]
    lost = sorted(node for node in event.nodes if node in index.slots.by_name)
    placed: list[tuple[WorkloadKey, str]] = []
    stranded: list[Stranded] = []
    shortage: Counter[str] = Counter()
    with index.tentatively():
        displaced, gone = _take_away(lost, index, stays)
        for workload in sorted(displaced, key=_queue_order):
            found = _place(workload, index, rules, with_fixes=len(stranded) < most_fixes)
            if isinstance(found, Stranded):
                stranded.append(found)
                shortage.update(_asked(workload))
            else:
                placed.append((workload.key, found))
        still = [one.group.name for one in broken if _below_need(one, index)]
    names = tuple(one.group.name for one in broken)
    return Loss(event, tuple(gone), tuple(placed), tuple(stranded), names, tuple(still), tuple(shortage.items()))


def pinned(workload: Workload) -> bool:
    """Whether its node affinity names one node in every term, as the pods of a DaemonSet do."""
    terms = workload.needs.node_affinity.required
    return bool(terms) and all(
        any(f.key == NAME_FIELD and f.operator == "In" for f in term.fields) for term in terms or ()
    )


def missing_text(stranded: Stranded) -> str:
    """`500m cpu and 1Gi memory on n3`; empty if nothing but resources is not what is missing."""
    amounts = " and ".join(
        "a place for one more pod"
        if resource == PODS and amount == 1
        else f"{quantities.show(resource, amount)} {resource}"
        for resource, amount in stranded.missing
    )
    return f"{amounts} on {stranded.nearest}" if amounts else ""


def _take_away(
    lost: Sequence[str], index: PlacementIndex, stays: frozenset[WorkloadKey]
) -> tuple[list[Workload], list[WorkloadKey]]:
    """Remove the nodes and what runs on them; returns what has to be placed again, as new, and what has not."""
    displaced, gone = [], []
    for name in lost:
        slot = index.slots.by_name[name]
        labels = index.slots.at(slot).labels
        for key in index.workloads_on(slot):
            workload = index.remove(key)
            if workload.terminating or key in stays or pinned(workload):
                gone.append(key)
            else:
                displaced.append(_made_anew(workload, labels))
        index.remove_target(name)
    return displaced, gone


def _made_anew(workload: Workload, node_labels: Mapping[str, str]) -> Workload:
    """The pod as its controller makes it again: not yet started, and without the place that binding wrote into it."""
    copied = {key for key in (ZONE, REGION) if key in node_labels and workload.labels.get(key) == node_labels[key]}
    labels = {key: value for key, value in workload.labels.items() if key not in copied}
    return msgspec.structs.replace(workload, labels=labels, started="", nominated_target="", requested_target="")


def _place(workload: Workload, index: PlacementIndex, rules: Sequence[Rule], *, with_fixes: bool) -> str | Stranded:
    if workload.gates:
        return Stranded(workload.key, f"{GATED}: {', '.join(workload.gates)}")
    slot, _ = schedule.choose(workload, index, rules)
    if slot < 0:
        verdicts = schedule.schedule(workload, index, rules).verdicts
        message = tally.sentence(verdicts, index)
        nearest, missing = _smallest_shortage(verdicts, workload, index)
        fixes = what_would_fit.fixes(workload, index, rules) if with_fixes else []
        return Stranded(workload.key, message, nearest, missing, fixes)
    target = index.slots.at(slot)
    index.add(_bound(workload, target.labels), target.name)
    return target.name


def _bound(workload: Workload, node_labels: Mapping[str, str]) -> Workload:
    copied = {key: node_labels[key] for key in (ZONE, REGION) if key in node_labels}
    return msgspec.structs.replace(workload, labels={**workload.labels, **copied}) if copied else workload


def _smallest_shortage(verdicts: Verdicts, workload: Workload, index: PlacementIndex) -> tuple[str, Amounts]:
    """The node where only resources are in the way and least of what is asked for is missing, and how much that is."""
    if verdicts.refusal is not None:
        return "", ()
    open_but_full = index.slots.alive.copy()
    if verdicts.excluded is not None:
        open_but_full &= ~verdicts.excluded
    for one in verdicts.judged:
        refused = one.refused()
        if refused is not None and not isinstance(one.rule, ResourcesFit):
            open_but_full &= ~refused
    slots = np.flatnonzero(open_but_full)
    if not len(slots):
        return "", ()
    asked, capacity = _asked(workload), index.capacity
    rows = [capacity.row(resource) for resource in asked]
    wanted = np.array(list(asked.values()), np.int64)[:, None]
    free = capacity.allocatable[rows][:, slots] - capacity.requested[rows][:, slots]
    short = np.maximum(wanted - free, 0)  # (n_resources, n_slots)
    # Shares of what is asked for make resources comparable; the name decides between equals.
    worst = (short / np.maximum(wanted, 1)).sum(axis=0)
    names = {index.slots.at(int(slots[i])).name: int(i) for i in np.flatnonzero(worst == worst.min())}
    nearest, best = min(names.items())
    found = zip(asked, np.take(short, best, axis=1).tolist(), strict=True)
    return nearest, tuple((resource, amount) for resource, amount in found if amount)


def _asked(workload: Workload) -> dict[str, int]:
    return {**{r: amount for r, amount in workload.needs.requests.amounts if amount}, PODS: 1}


def _below_need(one: Replicas, index: PlacementIndex) -> bool:
    known = index.slots.by_name
    there = (index.records.get(key) for key in one.keys)
    left = sum(
        record is not None and not record.workload.terminating and record.shares[0][0] in known for record in there
    )
    return left < one.group.need


def _queue_order(workload: Workload) -> tuple[int, str, str, str]:
    """As a scheduler takes them: higher priority first, then the older one, then by name."""
    return -workload.priority, workload.created or "9999", workload.namespace, workload.name


# Mending


class Stanza(msgspec.Struct, frozen=True):
    """
    A stanza for the pod template that keeps replicas apart, as a strategic merge patch of their controller.

    It `works` if the engine, placing all replicas anew with it, finds room for each and no domain is a single point.
    Otherwise `single_points` and `stranded` say what is left.
    """

    group: str
    kind: str
    topology_key: str
    patch: dict[str, Any]
    works: bool
    placed: tuple[tuple[WorkloadKey, str], ...]
    single_points: tuple[str, ...]
    stranded: tuple[Stranded, ...] = ()


def stanza(
    one: Replicas,
    topology_key: str,
    index: PlacementIndex,
    rules: Sequence[Rule],
    *,
    selected: Mapping[str, str] | None = None,
    kinds: Sequence[str] = (SPREAD, ANTI_AFFINITY, SOFT_SPREAD),
) -> Stanza | None:
    """
    The first of the kinds that leaves no domain of the key a single point of the group, else the first that was tried.

    `selected` are the labels that the replicas share; by default those that all of them have. None if there are none,
    or if no spreading helps because too few replicas may be lost: one replica, or as many needed as there are.
    """
    workloads = [index.records[key].workload for key in one.keys if key in index.records]
    labels = dict(_shared_labels(workloads) if selected is None else selected)
    if not labels or len(workloads) - one.group.need < 1:
        return None
    tried: list[Stanza] = []
    for made in sorted(_candidates(labels, topology_key, workloads, kinds), key=lambda made: kinds.index(made.kind)):
        attempt = _attempt(made, one, topology_key, index, rules)
        if attempt.works:
            return attempt
        tried.append(attempt)
    return tried[0] if tried else None


class _Candidate(msgspec.Struct, frozen=True):
    kind: str
    pod_spec: dict[str, Any]
    edit: Callable[[Needs], Needs]


def _candidates(
    labels: dict[str, str], key: str, workloads: Sequence[Workload], kinds: Sequence[str]
) -> Iterator[_Candidate]:
    selector, written = label_model.equals(labels), {"matchLabels": labels}
    if SPREAD in kinds:
        yield _spread(key, selector, written, hard=True)
    # A patch replaces the whole list of required terms, so it is proposed only to those that have none.
    if ANTI_AFFINITY in kinds and not any(workload.needs.affinity.anti_required for workload in workloads):
        term = {"topologyKey": key, "labelSelector": written}
        required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield _Candidate(ANTI_AFFINITY, {"affinity": required}, lambda needs: _apart(needs, PodTerm(selector, key)))
    if SOFT_SPREAD in kinds:
        yield _spread(key, selector, written, hard=False)


def _spread(key: str, selector: Selector, written: dict[str, Any], *, hard: bool) -> _Candidate:
    constraint = SpreadConstraint(1, key, hard, selector)

    def edit(needs: Needs) -> Needs:
        # A patch finds the entry to replace by its topology key.
        others = tuple(c for c in needs.spread.constraints if c.topology_key != key)
        return msgspec.structs.replace(needs, spread=Spread((*others, constraint)))

    unsatisfiable = "DoNotSchedule" if hard else "ScheduleAnyway"
    entry = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": unsatisfiable, "labelSelector": written}
    return _Candidate(SPREAD if hard else SOFT_SPREAD, {"topologySpreadConstraints": [entry]}, edit)


def _apart(needs: Needs, term: PodTerm) -> Needs:
    return msgspec.structs.replace(needs, affinity=msgspec.structs.replace(needs.affinity, anti_required=(term,)))


def _attempt(made: _Candidate, one: Replicas, key: str, index: PlacementIndex, rules: Sequence[Rule]) -> Stanza:
    """Place all replicas anew with the stanza, as after a rollout, and look where they are."""
    events = label_events(key, {name: index.slots.at(slot).labels for name, slot in index.slots.by_name.items()})
    placed: list[tuple[WorkloadKey, str]] = []
    stranded: list[Stranded] = []
    with index.tentatively():
        renewed = []
        for name in one.keys:
            if name not in index.records:
                continue
            slots = index.records[name].slots
            node_labels = index.slots.at(slots[0]).labels if slots else {}
            workload = _made_anew(index.remove(name), node_labels)
            renewed.append(msgspec.structs.replace(workload, needs=made.edit(workload.needs), terminating=False))
        for workload in sorted(renewed, key=_queue_order):
            found = _place(workload, index, rules, with_fixes=False)
            if isinstance(found, Stranded):
                stranded.append(found)
            else:
                placed.append((workload.key, found))
        after = replicas(one.group.name, one.keys, index, at_least=one.group.need).group
    left = standing(after, events)
    works = not stranded and not left.unknown and after.stands and left.tolerance >= 1
    patch = {"spec": {"template": {"spec": made.pod_spec}}}
    return Stanza(one.group.name, made.kind, key, patch, works, tuple(placed), left.single_points, tuple(stranded))


def _shared_labels(workloads: Sequence[Workload]) -> dict[str, str]:
    """What all replicas have in common and keep through a rollout."""
    first, *others = [workload.labels for workload in workloads] or [{}]
    return {
        key: value
        for key, value in sorted(first.items())
        if key not in VOLATILE and all(labels.get(key) == value for labels in others)
    }
