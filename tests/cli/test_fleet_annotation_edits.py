"""Edits of the annotation `bayplan.io/placement`, which Karmada copies to no binding, reach what is scheduled."""

import json

import pytest
import yaml

from .test_fleet_unknown_labels import OPTION_1, PROD, TOGETHER, binding, cluster, pipeline, policy

CLUSTERS = [cluster("member1"), cluster("member2")]
RUNNING = {"replicas": 2, "clusters": [{"name": "member1", "replicas": 2}], "replicaRequirements": {}}
DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}


@pytest.fixture
def placed(run, tmp_path):
    """The table of `place` with a state and a change."""

    def place(state, change=()):
        words = []
        for name, objects, option in (("state", state, "--state"), ("change", change, "-f")):
            if objects:
                (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(objects))
                words += [option, str(tmp_path / f"{name}.yaml")]
        return run("place", *words, "--show-unchanged")

    return place


def scheduled(name="pipe-a", **more):
    found = binding(name, [], placement=DIVIDED, **more)
    found["spec"].update(RUNNING)
    return found


def test_a_policy_whose_annotation_is_edited_schedules_its_bindings_again(placed):
    before, after = policy(TOGETHER, DIVIDED), policy(OPTION_1, DIVIDED)
    templates = [{**pipeline("pipe-a", PROD), "spec": {}}]
    state = [*CLUSTERS, before, scheduled(), *templates]
    assert "flinkdeployment/pipe-a" not in placed(state).stdout
    assert "flinkdeployment/pipe-a" not in placed(state, [before]).stdout
    assert "flinkdeployment/pipe-a" in placed(state, [after]).stdout


def test_a_binding_that_has_the_text_of_before_is_scheduled_again(placed):
    old = {"bayplan.io/placement": json.dumps(TOGETHER)}
    state = [*CLUSTERS, policy(OPTION_1, DIVIDED), scheduled(annotations=old), {**pipeline("pipe-a", PROD), "spec": {}}]
    assert "flinkdeployment/pipe-a" in placed(state).stdout


def test_an_edited_annotation_of_the_template_counts_too(placed):
    plain = {**pipeline("pipe-a", PROD), "spec": {}}
    annotated = {**pipeline("pipe-a", PROD, annotations={"bayplan.io/placement": json.dumps(OPTION_1)}), "spec": {}}
    state = [*CLUSTERS, policy(None, DIVIDED), scheduled()]
    assert "flinkdeployment/pipe-a" not in placed([*state, plain], [plain]).stdout
    assert "flinkdeployment/pipe-a" in placed([*state, plain], [annotated]).stdout
