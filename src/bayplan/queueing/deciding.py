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
from bayplan.model.workloads import Workload
from bayplan.preempting.preemption_case import preemptor_of
from bayplan.queueing import nominations
from bayplan.queueing.nominations import Nominations
from bayplan.schedule_pod import Decision

MAX_BLOCKERS_NAMED = 3  # pods named in an event; `bayplan explain` lists all


class NodeChoice(msgspec.Struct, frozen=True):
    """`slot` is -1 if no node is feasible."""

    slot: int
    total: int = 0


class Diagnosis(msgspec.Struct, frozen=True):
    """Why no node is feasible: the message, and the names of pods that block the placement."""

    message: str
    blockers: tuple[str, ...] = ()


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


def blockers(verdicts: Verdicts, workload: Workload, index: PlacementIndex) -> tuple[str, ...]:
    """Return pods that block the placement on nodes which a single rule rejects."""
    if verdicts.pre_filter_rejection is not None:
        return ()
    rejections = np.zeros(index.slots.capacity, np.int64)
    for one in verdicts.results:
        rejected = one.rejected()
        if rejected is not None:
            rejections += rejected
    rejected_once = index.slots.alive & (rejections == 1)
    peers: dict[str, None] = {}
    for one in verdicts.results:
        rejected = one.rejected()
        if rejected is None:
            continue
        for slot in np.flatnonzero(rejected_once & rejected)[:MAX_BLOCKERS_NAMED].tolist():
            for failure in one.evidence(workload, slot, index):
                peers.update(dict.fromkeys(failure.peers))
    return tuple(peers)[:MAX_BLOCKERS_NAMED]
