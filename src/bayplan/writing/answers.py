"""Decisions as the answers of `decide`, in the format of docs/reference/machine-contract.md."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine.filtering import Verdicts
from bayplan.engine.scoring import Ranking
from bayplan.explaining import explanation, fit_error
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import StatusCode
from bayplan.model.workloads import Workload
from bayplan.preempting.preemption import Preemption
from bayplan.schedule_binding import FleetDecision
from bayplan.schedule_pod import Decision


def pod_answer(name: str, decision: Decision, index: PlacementIndex, *, pre_score_fault: str = "") -> dict[str, Any]:
    """
    The answer to a question of `decide pods`: the verdict on every node, the best nodes, and the message.

    With a fault, kube-scheduler fails once it is about to score nodes, and decides nothing.
    """
    if decision.placed and pre_score_fault:
        error = f'running PreScore plugin "NodeAffinity": {pre_score_fault}'
        return {"name": name, "message": "", "nodes": {}, "best": [], "error": error}
    verdicts, ranking = decision.verdicts, decision.ranking
    nodes = {target: _node(verdicts, ranking, slot) for target, slot in sorted(index.slots.by_name.items())}
    best = ranking.best(verdicts.feasible, index).tolist() if ranking is not None else []
    return {
        "name": name,
        "message": "" if decision.placed else fit_error.sentence(verdicts, index),
        "nodes": nodes,
        "best": sorted(index.slots.at(slot).name for slot in best),
    }


def _node(verdicts: Verdicts, ranking: Ranking | None, slot: int) -> dict[str, Any]:
    if verdicts.feasible[slot] and ranking is not None:
        scores = {rule: int(weighted[slot]) for rule, weighted in ranking.by_rule.items()}
        return {"code": StatusCode.SUCCESS.value, "total": int(ranking.totals[slot]), "scores": scores}
    if verdicts.pre_filter_rejection is not None:
        rule, reason = verdicts.pre_filter_rejection
        return {"code": reason.status.value, "plugin": rule.name if rule is not None else "", "reasons": [reason.text]}
    if verdicts.excluded is not None and verdicts.excluded[slot]:
        return {"code": StatusCode.EXCLUDED.value}
    plugin, reasons = fit_error.reasons_at(verdicts, slot)
    return {"code": reasons[0].status.value, "plugin": plugin, "reasons": [reason.text for reason in reasons]}


def preemption_answer(name: str, preemption: Preemption, index: PlacementIndex) -> dict[str, Any]:
    """The answer to a question of `decide preemption`: the nominated node and its victims, or the message."""
    return {
        "name": name,
        "nominated": preemption.target,
        # kube-scheduler deletes no victim that is terminating already.
        "victims": [key for key in preemption.victims if not index.records[key].workload.terminating],
        "message": preemption.message,
    }


def fleet_answer(name: str, decision: FleetDecision, workload: Workload, engine: FleetEngine) -> dict[str, Any]:
    """The answer to a question of `decide fleet`."""
    return {
        "name": name,
        "observedAffinityName": decision.observed,
        "clusters": [{"name": cluster, "replicas": replicas} for cluster, replicas in decision.shares],
        "reason": decision.reason,
        "errors": list(decision.errors),
        "verdicts": _fleet_verdicts(decision, workload, engine),
    }


def _fleet_verdicts(decision: FleetDecision, workload: Workload, engine: FleetEngine) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: {"fits": not failures, "failures": msgspec.to_builtins(failures)}
        for name, failures in sorted(explanation.cluster_failures(decision, workload, engine).items())
    }
    for candidate in decision.ranked:
        found[candidate.name].update(tier=candidate.tier, score=candidate.score, available=candidate.available)
    return found
