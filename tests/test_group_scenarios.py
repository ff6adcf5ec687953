"""Every scenario of groups holds for `place`, and the reference implementation finds nothing wrong with the plans."""

import pytest

import group_scenarios
import scenarios
from scenarios import InvalidScenarioError


@pytest.mark.parametrize("path", group_scenarios.all_paths(), ids=lambda path: path.stem)
def test_scenario(path, tmp_path):
    scene = group_scenarios.Scene(scenarios.read(path))
    scene.check(scene.place(tmp_path))


SCENE = {"about": "One pod.", "nodes": {"a": {}}, "pods": {"p": {}}, "expect": {"placed": {"p": "a"}}}


@pytest.mark.parametrize("change, complaint", [
    ({"nods": {}}, "unknown 'nods'"),
    ({"about": ""}, "'about' is missing"),
    ({"expect": {"placed": {"q": "a"}}}, "pending pods are"),
    ({"options": {"by": "owner"}}, "unknown 'by'"),
])  # fmt: skip
def test_invalid_scenarios_are_rejected(change, complaint):
    with pytest.raises(InvalidScenarioError, match=complaint):
        group_scenarios.Scene({**SCENE, **change})
