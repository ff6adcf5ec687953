"""Bindings that return to an earlier group or tier of clusters, on a control plane in memory."""

import msgspec
import pytest

from bayplan.model.semantics import UPSTREAM
from live_loop.fleet_simulated import FleetSimulation

HOLD_DOWN = 100
RETURNS = msgspec.structs.replace(UPSTREAM, fail_back_after=HOLD_DOWN)
GROUPS = {
    "clusterAffinities": [
        {"affinityName": "first", "clusterNames": ["one"]},
        {"affinityName": "second", "clusterNames": ["two"]},
    ]
}
TIERS = {
    "clusterAffinities": [
        {
            "affinityName": "idc",
            "clusterNames": ["one"],
            "overflowAffinities": [{"affinityName": "cloud", "clusterNames": ["two"]}],
        }
    ],
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
}
LOST = [{"key": "down", "effect": "NoSchedule"}]
FROM_TWO = {
    "fromCluster": "two",
    "purgeMode": "Gracefully",
    "reason": "FailsBack",
    "message": "an earlier group or tier of clusters has room again",
    "producer": "bayplan",
    "replicas": 2,
}


@pytest.fixture
def fleet():
    return away(FleetSimulation(semantics=RETURNS))


def away(simulation):
    simulation.cluster("one", taints=LOST)
    simulation.cluster("two")
    return simulation


async def placed_away(fleet, placement, *names):
    for name in names:
        fleet.bind(name, placement)
    await fleet.settle()
    assert all(fleet.shares(name) == {"two": 2} for name in names)


async def after(fleet, seconds):
    """Let time pass, with a look at all bindings every ten seconds."""
    until = fleet.now + seconds
    while fleet.now < until:
        fleet.now = min(fleet.now + 10, until)
        for _ in fleet.parts.fail_back.look():
            pass
        await fleet.settle()


@pytest.mark.parametrize("placement", [GROUPS, TIERS], ids=["group", "tier"])
async def test_a_workload_returns_when_the_better_place_has_lasted(fleet, placement):
    await placed_away(fleet, placement, "web")
    await after(fleet, 2 * HOLD_DOWN)
    fleet.cluster("one", generation=2)
    await fleet.settle()
    await after(fleet, HOLD_DOWN)
    assert fleet.shares("web") == {"two": 2}
    await after(fleet, 10)
    assert fleet.shares("web") == {"one": 2}
    found = fleet.of("web")
    assert found["spec"]["gracefulEvictionTasks"] == [FROM_TWO]
    assert found["status"]["schedulerObservedGeneration"] == found["metadata"]["generation"]
    assert fleet.condition("web")["reason"] == "Success"
    if placement is GROUPS:
        assert found["status"]["schedulerObservingAffinityName"] == "first"
    text = "Binding has been scheduled successfully. Result: {one:2} It fails back from two."
    assert ("web", "ScheduleBindingSucceed", text) in fleet.server.events


async def test_a_cluster_that_flaps_draws_nothing(fleet):
    await placed_away(fleet, TIERS, "web")
    for generation in range(2, 12, 2):
        fleet.cluster("one", generation=generation)
        await after(fleet, HOLD_DOWN - 20)
        fleet.cluster("one", generation=generation + 1, taints=LOST)
        await after(fleet, 30)
    assert fleet.shares("web") == {"two": 2}


async def test_a_workload_that_was_just_scheduled_stays(fleet):
    await placed_away(fleet, TIERS, "web")
    fleet.cluster("one", generation=2)
    await after(fleet, HOLD_DOWN - 10)
    fleet.change("web", {"status": {"lastScheduledTime": "2026-01-01T00:01:30Z"}})
    fleet.report()
    await after(fleet, HOLD_DOWN - 10)
    assert fleet.shares("web") == {"two": 2}
    await after(fleet, 20)
    assert fleet.shares("web") == {"one": 2}


async def test_no_more_return_in_a_minute_than_the_budget_allows():
    fleet = away(FleetSimulation(semantics=RETURNS, fail_back_per_minute=2))
    names = [f"web-{number}" for number in range(5)]
    await placed_away(fleet, GROUPS, *names)
    fleet.cluster("one", generation=2)
    await after(fleet, HOLD_DOWN + 10)
    assert sum(fleet.shares(name) == {"one": 2} for name in names) == 2
    await after(fleet, 120)
    assert all(fleet.shares(name) == {"one": 2} for name in names)


async def test_what_is_evicted_from_somewhere_is_left_alone(fleet):
    await placed_away(fleet, GROUPS, "web")
    task = {"fromCluster": "three", "purgeMode": "Gracefully"}
    fleet.change("web", {"spec": {"gracefulEvictionTasks": [task]}})
    fleet.report()
    fleet.cluster("one", generation=2)
    await after(fleet, 3 * HOLD_DOWN)
    assert fleet.shares("web") == {"two": 2}
    fleet.end_evictions("web")
    await after(fleet, 2 * HOLD_DOWN)
    assert fleet.shares("web") == {"one": 2}


async def test_nothing_returns_without_the_switch_or_room():
    assert FleetSimulation().parts.fail_back is None
    fleet = away(FleetSimulation(semantics=RETURNS))
    await placed_away(fleet, TIERS, "web")
    fleet.cluster("one", cpu="1", generation=2)  # for half of it: some replicas in an earlier tier are better
    await after(fleet, HOLD_DOWN + 20)
    assert fleet.shares("web") == {"one": 1, "two": 1}
    assert "gracefulEvictionTasks" not in fleet.of("web")["spec"]  # it leaves no cluster
    fleet.cluster("one", cpu="0", generation=2)
    n_patches = len(fleet.server.patches)
    await after(fleet, 3 * HOLD_DOWN)
    assert len(fleet.server.patches) == n_patches
