"""The programs around upstream's schedulers give the recorded answers, and say what they cannot answer."""

import gzip
import json
import pathlib

import pytest

from asking import comparable, comparable_fleet, comparable_preemption
from live import kube_binaries, oracles
from live.conftest import skip_or_fail

RECORDED = pathlib.Path(__file__).parents[1] / "upstream"
VIEWS = {"pods": comparable, "preemption": comparable_preemption, "fleet": comparable_fleet}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


def asked(kind, questions):
    try:
        return oracles.answers(kind, questions)
    except kube_binaries.UnavailableError as reason:
        skip_or_fail(str(reason))


def recorded(kind):
    with gzip.open(RECORDED / f"{kind}.jsonl.gz", "rt") as lines:
        cases = [json.loads(line) for line in lines]
    # The size of an image depends on whether the scheduler's cache was asked or a bare snapshot, so those are left out.
    return [case for case in cases if not any("images" in node["status"] for node in case.get("nodes", ()))]


def pod(name, cpu="1", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec},
    }


@pytest.mark.live
@pytest.mark.timeout(900)  # the first builds
@pytest.mark.parametrize("kind, at_least", [("pods", 1000), ("preemption", 851), ("fleet", 2000)])
def test_recorded_answers_are_given_again(kind, at_least):
    cases = recorded(kind)
    assert len(cases) >= at_least
    expected = [case.pop("expect") for case in cases]
    for case, answer, wanted in zip(cases, asked(kind, cases), expected, strict=True):
        assert "error" not in answer, answer
        assert VIEWS[kind](answer) == VIEWS[kind](wanted), case["name"]


@pytest.mark.live
@pytest.mark.timeout(900)
def test_a_living_cluster_keeps_what_was_placed():
    """Two CPUs of four each: the third fits only after the first has ended."""
    first, second, third = (pod(name, "2") for name in ("a", "b", "c"))
    ended = {**pod("a", "2", nodeName="n1"), "status": {"phase": "Succeeded"}}
    steps = [{"decide": first}, {"decide": second}, {"decide": third}, {"apply": ended}, {"decide": third}]
    (answer,) = asked("pods", [{"name": "living", "nodes": [NODE], "steps": steps}])
    assert [given["best"] for given in answer["answers"]] == [["n1"], ["n1"], [], ["n1"]]
    assert answer["answers"][2]["message"] == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", sorted(oracles.PROGRAMS))
def test_a_question_without_its_subject_is_an_error_in_its_place(kind):
    (answer,) = asked(kind, [{"name": "empty"}])
    assert answer["name"] == "empty"
    assert "got nothing" in answer["error"]
