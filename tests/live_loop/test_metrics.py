"""Renamed metrics keep their deprecated names for one release, with the same value."""

import pytest

from bayplan.live.metrics import DEPRECATED_NAMES
from live_loop.simulated import Simulation, apart


@pytest.fixture
async def text():
    cluster = Simulation()
    cluster.add_node("one")
    for name in ("a", "b", "c"):
        cluster.add_pod(name, labels={"app": "x"}, affinity=apart(app="x"))
    await cluster.settle()
    cluster.remove_pod("a")
    await cluster.settle(5)
    return cluster.parts.metrics.text().decode()


def value(text, name):
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


@pytest.mark.parametrize("old", ["bayplan_sleepers_asked", "bayplan_missed_wakeups_total", "bayplan_events_dropped"])
async def test_the_deprecated_name_has_the_value_of_the_new_one(text, old):
    new = DEPRECATED_NAMES[old]
    assert value(text, old) == value(text, new)
    assert f"# HELP {old} Deprecated, use {new} instead." in text


async def test_requeue_evaluations_are_a_counter(text):
    assert "# TYPE bayplan_requeue_evaluations_total counter" in text
    assert value(text, "bayplan_requeue_evaluations_total") > 0
    assert "# TYPE bayplan_sleepers_asked gauge" in text


async def test_a_renamed_counter_keeps_the_time_of_its_creation(text):
    assert value(text, "bayplan_missed_wakeups_created") == value(text, "bayplan_missed_requeues_created")
