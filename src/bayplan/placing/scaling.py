"""
One binding with other numbers of replicas: step after step as a workload grows and shrinks, and how many fit at most.

Other pending bindings are left out. Released capacity is free again at the next step, as clusters report it by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bayplan import schedule_binding
from bayplan.assigning import estimating, group_failover
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.assigning.go_numbers import MAX_INT32
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import ClusterFacts
from bayplan.model.workloads import Workload
from bayplan.placing import place_bindings
from bayplan.placing.place_bindings import BindingPlacement


class MostReplicas(msgspec.Struct, frozen=True):
    """The largest number of replicas that is placed, None if there is no limit; `message` is why one more is not."""

    workload: Workload
    replicas: int | None
    message: str = ""


def with_replicas(workload: Workload, replicas: int) -> Workload:
    """The workload with another number of replicas."""
    assert workload.binding is not None
    return msgspec.structs.replace(workload, binding=msgspec.structs.replace(workload.binding, replicas=replicas))


def scale(workload: Workload, engine: FleetEngine, steps: Sequence[int]) -> Iterator[BindingPlacement]:
    """Where the workload is after each step; each begins where the one before ended. The index is left unchanged."""
    index = engine.index
    reported = {name: index.slots.at(slot).cluster for name, slot in index.slots.by_name.items()}
    record = index.records.get(workload.key)
    first = dict(() if record is None else record.shares)
    with index.tentatively():
        for replicas in steps:
            assert workload.binding is not None
            placed = place_bindings.place(with_replicas(workload, replicas), engine, assumes=False)
            yield placed
            _report(placed, first, reported, index)
            binding = msgspec.structs.replace(
                workload.binding,
                previous=placed.shares,
                observed=placed.group if placed.placed else workload.binding.observed,
                fresh=False,
            )
            workload = msgspec.structs.replace(workload, binding=binding)


def _report(
    placed: BindingPlacement,
    first: Mapping[str, int],
    reported: Mapping[str, ClusterFacts | None],
    index: PlacementIndex,
) -> None:
    """Let the clusters report what the workload uses now instead of what it used at `first`."""
    binding, now = placed.workload.binding, dict(placed.shares)
    assert binding is not None
    requests = (binding.demand.requests if binding.demand else None) or ()
    for name, facts in reported.items():
        target = index.slots.at(index.slots.by_name[name])
        more = now.get(name, 0) - first.get(name, 0)
        if facts is None or (more < 0 and facts.grades is not None):  # on which nodes it was is not known
            continue
        after = estimating.with_load(facts, [(requests, more)])
        if after != target.cluster:
            index.update_target(msgspec.structs.replace(target, cluster=after))


def most_replicas(workload: Workload, engine: FleetEngine) -> MostReplicas:
    """How many replicas are placed at most, if more replicas never fit where fewer do not."""
    fits, too_many = 0, MAX_INT32
    message = _failure(with_replicas(workload, too_many), engine)
    if not message:
        return MostReplicas(workload, None)
    tried = 1
    while too_many - fits > 1:
        tried = min(tried, too_many - 1)
        why = _failure(with_replicas(workload, tried), engine)
        if why:
            too_many, message = tried, why
        else:
            fits = tried
        tried = fits * 2 if too_many == MAX_INT32 and fits else (fits + too_many) // 2
    return MostReplicas(workload, fits, message)


def _failure(workload: Workload, engine: FleetEngine) -> str:
    """Why the workload is not placed, empty if it is."""
    with group_failover.without_workload(workload, engine.index):
        decision = schedule_binding.schedule(workload, engine)
    return "" if decision.placed else "; ".join(decision.errors)
