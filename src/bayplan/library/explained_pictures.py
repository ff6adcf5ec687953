"""
Why a pod is where it is, as a page draws it: the verdict of every rule on every node, raw and weighted scores, peers.

The scores are computed again on the index as the explanation has left it; if they do not agree, there are no raw ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.library import reading as states
from bayplan.library.workload_names import ANY_KIND, WorkloadName

if TYPE_CHECKING:
    from bayplan.engine.engine import EngineOf
    from bayplan.explaining.explanation import Explanation
    from bayplan.library.inputs import Supposed
    from bayplan.library.reading import Reading
    from bayplan.model.workloads import Workload, WorkloadKey
    from bayplan.reading.cluster import LoadedCluster


def explained(reading: Reading, supposed: Supposed, namespace: str, name: str) -> dict[str, Any]:
    """The explanation of one pod after what is supposed, as `Cluster.explain` finds it, with scores and peers."""
    from bayplan.library import explaining
    from bayplan.writing import explanations

    asked = WorkloadName(ANY_KIND, name, namespace)
    with reading.asked():
        loaded = reading.loaded()
        assert not hasattr(loaded, "bindings"), "the caller has looked"
        reading.moved_to(object(), undoable=not loaded.rollouts)  # type: ignore[union-attr]
        engine_of = reading.engine_of()
        cluster = states.supposing(loaded, supposed, engine_of)  # type: ignore[arg-type]
        found = explaining.explain_pod(asked, cluster, engine_of, lambda _: True, alone=False, preempts=True)
        warnings = explaining.warnings_of(found.explanation.workload, cluster)
        document = explanations.document(found.explanation, current=found.current)
        document["noFix"] = found.explanation.searched and not found.explanation.fixes
        workload = _workload(found.explanation.workload, cluster)
        document["warnings"] = [str(one) for one in warnings]
        document["rules"], document["relations"] = [], []
        if workload is not None:
            document |= _evidence(workload, found.explanation, cluster, engine_of)
    return document


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
    """Each rule that scores, with its weight and its raw scores by node; none if they are not those explained."""
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
            raw = {each.name: int(one.evaluation.raw[slots[each.name]]) for each in feasible}
            found.append({"rule": one.rule.name, "weight": one.rule.weight, "raw": raw})
    return found
