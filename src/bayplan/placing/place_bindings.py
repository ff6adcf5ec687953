"""Place bindings one after another, each on an index that contains those before it. Knows nothing of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from bayplan import schedule_binding
from bayplan.assigning import estimating, failback, group_failover
from bayplan.assigning.candidates import NoClusterFit
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload
from bayplan.schedule_binding import FleetDecision

Shares = tuple[tuple[str, int], ...]


class BindingPlacement(msgspec.Struct, frozen=True):
    """
    Where one binding is after its scheduling attempt.

    If it is not `placed`, `reason` and `message` say why, and `shares` are what it keeps of its previous result.
    """

    workload: Workload
    placed: bool
    shares: Shares = ()
    group: str = ""
    reason: str = ""
    message: str = ""


def place_all(pending: Iterable[Workload], engine: FleetEngine, *, assumes: bool = True) -> Iterator[BindingPlacement]:
    """
    Place the bindings in the order given. `assumes`: each one reduces the capacity that the next ones see.

    A binding that requires a peer which is placed after it is tried again at the end, until no further one is placed.
    """
    n_placed, waiting = 0, list[tuple[BindingPlacement, int]]()
    for workload in pending:
        placement = place(workload, engine, assumes=assumes)
        n_placed += placement.placed
        if not placement.placed and placement.reason == NoClusterFit.reason and _looks_for_peers(workload):
            waiting.append((placement, n_placed))
        else:
            yield placement
    while any(n_before < n_placed for _, n_before in waiting):
        tried, waiting = waiting, []
        for placement, n_before in tried:
            if n_before < n_placed:
                placement = place(placement.workload, engine, assumes=assumes)  # noqa: PLW2901 (the newer attempt)
            n_placed += placement.placed
            if placement.placed:
                yield placement
            else:
                waiting.append((placement, n_placed))
    yield from (placement for placement, _ in waiting)


def may_find_a_peer(workload: Workload, engine: FleetEngine) -> bool:
    """Whether no cluster fits the binding now, and another one that is placed may let it fit."""
    return _looks_for_peers(workload) and schedule_binding.schedule(workload, engine).reason == NoClusterFit.reason


def _looks_for_peers(workload: Workload) -> bool:
    """Whether it is a new binding that requires affinity."""
    assert workload.binding is not None
    return not workload.binding.previous and bool(workload.needs.affinity.required)


def place(workload: Workload, engine: FleetEngine, *, assumes: bool = True) -> BindingPlacement:
    """Decide which clusters one binding is placed on and put it there."""
    index = engine.index
    placed = index.records.get(workload.key)
    before = () if placed is None else placed.shares
    with group_failover.without_workload(workload, index):
        decision = schedule_binding.schedule(workload, engine)
    shares = settle(workload, decision, index)
    if not decision.placed:
        message = "; ".join(decision.errors)
        return BindingPlacement(workload, False, shares, decision.observed, decision.reason, message)
    if assumes:
        assume(workload, shares, dict(before), index)
    return BindingPlacement(workload, True, shares, decision.observed)


def settle(workload: Workload, decision: FleetDecision, index: PlacementIndex) -> Shares:
    """
    Put a binding where a decision places it, and return where it is then.

    Without a cluster that fits, Karmada removes the previous result; after any other failure the result stays.
    """
    record = index.records.get(workload.key)
    before = () if record is None else record.shares
    shares = decision.shares if decision.placed else () if decision.reason == NoClusterFit.reason else before
    if shares != before or decision.placed:
        _replace(workload, decision, shares, index)
    return shares


def place_again(workload: Workload, engine: FleetEngine) -> BindingPlacement:
    """Place a binding as if it had never been placed, as its rescheduling would."""
    return place(failback.as_unplaced(workload), engine)


def _replace(workload: Workload, decision: FleetDecision, shares: Shares, index: PlacementIndex) -> None:
    assert workload.binding is not None
    if workload.key in index.records:
        index.remove(workload.key)
    if shares:
        binding = msgspec.structs.replace(workload.binding, previous=shares, observed=decision.observed, fresh=False)
        index.add_shares(msgspec.structs.replace(workload, binding=binding), shares)


def assume(workload: Workload, shares: Shares, before: Mapping[str, int], index: PlacementIndex) -> None:
    """Reduce the capacity of the clusters; released capacity is free only once the cluster reports it."""
    assert workload.binding is not None
    for name, replicas in shares:
        slot = index.slots.by_name.get(name)
        target = None if slot is None else index.slots.at(slot)
        if target is None or target.cluster is None:
            continue
        load = estimating.load_of(workload.binding, replicas, before.get(name))
        facts = estimating.with_load(target.cluster, load)
        if facts is not target.cluster:
            index.update_target(msgspec.structs.replace(target, cluster=facts))


def put_on(index: PlacementIndex, workload: Workload, shares: list[tuple[str, int]], draining: tuple[str, ...]) -> None:
    """Add a binding where it is placed; with `draining_copies_count`, copies that still drain are added too."""
    if shares:
        index.add_shares(workload, shares)
    leaving = [(name, 0) for name in dict.fromkeys(draining) if name not in dict(shares)]
    if leaving and index.semantics.draining_copies_count:
        index.add_shares(group_failover.draining_copy(workload), leaving)
