"""Enforcement produces the expected violations and evictions in every timeline."""

import pytest

import enforcement_scenarios
from enforcement_scenarios import Timeline, check
from scenarios import InvalidScenarioError

TIMELINES = enforcement_scenarios.all_timelines()


@pytest.mark.parametrize("name, preset, scene", TIMELINES, ids=[f"{name}:{preset}" for name, preset, _ in TIMELINES])
def test_timeline(name, preset, scene):
    for at, expected, by_reference, result in Timeline(scene, preset).run():
        where = f"{name} at {at}"
        wanted = {owner: sorted(peers) for owner, peers in expected["broken"].items()}
        assert result["broken"] == wanted, where
        assert by_reference == wanted, where
        assert result["evicted"] == expected["evicted"], where
        assert result["wouldGo"] == expected["wouldGo"], where
        assert result["waiting"] == expected["waiting"], where
        assert result["spared"] == expected["spared"], where


SCENE = {
    "about": "One pod, one node.",
    "nodes": {"a": {}},
    "pods": {"p": {"nodeName": "a"}},
    "steps": [{"at": 0}],
}


def test_a_minimal_timeline_passes():
    check(SCENE)
    ((_, expected, _, result),) = Timeline(SCENE, "upstream").run()
    assert result == expected


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"nods": {}}, "unknown 'nods'"),
        ({"steps": []}, "'steps' is missing"),
        ({"settings": {"grace": 3}}, "settings: unknown 'grace'"),
        ({"steps": [{"at": 0, "evict": ["p"]}]}, "step: unknown 'evict'"),
        ({"steps": [{"at": 0, "evicted": ["q"]}]}, "pod 'q' is not there"),
        ({"steps": [{"at": 5}, {"at": 5}]}, "time must be after 5"),
        ({"budgets": {"b": {"minAvailable": 1}}}, "budget b: unknown"),
    ],
)
def test_invalid_timelines_are_rejected(change, complaint):
    with pytest.raises(InvalidScenarioError, match=complaint):
        check({**SCENE, **change})


def test_pods_of_a_timeline_are_on_nodes():
    with pytest.raises(InvalidScenarioError, match="pod p is on no node"):
        Timeline({**SCENE, "pods": {"p": {}}}, "upstream")
