import json

import pytest

from bayplan.cli import decide

NODE = {"metadata": {"name": "a1"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}


def lines(*questions):
    return "".join(f"{q if isinstance(q, str) else json.dumps(q)}\n" for q in questions)


def answers(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_answers_come_in_order(run):
    asked = lines(*({"name": f"q{i}", "nodes": [NODE], "pod": POD} for i in range(3)))
    result = run("decide", "pods", given=asked)
    assert [a["name"] for a in answers(result)] == ["q0", "q1", "q2"]
    assert answers(result)[0]["best"] == ["a1"]
    assert result.exit_code == 0


def test_unschedulable_is_a_valid_answer(run):
    result = run("decide", "pods", given=lines({"nodes": [], "pod": POD}))
    assert answers(result)[0]["message"] == "no nodes available to schedule pods"
    assert result.exit_code == 0


@pytest.mark.parametrize("bad, message", [
    ("no json", "malformed"),
    ("[]", "Expected `object`"),
    ({"nodes": [NODE]}, "missing required field `pod`"),
    ({"nodes": [NODE, NODE], "pod": POD}, "a1 exists already"),
    ({"nodes": [], "pod": POD, "options": {"semantics": "other"}}, "expected upstream or design"),
    ({"nodes": [], "pod": POD, "options": {"switches": {"none": 1}}}, "options.switches"),
    ({"nodes": [], "pod": POD, "options": {"config": {"parallelism": 0}}}, "parallelism"),
])  # fmt: skip
def test_a_bad_line_is_answered_in_order(bad, message, run):
    good = {"name": "good", "nodes": [NODE], "pod": POD}
    result = run("decide", "pods", given=lines(good, bad, good))
    first, second, third = answers(result)
    assert (first["name"], third["name"]) == ("good", "good")
    assert second["line"] == 2
    assert message in second["error"]
    assert result.exit_code == 2


def test_empty_lines_are_skipped(run):
    result = run("decide", "pods", given="\n  \n" + lines("x"))
    assert answers(result)[0]["line"] == 3


def test_admission_questions_are_answered_with_causes(run):
    good = {"name": "good", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": []}}
    first, second = answers(run("decide", "admission", given=lines(good, {"name": "bad", "object": pod})))
    assert first == {"name": "good", "causes": []}
    assert {"reason", "field", "message"} == set(second["causes"][0])


def test_a_bug_is_not_an_answer(run, monkeypatch):
    def broken(line):
        raise KeyError(line)

    monkeypatch.setitem(decide.ANSWERERS, "pods", lambda: broken)
    result = run("decide", "pods", given=lines({}))
    assert isinstance(result.exception, KeyError)
    assert result.stdout == ""
