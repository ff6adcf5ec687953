"""Every story of rules that break while pods run goes as told."""

import pytest

import enforcement_scenarios
from enforcement_scenarios import Story, check
from scenarios import BadSceneError

STORIES = enforcement_scenarios.stories()


@pytest.mark.parametrize("name, preset, scene", STORIES, ids=[f"{name}:{preset}" for name, preset, _ in STORIES])
def test_story(name, preset, scene):
    for at, expected, by_loops, told in Story(scene, preset).tell():
        where = f"{name} at {at}"
        wanted = {owner: sorted(peers) for owner, peers in expected["broken"].items()}
        assert told["broken"] == wanted, where
        assert by_loops == wanted, where
        assert told["evicted"] == expected["evicted"], where
        assert told["wouldGo"] == expected["wouldGo"], where
        assert told["waiting"] == expected["waiting"], where
        assert told["spared"] == expected["spared"], where


SCENE = {
    "about": "One pod, one node.",
    "nodes": {"a": {}},
    "pods": {"p": {"nodeName": "a"}},
    "steps": [{"at": 0}],
}


def test_the_plainest_story_works():
    check(SCENE)
    ((_, expected, _, told),) = Story(SCENE, "upstream").tell()
    assert told == expected


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"nods": {}}, "unknown 'nods'"),
        ({"steps": []}, "'steps' is missing"),
        ({"settings": {"grace": 3}}, "settings: unknown 'grace'"),
        ({"steps": [{"at": 0, "evict": ["p"]}]}, "step: unknown 'evict'"),
        ({"steps": [{"at": 0, "evicted": ["q"]}]}, "pod 'q' is not there"),
        ({"steps": [{"at": 5}, {"at": 5}]}, "time goes on from 5"),
        ({"budgets": {"b": {"minAvailable": 1}}}, "budget b: unknown"),
    ],
)
def test_senseless_stories_are_refused(change, complaint):
    with pytest.raises(BadSceneError, match=complaint):
        check({**SCENE, **change})


def test_pods_of_a_story_are_on_nodes():
    with pytest.raises(BadSceneError, match="pod p is on no node"):
        Story({**SCENE, "pods": {"p": {}}}, "upstream")
