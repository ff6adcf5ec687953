"""
One decision of the running scheduler: where a pod goes, leaving the room that was promised to others.

The same line as everywhere (`schedule_pod.py`); only the promises are added here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from bayplan import schedule_pod
from bayplan.assigning import best_target
from bayplan.engine import filtering, scoring
from bayplan.engine.filtering import Verdicts
from bayplan.explaining import fit_error
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload
from bayplan.queueing import nominations
from bayplan.queueing.nominations import Nominations
from bayplan.rules.rule import Rule

MAX_BLOCKERS_NAMED = 3  # pods named in an event; more belong into `bayplan explain`


class NodeChoice(msgspec.Struct, frozen=True):
    """`slot` is -1 if the pod fits nowhere."""

    slot: int
    total: int = 0


class Diagnosis(msgspec.Struct, frozen=True):
    """Why a pod fits nowhere: the sentence, the rules behind it, and pods that stand in the way, by name."""

    message: str
    rules: tuple[str, ...]
    blockers: tuple[str, ...] = ()


def choose(workload: Workload, index: PlacementIndex, rules: Sequence[Rule], nominated: Nominations) -> NodeChoice:
    """Where the pod goes. A node promised to it is taken without looking at others, as kube-scheduler does."""
    nominations = nominated.beside(workload) if len(nominated) else []
    own = index.slots.by_name.get(nominated.target_of(workload.key), -1)
    if not nominations and own < 0:
        return NodeChoice(*schedule_pod.choose(workload, index, rules))
    verdicts = _filter_beside_nominated(workload, index, rules, nominations)
    if not verdicts.feasible.any():
        return NodeChoice(-1)
    totals = scoring.run(verdicts, index).totals
    if own < 0 or not verdicts.feasible[own]:
        own = best_target.pick(best_target.best(totals, verdicts.feasible), index)
    return NodeChoice(own, int(totals[own]))


def _filter_beside_nominated(
    workload: Workload, index: PlacementIndex, rules: Sequence[Rule], nominated: Sequence[tuple[Workload, str]]
) -> Verdicts:
    """What fits with the promised pods on their nodes and without them: nobody knows yet whether they will come."""
    with nominations.kept(nominated, index):
        allowed = filtering.run(rules, workload, index).feasible.copy()
    verdicts = filtering.run(rules, workload, index)
    return msgspec.structs.replace(verdicts, feasible=verdicts.feasible & allowed)


def diagnose(workload: Workload, index: PlacementIndex, rules: Sequence[Rule], nominated: Nominations) -> Diagnosis:
    """Why the pod fits nowhere, told as kube-scheduler would, with who stands in the way."""
    with nominations.kept(nominated.beside(workload), index):
        verdicts = filtering.run(rules, workload, index)
        return Diagnosis(
            fit_error.sentence(verdicts, index), _rejecting_rules(verdicts), _blockers(verdicts, workload, index)
        )


def _rejecting_rules(verdicts: Verdicts) -> tuple[str, ...]:
    """The rules that are against at least one node."""
    if verdicts.refusal is not None:
        return (verdicts.refusal[0].name,)
    found = [one for one in verdicts.results if (refused := one.rejected()) is not None and refused.any()]
    return tuple(one.rule.name for one in found)


def _blockers(verdicts: Verdicts, workload: Workload, index: PlacementIndex) -> tuple[str, ...]:
    """Pods that stand in the way where nothing else does: on nodes that one rule alone refuses."""
    if verdicts.refusal is not None:
        return ()
    refusals = np.zeros(index.slots.capacity, np.int64)
    for one in verdicts.results:
        refused = one.rejected()
        if refused is not None:
            refusals += refused
    nearly = index.slots.alive & (refusals == 1)
    peers: dict[str, None] = {}
    for one in verdicts.results:
        refused = one.rejected()
        if refused is None:
            continue
        for slot in np.flatnonzero(nearly & refused)[:MAX_BLOCKERS_NAMED].tolist():
            for failure in one.rule.evidence(one.state, workload, slot, index):
                peers.update(dict.fromkeys(failure.peers))
    return tuple(peers)[:MAX_BLOCKERS_NAMED]
