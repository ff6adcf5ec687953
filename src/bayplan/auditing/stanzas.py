"""
A stanza for a pod template that spreads the replicas of a workload, tried on the index before it is proposed.

Knows nothing of layouts: a topology key is a label of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.auditing.layout import ComponentInstance
from bayplan.auditing.survivability import InstanceGroup, domains_of_events, group_tolerance, label_events
from bayplan.auditing.workload_groups import ReplicaGroup
from bayplan.auditing.workload_loss import StrandedPod, stranded_pod
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT, SpreadContext
from bayplan.model import labels as label_model
from bayplan.model.labels import Selector
from bayplan.model.terms import REGION, ZONE, PodTerm
from bayplan.model.workloads import Needs, SpreadConstraint, SpreadRequirements, Workload, WorkloadKey, queue_order
from bayplan.placing import place_pods, recreating

# Labels that controllers and binding write; they differ between revisions, replicas or nodes.
VOLATILE_LABELS = frozenset({
    "pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index", ZONE, REGION,
})  # fmt: skip
SPREAD, ANTI_AFFINITY, SOFT_SPREAD = "spread", "anti-affinity", "soft spread"


def group_on_index(
    name: str, keys: Sequence[WorkloadKey], index: PlacementIndex, *, at_least: int = 1
) -> InstanceGroup:
    """A group of workloads on their current nodes; terminating and unplaced ones are unhealthy members."""
    members = []
    for key in keys:
        record = index.records.get(key)
        node = record.shares[0][0] if record is not None and record.shares else ""
        healthy = record is not None and not record.workload.terminating and node in index.slots.by_name
        members.append(ComponentInstance(node, healthy))
    return InstanceGroup(name, tuple(members), at_least=at_least)


class Stanza(msgspec.Struct, frozen=True):
    """
    A stanza for the pod template that spreads replicas, as a strategic merge patch of their controller.

    It `works` if the engine can place all replicas again with it and no domain is a single point of failure. Otherwise
    `single_points` and `stranded` are the remaining problems.
    """

    group: str
    kind: str
    topology_key: str
    patch: dict[str, Any]
    works: bool
    placed: tuple[tuple[WorkloadKey, str], ...]
    single_points: tuple[str, ...]
    stranded: tuple[StrandedPod, ...] = ()


def find_stanza(
    one: ReplicaGroup,
    topology_key: str,
    engine: Engine,
    context: SpreadContext = EMPTY_SPREAD_CONTEXT,
    *,
    selected: Mapping[str, str] | None = None,
    kinds: Sequence[str] = (SPREAD, ANTI_AFFINITY, SOFT_SPREAD),
) -> Stanza | None:
    """
    The first of the kinds of stanza that leaves no single point of failure, else the first one that was tried.

    `context` spreads replicas to which the stanza gives no constraint. `selected` are the labels of the selector; by
    default those that all replicas have. None if there are none, or if spreading cannot help because no replica may be
    lost.
    """
    index = engine.index
    workloads = [index.records[key].workload for key in one.keys if key in index.records]
    labels = dict(_shared_labels(workloads) if selected is None else selected)
    if not labels or len(workloads) - one.group.need < 1:
        return None
    tried: list[Stanza] = []
    for candidate in sorted(
        _candidates(labels, topology_key, workloads, kinds), key=lambda candidate: kinds.index(candidate.kind)
    ):
        attempt = _attempt(candidate, one, topology_key, engine, context)
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
    # A patch replaces the whole list of required terms, so it is proposed only where there is none.
    if ANTI_AFFINITY in kinds and not any(workload.needs.affinity.anti_required for workload in workloads):
        term = {"topologyKey": key, "labelSelector": written}
        required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield _Candidate(
            ANTI_AFFINITY, {"affinity": required}, lambda needs: _with_anti_affinity(needs, PodTerm(selector, key))
        )
    if SOFT_SPREAD in kinds:
        yield _spread(key, selector, written, hard=False)


def _spread(key: str, selector: Selector, written: dict[str, Any], *, hard: bool) -> _Candidate:
    constraint = SpreadConstraint(1, key, hard, selector)

    def edit(needs: Needs) -> Needs:
        # A patch identifies the entry to replace by its topology key.
        others = tuple(c for c in needs.spread.constraints if c.topology_key != key)
        return msgspec.structs.replace(needs, spread=SpreadRequirements((*others, constraint)))

    unsatisfiable = "DoNotSchedule" if hard else "ScheduleAnyway"
    entry = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": unsatisfiable, "labelSelector": written}
    return _Candidate(SPREAD if hard else SOFT_SPREAD, {"topologySpreadConstraints": [entry]}, edit)


def _with_anti_affinity(needs: Needs, term: PodTerm) -> Needs:
    return msgspec.structs.replace(needs, affinity=msgspec.structs.replace(needs.affinity, anti_required=(term,)))


def _attempt(candidate: _Candidate, one: ReplicaGroup, key: str, engine: Engine, context: SpreadContext) -> Stanza:
    """Place all replicas again with the stanza, as in a rollout, and judge the result."""
    index = engine.index
    events = label_events(key, {name: index.slots.at(slot).labels for name, slot in index.slots.by_name.items()})
    placed: list[tuple[WorkloadKey, str]] = []
    stranded: list[StrandedPod] = []
    with index.tentatively():
        recreated = []
        for name in one.keys:
            if name not in index.records:
                continue
            workload = recreating.as_recreated(index.records[name], index, context)
            index.remove(name)
            recreated.append(msgspec.structs.replace(workload, needs=candidate.edit(workload.needs)))
        for workload in sorted(recreated, key=queue_order):
            found = place_pods.place(workload, engine, ranked=False)
            if found.target:
                placed.append((workload.key, found.target))
            else:
                stranded.append(stranded_pod(found, engine))
        after = group_on_index(one.group.name, one.keys, index, at_least=one.group.need)
    tolerance = group_tolerance(after, domains_of_events(events))
    works = not stranded and not tolerance.unknown and after.meets_need and tolerance.tolerance >= 1
    patch = {"spec": {"template": {"spec": candidate.pod_spec}}}
    return Stanza(
        one.group.name, candidate.kind, key, patch, works, tuple(placed), tolerance.single_points, tuple(stranded)
    )


def _shared_labels(workloads: Sequence[Workload]) -> dict[str, str]:
    """The labels that all replicas have and keep through a rollout."""
    first, *others = [workload.labels for workload in workloads] or [{}]
    return {
        key: value
        for key, value in sorted(first.items())
        if key not in VOLATILE_LABELS and all(labels.get(key) == value for labels in others)
    }
