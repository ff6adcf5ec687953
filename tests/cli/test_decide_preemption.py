import json

import pytest

NODE = {"metadata": {"name": "a1"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
BUSY = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
LOW = {"metadata": {"name": "low", "labels": {"app": "x"}}, "spec": {**BUSY, "nodeName": "a1"}}
POD = {"metadata": {"name": "p"}, "spec": {**BUSY, "priority": 10}}
QUESTION = {"name": "q", "nodes": [NODE], "pods": [LOW], "pod": POD}


def ask(run, question):
    result = run("decide", "preemption", given=json.dumps(question) + "\n")
    return json.loads(result.stdout), result.exit_code


def test_the_answer_names_the_nominated_node_and_the_victims(run):
    assert ask(run, QUESTION) == ({"name": "q", "nominated": "a1", "victims": ["default/low"], "message": ""}, 0)


def test_no_victim_is_a_valid_answer(run):
    answer, code = ask(run, {**QUESTION, "pod": {**POD, "spec": BUSY}})
    assert answer["message"] == "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    assert (answer["nominated"], answer["victims"], code) == ("", [], 0)


def test_a_pod_that_fits_needs_no_preemption(run):
    assert ask(run, {**QUESTION, "pods": []})[0] == {"name": "q", "nominated": "", "victims": [], "message": ""}


def test_budgets_and_priority_classes_are_read(run):
    other = {"metadata": {"name": "other"}, "spec": {**BUSY, "nodeName": "a2", "priorityClassName": "fair"}}
    nodes = [NODE, {**NODE, "metadata": {"name": "a2"}}]
    fair = {"kind": "PriorityClass", "metadata": {"name": "fair"}, "value": 5}
    selector = {"matchLabels": {"app": "x"}}
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"selector": selector}}
    question = {**QUESTION, "nodes": nodes, "pods": [LOW, other], "objects": [fair]}
    assert ask(run, question)[0]["victims"] == ["default/low"]
    assert ask(run, {**question, "objects": [fair, budget]})[0]["victims"] == ["default/other"]


@pytest.mark.parametrize("change, message", [
    ({"pods": [{**LOW, "status": {"startTime": "noon"}}]}, "pods[0].status.startTime: expected a time"),
    ({"objects": [{"kind": "PodDisruptionBudget", "spec": {"selector": 1}}]}, "objects[0].spec.selector: expected a mapping, got the number 1"),
])  # fmt: skip
def test_bad_questions_are_answered_with_their_error(change, message, run):
    answer, code = ask(run, {**QUESTION, **change})
    assert message in answer["error"]
    assert code == 2
