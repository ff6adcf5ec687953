"""
One decision of a scheduler with a queue: the node for a pod, with room left for nominated pods.

It is the decision of `schedule_pod`; only the nominations are added here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from bayplan import schedule_pod
from bayplan.engine import filtering, scoring
from bayplan.engine.engine import Engine
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import fit_error
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload
from bayplan.preempting.preemption_case import preemptor_of
from bayplan.queueing import nominations
from bayplan.queueing.nominations import Nominations
from bayplan.schedule_pod import Decision

MAX_BLOCKERS = 3  # domains of each rule in an event; `bayplan explain` lists all


class NodeChoice(msgspec.Struct, frozen=True):
    """`slot` is -1 if no node is feasible."""

    slot: int
    total: int = 0


class Blocker(msgspec.Struct, frozen=True):
    """
    Pods that block the targets of one domain, `KEY=VALUE`; `n_targets` of it would be feasible without them.

    Without peers, these are targets that others block.
    """

    peers: tuple[str, ...]
    domain: str
    n_targets: int


class Diagnosis(msgspec.Struct, frozen=True):
    """Why no node is feasible: the message, and the pods that block the placement."""

    message: str
    blockers: tuple[Blocker, ...] = ()


def decide(workload: Workload, engine: Engine, nominated: Sequence[tuple[Workload, str]]) -> Decision:
    """
    Decide where a pod is placed among nominated pods, with the verdict on every node.

    As in kube-scheduler, a node must pass beside the pods that are nominated to this very node, and also without them.
    """
    index = engine.index
    taken = {}
    for slot, others in preemptor_of(workload, nominated, index).nominated_pods.items():
        with index.tentatively():
            for other in others:
                index.add(other, index.slots.at(slot).name)
            rule, reasons = fit_error.reasons_at(filtering.run(workload, engine), slot)
            if reasons:
                taken[slot] = (rule, reasons)
    verdicts = filtering.run(workload, engine)
    if taken and verdicts.pre_filter_rejection is None:
        feasible = verdicts.feasible.copy()
        feasible[list(taken)] = False
        left = {slot: why for slot, why in taken.items() if verdicts.excluded is None or not verdicts.excluded[slot]}
        verdicts = msgspec.structs.replace(verdicts, feasible=feasible, taken=left)
    return schedule_pod.decide(verdicts, index)


def choose(workload: Workload, engine: Engine, nominated: Nominations) -> NodeChoice:
    """Return the node for a pod. Its nominated node, if feasible, is taken at once, as kube-scheduler does."""
    others = nominated.competing_with(workload) if len(nominated) else []
    index = engine.index
    own = index.slots.by_name.get(nominated.target_of(workload.key), -1)
    if not others and own < 0:
        return NodeChoice(*schedule_pod.choose(workload, engine))
    # A node must be feasible both with the nominated pods and without them, as they may never be bound there.
    with nominations.with_nominated_pods(others, index):
        allowed = filtering.run(workload, engine).feasible.copy()
    verdicts = filtering.run(workload, engine)
    verdicts = msgspec.structs.replace(verdicts, feasible=verdicts.feasible & allowed)
    if not verdicts.feasible.any():
        return NodeChoice(-1)
    ranking = scoring.run(verdicts, index)
    if own < 0 or not verdicts.feasible[own]:
        own = int(ranking.best(verdicts.feasible, index)[0])
    return NodeChoice(own, int(ranking.totals[own]))


def diagnose(workload: Workload, engine: Engine, nominated: Nominations) -> Diagnosis:
    """Return why the pod fits no node, in the words of kube-scheduler, with the pods that block it."""
    index = engine.index
    with nominations.with_nominated_pods(nominated.competing_with(workload), index):
        verdicts = filtering.run(workload, engine)
        return Diagnosis(fit_error.sentence(verdicts, index), blockers(verdicts, workload, index))


def blockers(verdicts: Verdicts, workload: Workload, index: PlacementIndex) -> tuple[Blocker, ...]:
    """The pods that block targets which a single rule rejects: those of the domains with the most targets first."""
    if verdicts.pre_filter_rejection is not None:
        return ()
    rejections = np.zeros(index.slots.capacity, np.int64)
    for one in verdicts.results:
        rejected = one.rejected()
        if rejected is not None:
            rejections += rejected
    rejected_once = index.slots.alive & (rejections == 1)
    found: dict[tuple[tuple[str, ...], str], int] = {}
    n_others = 0
    for one in verdicts.results:
        rejected = one.rejected()
        if rejected is None:
            continue
        left = rejected_once & rejected
        for _ in range(MAX_BLOCKERS):
            slot = int(left.argmax())
            if not left[slot]:
                break
            failures = one.evidence(workload, slot, index)
            domain = next((failure.domain for failure in failures if failure.peers), "")
            blocked = left & _in_domain(domain, slot, index)
            left &= ~blocked
            peers = tuple(dict.fromkeys(peer for failure in failures for peer in failure.peers))
            if peers:
                found[peers, domain] = found.get((peers, domain), 0) + int(blocked.sum())
        else:
            n_others += int(left.sum()) if peers else 0
    ordered = sorted(found.items(), key=lambda item: -item[1])
    n_others += sum(n for _, n in ordered[MAX_BLOCKERS:])
    others = (Blocker((), "", n_others),) if n_others else ()
    return (*(Blocker(peers, domain, n) for (peers, domain), n in ordered[:MAX_BLOCKERS]), *others)


def _in_domain(domain: str, slot: int, index: PlacementIndex) -> Mask:
    """The targets of a domain, `KEY=VALUE`; only this one if it is no domain of a single key."""
    where: Mask = np.zeros_like(index.slots.alive)
    where[slot] = True
    key, _, value = domain.partition("=")
    column = index.column(key)
    if value in column.by_value:
        where[column.slots_in(column.by_value[value])] = True
    return where
