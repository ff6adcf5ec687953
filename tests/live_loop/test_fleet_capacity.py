"""Deduction of what was just placed, on a control plane in memory."""

import msgspec
import pytest

from bayplan.model.semantics import UPSTREAM
from live_loop.fleet_simulated import FleetSimulation

DEDUCTS = msgspec.structs.replace(UPSTREAM, scheduling_overcommit_protection=True)
AGGREGATED = {
    "clusterAffinity": {},
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
}


@pytest.fixture
def fleet():
    simulation = FleetSimulation(semantics=DEDUCTS)
    simulation.cluster("one", cpu="10")
    return simulation


def healthy(fleet, name, health="Healthy", replicas=0):
    items = [{"clusterName": "one", "health": health, "status": {"replicas": replicas}}]
    fleet.change(name, {"status": {"aggregatedStatus": items}})
    fleet.report()


async def test_what_was_just_placed_is_deducted_only_with_the_switch(fleet):
    for simulation, expected in ((fleet, {}), (FleetSimulation(), {"one": 6})):
        simulation.cluster("one", cpu="10")
        simulation.bind("first", AGGREGATED, replicas=6)
        simulation.bind("second", AGGREGATED, replicas=6)
        await simulation.settle()
        assert simulation.shares("first") == {"one": 6}
        assert simulation.shares("second") == expected


async def test_capacity_counts_again_when_the_workload_is_healthy_and_the_cluster_has_reported(fleet):
    fleet.bind("first", AGGREGATED, replicas=6)
    fleet.bind("second", AGGREGATED, replicas=6)
    await fleet.settle()
    healthy(fleet, "first")
    await fleet.settle()
    assert fleet.shares("second") == {}
    fleet.cluster("one", cpu="7")  # which says by now what is left
    await fleet.settle()
    fleet.now = 3  # the backoff is over
    await fleet.settle()
    assert fleet.shares("second") == {"one": 6}


async def test_health_that_the_answer_to_a_write_shows_is_noticed(fleet):
    items = [{"clusterName": "one", "health": "Healthy", "status": {}}]

    def before_the_second_patch():
        if len(fleet.server.patches) == 1:
            fleet.change("first", {"status": {"aggregatedStatus": items}})

    fleet.server.before_patch = before_the_second_patch
    fleet.bind("first", AGGREGATED, replicas=6)
    await fleet.settle()
    assert fleet.state.capacity.n_loads == 1
    fleet.now = 16
    await fleet.settle()
    assert fleet.state.capacity.n_loads == 0


async def test_a_cluster_that_reports_nothing_more_is_believed_after_a_while(fleet):
    fleet.bind("first", AGGREGATED, replicas=6)
    fleet.bind("second", AGGREGATED, replicas=6)
    await fleet.settle()
    healthy(fleet, "first")
    fleet.now = 16
    await fleet.settle()
    assert fleet.shares("second") == {"one": 6}


async def test_load_of_a_workload_that_never_becomes_healthy_is_released_after_five_minutes(fleet):
    fleet.bind("first", AGGREGATED, replicas=6)
    fleet.bind("second", AGGREGATED, replicas=6)
    await fleet.settle()
    healthy(fleet, "first", "Unhealthy")
    fleet.now = 299
    await fleet.settle()
    assert fleet.shares("second") == {}
    fleet.now = 312
    await fleet.settle()
    assert fleet.shares("second") == {"one": 6}


async def test_only_what_is_added_counts(fleet):
    fleet.bind("first", AGGREGATED, {"one": 6}, replicas=6)
    await fleet.settle()
    fleet.cluster("one", cpu="4")  # without the six that run
    fleet.bind("first", AGGREGATED, {"one": 6}, replicas=8)
    fleet.bind("second", AGGREGATED, replicas=2)
    fleet.bind("third", AGGREGATED, replicas=1)
    await fleet.settle()
    assert [fleet.shares(name) for name in ("first", "second", "third")] == [{"one": 8}, {"one": 2}, {}]


@pytest.mark.parametrize("leave", ["deleted", "evicted"])
async def test_load_leaves_with_its_workload(fleet, leave):
    fleet.bind("first", AGGREGATED, replicas=6)
    fleet.bind("second", AGGREGATED, replicas=6)
    await fleet.settle()
    if leave == "deleted":
        fleet.delete("first")
    else:
        task = {"fromCluster": "one", "purgeMode": "Gracefully"}
        fleet.change("first", {"spec": {"clusters": None, "gracefulEvictionTasks": [task]}})
        fleet.report()
    fleet.now = 12
    await fleet.settle()
    assert fleet.shares("second") == {"one": 6}


async def test_a_result_that_was_not_written_leaves_no_load(fleet):
    changes = iter([{"spec": {"replicas": 5}}])
    fleet.server.before_patch = lambda: [fleet.change("first", patch) for patch in changes]
    fleet.bind("first", AGGREGATED, replicas=6)
    await fleet.settle()
    fleet.now = 2
    await fleet.settle()
    fleet.bind("second", AGGREGATED, replicas=5)
    await fleet.settle()
    assert fleet.shares("first") == fleet.shares("second") == {"one": 5}
    assert {name for loads in fleet.state.capacity._loads.values() for name in loads} == {
        "shop/first-deployment",
        "shop/second-deployment",
    }
