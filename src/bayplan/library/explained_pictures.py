"""
Why a pod is where it is, as a page draws it: the verdict of every rule on every node, raw and weighted scores, peers.

The scores are computed again on the index as the explanation has left it; if they do not agree, there are no raw ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import InputError
from bayplan.library import reading as states
from bayplan.library.inputs import shows_nothing
from bayplan.library.place_run import PlaceRequest, PlaceRun
from bayplan.library.workload_names import ANY_KIND, WorkloadName
from bayplan.reading.cluster import LoadedCluster

if TYPE_CHECKING:
    from bayplan.engine.engine import EngineOf
    from bayplan.explaining.explanation import Explanation
    from bayplan.library.explaining import ExplainedWorkload
    from bayplan.library.inputs import Supposed
    from bayplan.library.reading import Reading
    from bayplan.model.workloads import Workload, WorkloadKey


def explained(reading: Reading, supposed: Supposed, namespace: str, name: str) -> dict[str, Any]:
    """The explanation of one pod after what is supposed, as `Cluster.explain` finds it, with scores and peers."""
    from bayplan.library import explaining
    from bayplan.writing import explanations

    with reading.asked():
        loaded = reading.loaded()
        assert isinstance(loaded, LoadedCluster), "the caller has looked"
        reading.moved_to(object(), undoable=not loaded.rollouts)
        engine_of = reading.engine_of()
        cluster = states.supposing(loaded, supposed, engine_of)
        asked = WorkloadName(ANY_KIND, name, namespace)
        is_updated = bool(cluster.rollouts)
        try:
            found = explaining.explain_pod(asked, cluster, engine_of, lambda _: True, alone=False, preempts=True)
        except InputError:
            if not is_updated:
                raise
            found, cluster = _of_rollout(reading, supposed, f"{namespace}/{name}")
            engine_of = reading.engine_of()
        warnings = explaining.warnings_of(found.explanation.workload, cluster)
        workload = _workload(found.explanation.workload, cluster)
        evidence = {} if workload is None else _evidence(workload, found.explanation, cluster, engine_of)
    return {
        "explanation": explanations.document(found.explanation, current=found.current),
        "noFix": found.explanation.searched and not found.explanation.fixes,
        "warnings": [str(one) for one in warnings],
        "notes": [],
        "rules": [],
        "relations": [],
        **evidence,
    }


def _of_rollout(reading: Reading, supposed: Supposed, key: str) -> tuple[ExplainedWorkload, LoadedCluster]:
    """The explanation of a pod that a rollout creates, in the state at its end; raises InputError if there is none."""
    from bayplan.library.explaining import ExplainedWorkload

    run = PlaceRun(reading, PlaceRequest(supposed=supposed))
    placements = run.place(run.begin(shows_nothing), shows_nothing).placements
    placement = next((one for one in placements if one.workload.key == key), None)
    if placement is None:
        raise InputError(f"no pod {key} is in the input, and no rollout creates it")
    return ExplainedWorkload(run.explain(placement)), run.cluster


def _workload(key: WorkloadKey, cluster: LoadedCluster) -> Workload | None:
    """The pod as it was explained."""
    from bayplan.placing import recreating

    record = cluster.index.records.get(key)
    if record is not None:
        return recreating.as_recreated(record, cluster.index, cluster.spread_context)
    return next((one for one in cluster.pending if one.key == key), None)


def _evidence(
    workload: Workload, explanation: Explanation, cluster: LoadedCluster, engine_of: EngineOf
) -> dict[str, Any]:
    from bayplan.library import peers

    index = cluster.index
    with index.without(workload.key):
        relations = [msgspec.to_builtins(one) for one in peers.relations(workload, index)]
        rules = [] if explanation.group_wait is not None else _rules(workload, explanation, engine_of)
    return {"rules": rules, "relations": relations}


def _rules(workload: Workload, explanation: Explanation, engine_of: EngineOf) -> list[dict[str, Any]]:
    """
    Each rule that scores, with its weight and its raw scores by node; none if they are not those explained.

    `rule` is its id, as failures have it, and `name` its name in scores, which is kube-scheduler's.
    """
    from bayplan import schedule_pod

    decision = schedule_pod.schedule(workload, engine_of(workload))
    if decision.ranking is None:
        return []
    slots = engine_of(workload).index.slots.by_name
    feasible = [one for one in explanation.targets if one.fits and one.name in slots]
    by_rule = decision.ranking.by_rule
    if any(one.scores != {rule: int(all_of[slots[one.name]]) for rule, all_of in by_rule.items()} for one in feasible):
        return []
    found = []
    for one in decision.verdicts.results:
        if one.rule.name in by_rule and one.evaluation.raw is not None:
            # Of shape (..., capacity): a number for each of several constraints, or one.
            raw = {each.name: one.evaluation.raw[..., slots[each.name]].tolist() for each in feasible}
            found.append({"rule": one.rule.id, "name": one.rule.name, "weight": one.rule.weight, "raw": raw})
    return found
