"""
The effect of a failure on workloads: which needs break, where the scheduler places displaced pods, and what is missing.

Everything is simulated on the index and undone. Nothing is preempted: a displaced pod that does not fit is stranded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bayplan.auditing.survivability import BELOW_NEED, DOWN, FailureEvent, effect
from bayplan.auditing.workload_groups import ReplicaGroup
from bayplan.engine import equivalence, filtering
from bayplan.engine.engine import Engine
from bayplan.explaining import fixes as what_would_fit
from bayplan.explaining import shortages
from bayplan.explaining.fixes import ANY_EVICTION, EvictionPolicy, Fix
from bayplan.explaining.shortages import Amounts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT, SpreadContext
from bayplan.model.workloads import WorkloadKey, queue_order
from bayplan.placing import place_pods, what_if
from bayplan.placing.place_pods import PodPlacement

MAX_UNRANKED_REPLICAS = (
    8  # of one equivalence class, up to which evaluating all nodes for each is cheaper than ranking them
)


class StrandedPod(msgspec.Struct, frozen=True):
    """
    A displaced pod that is unschedulable on the remaining nodes: the scheduler's message, and what is missing.

    `missing` is the smallest shortage: that of node `nearest`, which only lacks resources. Both are empty if there is
    no such node; the message then has the other reasons. `too_small`: it could not hold the pod even without others.
    """

    key: WorkloadKey
    message: str
    nearest: str = ""
    missing: Amounts = ()
    too_small: bool = False
    fixes: list[Fix] = []


class Loss(msgspec.Struct, frozen=True):
    """
    The effect of an event. `gone` are the pods lost with their node: daemons, mirror pods, terminating pods.

    `broken` are the groups below their need right after the event, `still_broken` those that remain so after
    rescheduling. `shortage` is the sum of the requests of the stranded pods that only lack resources: room helps these.
    """

    event: FailureEvent
    gone: tuple[WorkloadKey, ...]
    placed: tuple[tuple[WorkloadKey, str], ...]
    stranded: tuple[StrandedPod, ...]
    broken: tuple[str, ...]
    still_broken: tuple[str, ...]
    shortage: Amounts = ()

    @property
    def n_displaced(self) -> int:
        return len(self.placed) + len(self.stranded)


def simulate_losses(
    events: Iterable[FailureEvent],
    engine: Engine,
    groups: Sequence[ReplicaGroup] = (),
    *,
    not_recreated: frozenset[WorkloadKey] = frozenset(),
    spread_context: SpreadContext = EMPTY_SPREAD_CONTEXT,
    policy: EvictionPolicy = ANY_EVICTION,
    max_fixes: int = 0,
) -> Iterator[Loss]:
    """
    The loss of each event, all from the same initial state; the arguments are those of `simulate_loss`.

    Fixes are searched for at most `max_fixes` stranded pods in total, one per loss.
    """
    on_node: dict[str, list[int]] = {}
    for position, one in enumerate(groups):
        for node in {member.node for member in one.group.members}:
            on_node.setdefault(node, []).append(position)
    for event in events:
        hit = sorted({position for node in event.nodes for position in on_node.get(node, ())})
        loss = simulate_loss(
            event,
            engine,
            [groups[i] for i in hit],
            not_recreated=not_recreated,
            spread_context=spread_context,
            policy=policy,
            max_fixes=max(0, min(max_fixes, 1)),
        )
        max_fixes -= bool(loss.stranded)
        yield loss


def simulate_loss(
    event: FailureEvent,
    engine: Engine,
    groups: Sequence[ReplicaGroup] = (),
    *,
    not_recreated: frozenset[WorkloadKey] = frozenset(),
    spread_context: SpreadContext = EMPTY_SPREAD_CONTEXT,
    policy: EvictionPolicy = ANY_EVICTION,
    max_fixes: int = 0,
) -> Loss:
    """
    Remove the event's nodes and place the pods that ran there again, in the order of the scheduling queue.

    `not_recreated` are the pods that no controller recreates on another node, such as mirror pods; pods of DaemonSets
    are recognised by their node affinity. `spread_context` spreads the recreated pods. Fixes are searched for at most
    `max_fixes` stranded pods, and move pods as the `policy` allows. The index is left unchanged.
    """
    broken = [one for one in groups if effect(one.group, event) in (DOWN, BELOW_NEED)]
    index = engine.index
    lost = sorted(node for node in event.nodes if node in index.slots.by_name)
    placed: list[tuple[WorkloadKey, str]] = []
    stranded: list[StrandedPod] = []
    shortage: Counter[str] = Counter()
    with index.tentatively():
        removed = what_if.remove_nodes(lost, index, spread_context, is_gone=lambda one: one.key in not_recreated)
        displaced, gone = [one for one, _ in removed.displaced], [one.key for one, _ in removed.gone]
        signatures = {workload.key: equivalence.signature(workload, index) for workload in displaced}
        n_equivalent = Counter(signatures.values())
        for workload in sorted(displaced, key=queue_order):
            ranked = n_equivalent[signatures[workload.key]] > MAX_UNRANKED_REPLICAS
            found = place_pods.place(workload, engine, ranked=ranked)
            if found.target:
                placed.append((workload.key, found.target))
            else:
                stranded.append(stranded_pod(found, engine, policy if len(stranded) < max_fixes else None))
                if stranded[-1].missing:
                    shortage.update(shortages.requests_of(workload))
        still = [one.group.name for one in broken if _below_need(one, index)]
    names = tuple(one.group.name for one in broken)
    return Loss(event, tuple(gone), tuple(placed), tuple(stranded), names, tuple(still), tuple(shortage.items()))


def missing_text(stranded: StrandedPod) -> str:
    """`500m cpu and 1Gi memory on n3`; empty if no node lacks only resources."""
    if not stranded.missing:
        return ""
    where = f"more than {stranded.nearest} can hold" if stranded.too_small else f"on {stranded.nearest}"
    return f"{shortages.amounts_text(stranded.missing)} {where}"


def stranded_pod(failed: PodPlacement, engine: Engine, policy: EvictionPolicy | None = None) -> StrandedPod:
    """Why a displaced pod could not be placed, and what is missing; with a policy also what would make it fit."""
    workload = failed.workload
    if workload.gates:
        return StrandedPod(workload.key, failed.message)
    verdicts = filtering.run(workload, engine)
    admitted = shortages.admitted_but_for_resources(verdicts, engine.index)
    requests = shortages.counted_requests(workload, verdicts)
    found = shortages.smallest_shortage(admitted, requests, engine.index)
    found_fixes = [] if policy is None else what_would_fit.find_fixes(workload, engine, policy)
    fixes = [msgspec.structs.replace(one, revisions=None) for one in found_fixes]  # an audit changes no manifests
    return StrandedPod(workload.key, failed.message, found.nearest, found.missing, found.too_small, fixes)


def _below_need(one: ReplicaGroup, index: PlacementIndex) -> bool:
    known = index.slots.by_name
    records = (index.records.get(key) for key in one.keys)
    left = sum(
        record is not None and not record.workload.terminating and record.shares[0][0] in known for record in records
    )
    return left < one.group.need
