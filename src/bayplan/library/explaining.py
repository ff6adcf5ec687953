"""
One workload explained in a state: where it would be placed by the queue, or what keeps it from every target.

Finds the workload, places what is before it, and asks for the explanation; knows no files and no formats.
"""

from __future__ import annotations

import collections
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.library.workload_names import ANY_KIND, WorkloadName, pod_suffixes

if TYPE_CHECKING:
    from bayplan.controllers.desired_state import ObjectKey
    from bayplan.engine.engine import EngineOf
    from bayplan.explaining.explanation import Explanation
    from bayplan.explaining.fixes import EvictionPolicy
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.workloads import Workload, WorkloadKey
    from bayplan.placing.place_pods import PodPlacement
    from bayplan.placing.what_if import BlockedEviction
    from bayplan.preempting.preemption import Preemption
    from bayplan.reading.cluster import LoadedCluster
    from bayplan.reading.fleet import LoadedFleet


class ExplainedWorkload(msgspec.Struct, frozen=True):
    """The explanation, and where the workload runs now; empty if it is pending. `note` says if it is not scheduled."""

    explanation: Explanation
    current: str = ""
    note: str = ""


def explain_pod(
    asked: WorkloadName,
    cluster: LoadedCluster,
    engine_of: EngineOf,
    is_included: Callable[[Workload], bool],
    *,
    alone: bool,
    preempts: bool,
) -> ExplainedWorkload:
    """The explanation of the requested pod; raises InputError if there is none, or if there are several."""
    from bayplan.explaining import explanation
    from bayplan.mapping import pods
    from bayplan.placing import recreating

    def is_asked(workload: Workload) -> bool:
        return asked.matches_pod(workload) and is_included(workload)

    pending = [workload for workload in cluster.pending if is_asked(workload)]
    refused = [one for one in cluster.refused if is_asked(pods.workload_of(one.pod))]
    running = [record for record in cluster.index.records.values() if is_asked(record.workload)]
    is_pod = asked.kind in (ANY_KIND, "replicaset")
    updated = [
        one for one in cluster.rollouts if asked.names(one.key) or (is_pod and any(map(asked.matches_name, one.pods)))
    ]
    namespaces = {one.namespace for one in pending} | {one.workload.namespace for one in running}
    _check_one_namespace(namespaces | {one.pod.metadata.namespace for one in refused}, str(asked))
    if pending or refused or updated or cluster.draining or cluster.gone:
        if alone:
            cluster.pending, cluster.rollouts = pending, updated
        found = _explain_placed(is_asked, pending, cluster, engine_of, preempts=preempts)
        if found is not None:
            return ExplainedWorkload(found)
    if running:
        first = min(running, key=lambda one: one.workload.key)  # the order of the index is that of the last changes
        recreated = recreating.as_recreated(first, cluster.index, cluster.spread_context)
        explained = explanation.explain(recreated, engine_of(recreated), policy=cluster.eviction_policy())
        return ExplainedWorkload(explained, first.shares[0][0])
    raise InputError(f"no pod of {asked} is in the input{_advice(asked, cluster)}")


def _explain_placed(
    is_asked: Callable[[Workload], bool],
    pending: Sequence[Workload],
    cluster: LoadedCluster,
    engine_of: EngineOf,
    *,
    preempts: bool,
) -> Explanation | None:
    """The explanation of the first requested pod that is unschedulable, else of the first requested pod, if any."""
    from bayplan.explaining import explanation
    from bayplan.placing import place_cluster
    from bayplan.placing.place_cluster import PlacingOptions

    preempting: list[Explanation] = []
    placed_first: list[Explanation] = []

    def explain_preemption(workload: Workload, found: Preemption) -> None:
        """Before its victims leave, for the first requested pod that preempts."""
        if not preempting and is_asked(workload):
            now = explanation.explain(workload, engine_of(workload), policy=cluster.eviction_policy())
            preempting.append(msgspec.structs.replace(now, nominated=found.target, victims=found.victims))

    def are_placed(placed: Mapping[WorkloadKey, PodPlacement]) -> bool:
        """What comes after them in the queue does not concern them; nor do the others concern the one placed first."""
        found = [placed[one.key] for one in pending if one.key in placed and placed[one.key].target]
        if found and not placed_first:
            placed_first.append(explanation_of(found[0], engine_of, cluster.eviction_policy()))
        return len(found) == len(pending)

    chosen = PlacingOptions(preempts=preempts, on_preemption=explain_preemption, until=are_placed)
    answer = place_cluster.place(cluster, engine_of, chosen)
    requested = [one for one in answer.placements if is_asked(one.workload)]
    if answer.blocked and all(one.target for one in requested):
        stays = _explain_blocked(is_asked, answer.blocked, cluster.index)
        if stays is not None:
            return stays
    for placement in sorted(requested, key=lambda one: bool(one.target)):
        if placement.target and preempting:
            return preempting[0]
        if placed_first and (placement.workload.key, placement.target) == (
            placed_first[0].workload,
            placed_first[0].target,
        ):
            return placed_first[0]
        return explanation_of(placement, engine_of, cluster.eviction_policy())
    return None


def _explain_blocked(
    is_asked: Callable[[Workload], bool], blocked: Sequence[BlockedEviction], index: PlacementIndex
) -> Explanation | None:
    """Why a requested pod stays on a node to drain, if one does."""
    from bayplan.explaining import explanation

    for one in blocked:
        here = [
            key for key in index.workloads_on(index.slots.by_name[one.node]) if is_asked(index.records[key].workload)
        ]
        if here:
            stays = one.pod if one.pod in here else min(here)
            why = one.why if stays == one.pod else f"{one.pod}: {one.why}"
            message = f"{stays} stays on {one.node}, which cannot be drained: {why}"
            return explanation.Explanation(stays, "", message, [], [])
    return None


def explanation_of(placement: PodPlacement, engine_of: EngineOf, policy: EvictionPolicy) -> Explanation:
    from bayplan.explaining import explanation
    from bayplan.writing import placements

    workload = placement.workload
    if placement.refused or placement.lost:
        advice = explanation.NOT_CREATED if placement.refused else ""
        return explanation.Explanation(workload.key, "", placements.message_of(placement), [], [], advice=advice)
    if placement.group_wait is not None:
        return explanation.explain_member(workload.key, placement.group_wait, engine_of(workload), policy=policy)
    found = explanation.explain(workload, engine_of(workload), policy=policy)
    if placement.target:
        return found
    # A pod with scheduling gates may fit, but it is not scheduled, and one that is not judged may not fit.
    advice = explanation.GATED if workload.gates and found.target else ""
    return msgspec.structs.replace(found, target="", message=placement.message, advice=advice)


def warnings_of(key: str, cluster: LoadedCluster) -> tuple[Fault, ...]:
    """The rules of a pod that have no effect in the cluster."""
    if not cluster.index.slots.by_name:
        return ()
    from bayplan.placing import ineffective

    everything = (*cluster.pending, *(record.workload for record in cluster.index.records.values()))
    return tuple(ineffective.findings((one for one in everything if one.key == key), cluster, cluster.made_for))


def _check_one_namespace(namespaces: set[str], asked: str) -> None:
    if len(namespaces) > 1:
        raise InputError(f"{asked} is in several namespaces ({', '.join(sorted(namespaces))}): choose one with -n")


def _advice(asked: WorkloadName, cluster: LoadedCluster) -> str:
    """The end of the message: the same name outside the scope, another kind with the name, or similar names."""
    workloads = [*cluster.pending, *(record.workload for record in cluster.index.records.values())]
    anywhere = msgspec.structs.replace(asked, namespace="")
    elsewhere = sorted({one.key for one in workloads if anywhere.matches_pod(one)})
    if elsewhere:
        shown = ", ".join(elsewhere[:3]) + (" …" if len(elsewhere) > 3 else "")
        return f" in the requested scope; there is {shown}"
    names = {one.name for one in workloads}
    others = [WorkloadName(kind, asked.name) for kind in pod_suffixes()]
    same_name = [str(other) for other in others if any(map(other.matches_pod, workloads))]
    near = same_name or difflib.get_close_matches(asked.name, sorted(names), n=3)
    return f", did you mean {' or '.join(near)}?" if near else ""


def explain_binding(
    asked: WorkloadName, fleet: LoadedFleet, is_included: Callable[[Workload], bool], *, alone: bool
) -> ExplainedWorkload:
    """The explanation of the requested binding; raises InputError if there is none, or if there are several."""
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.explaining import explanation
    from bayplan.placing import fleet_fixes, place_bindings
    from bayplan.rules import fleet_profile

    engine = FleetEngine(fleet.index, fleet_profile.fleet_rules())
    placed = {key: record.shares for key, record in fleet.index.records.items()}
    idle = {workload.key: (workload, why) for workload, why in fleet.idle}
    running = (record.workload for record in fleet.index.records.values())
    known = {w.key: w for w in (*(w for w, _ in idle.values()), *running, *fleet.pending)}
    workload = _only([w for w in known.values() if is_included(w) and asked.matches_binding(w)], asked, known)
    queue = [one.key for one in fleet.pending]
    place = queue.index(workload.key) if not alone and workload.key in queue else 0
    collections.deque(place_bindings.place_all(fleet.pending[:place], engine), maxlen=0)
    if not alone and workload.key in queue and place_bindings.may_find_a_peer(workload, engine):
        collections.deque(place_bindings.place_all(fleet.pending[place + 1 :], engine), maxlen=0)
    current = explanation.listed_clusters(placed.get(workload.key, ()))
    explained = explanation.explain_binding(workload, engine)
    explained = msgspec.structs.replace(explained, fixes=fleet_fixes.find(workload, engine))
    _, why = idle.get(workload.key, (workload, ""))
    note = (
        f"{workload.key.removeprefix('/')} is not scheduled, because {why}; explained is what would be otherwise"
        if why
        else ""
    )
    return ExplainedWorkload(explained, current, note)


def objects_of(key: WorkloadKey, fleet: LoadedFleet) -> tuple[ObjectKey, ObjectKey]:
    """What has the placement of a binding, its policy or else itself, and its resource template."""
    from bayplan.controllers import policy_claims
    from bayplan.controllers.desired_state import ObjectKey

    binding = fleet.bindings[key]
    meta, resource = binding.metadata, binding.spec.resource
    # The placement of a binding that a policy has claimed is that of the policy, which the input may lack.
    itself = ObjectKey("" if policy_claims.is_claimed(binding) else binding.kind, meta.namespace, meta.name)
    return fleet.policies.get(key, itself), ObjectKey(resource.kind, resource.namespace, resource.name)


def _only(matching: Sequence[Workload], asked: WorkloadName, known: dict[WorkloadKey, Workload]) -> Workload:
    shown = asked.name if asked.kind == ANY_KIND else f"{asked.kind}/{asked.name}"
    if not matching:
        names = {f"{w.binding.kind.lower()}/{w.binding.name}" for w in known.values() if w.binding}
        near = difflib.get_close_matches(shown, names, n=3)
        advice = f", did you mean {' or '.join(near)}?" if near else ""
        raise InputError(f"no binding of {shown} is in the input or would be created from it{advice}")
    _check_one_namespace({w.namespace for w in matching}, shown)
    if len(matching) > 1:
        listed = ", ".join(sorted(w.name for w in matching))
        raise InputError(f"{shown} matches several bindings ({listed}): give the kind too")
    return matching[0]
