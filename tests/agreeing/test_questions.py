"""What the drawn questions hold: every field that a plugin reads, and nothing that an API server refuses."""

import functools
import itertools
import json
import pathlib

import pytest

from agreeing import (
    comparing,
    drawn_admissions,
    drawn_fleets,
    drawn_preemptions,
    drawn_questions,
    fields,
    known,
    minimising,
    schedulers,
)
from bayplan.reading import checking
from bayplan.validating import admission
from validating import mutations

QUESTIONS = 900
DIFFERENCES = pathlib.Path(__file__).parents[2] / "docs" / "differences.md"


@functools.cache
def drawn():
    pods = [drawn_questions.question("test", number) for number in range(QUESTIONS)]
    return pods + [drawn_preemptions.question("test", number) for number in range(QUESTIONS // 3)]


def objects(question):
    parts = (question[name] for name in ("nodes", "namespaces", "pods", "objects"))
    steps = [one for step in question.get("steps", ()) for one in step.values()]
    return [*itertools.chain(*parts), *steps, *((question["pod"],) if "pod" in question else ())]


@functools.cache
def all_paths():
    found = set()
    for question in drawn():
        for one in objects(question):
            found.update(fields.paths(one, one["kind"]))
        config = question.get("options", {}).get("config", {"profiles": [{}]})
        for entry in config["profiles"][0].get("pluginConfig", ()):
            found.update(fields.paths(entry["args"], entry["name"]))
    return found


@pytest.mark.parametrize("plugin", fields.READ)
def test_every_field_that_a_plugin_reads_is_drawn(plugin):
    assert set(fields.READ[plugin]) <= all_paths()


@pytest.mark.parametrize("plugin", fields.CONFIGURED)
def test_every_argument_of_a_plugin_is_drawn(plugin):
    assert {f"{plugin}.{name}" for name in fields.CONFIGURED[plugin]} <= all_paths()


@pytest.mark.parametrize("plugin", fields.READ)
def test_every_field_exists(plugin):
    table = checking.field_table()
    for path in fields.READ[plugin]:
        kind, *names = path.replace("[]", "").replace("{}", "").split(".")
        for name in names:
            assert name in table[kind], (path, kind)
            kind = table[kind][name].strip("[]{}")


def test_nothing_is_drawn_that_an_api_server_refuses():
    for question in drawn()[::3]:
        if len(question["nodes"]) >= 200:
            continue
        assert minimising.is_admitted(question), question["name"]


def test_clusters_are_small_large_and_living():
    sizes = [len(question["nodes"]) for question in drawn()]
    assert any(200 <= size <= 1000 for size in sizes)
    living = [question for question in drawn() if "steps" in question]
    assert len(living) >= QUESTIONS // 12
    steps = {next(iter(step)) for question in living for step in question["steps"]}
    assert steps == {"apply", "delete", "decide"}


def test_fleets_have_up_to_sixty_clusters():
    sizes = {len(drawn_fleets.question("test", number)["clusters"]) for number in range(400)}
    assert min(sizes) <= 3
    assert max(sizes) > 50


@pytest.mark.parametrize("source", [drawn_questions, drawn_preemptions, drawn_fleets, drawn_admissions])
def test_a_seed_repeats_its_questions(source):
    for number in range(0, 60, 7):
        one, again = source.question("s", number), source.question("s", number)
        assert json.dumps(one) == json.dumps(again)
    assert source.question("s", 1) != source.question("t", 1)


def test_known_differences_are_rows_of_the_page():
    text = DIFFERENCES.read_text(encoding="utf-8")
    for row in known.ROWS:
        assert f"| {row} |" in text


@pytest.fixture
def counting_pods(monkeypatch):
    """A real scheduler that differs from Bayplan wherever a node has the label `odd`."""

    def answers(kind, questions, version, **_):
        found = []
        for question in questions:
            answer = schedulers.bayplan_answers.answer(kind, question)
            for node in question["nodes"]:
                if "odd" in node["metadata"].get("labels", {}):
                    answer["nodes"][node["metadata"]["name"]]["code"] = "Unschedulable"
            found.append(answer)
        return found

    monkeypatch.setattr(schedulers.oracles, "answers", answers)


def test_a_difference_is_found_and_reduced_to_what_it_needs(counting_pods):
    questions = [drawn_questions.question("small", number) for number in (0, 1, 2, 4)]
    for node in questions[2]["nodes"]:
        node["metadata"]["labels"]["odd"] = "yes"
    found = [one for one in schedulers.compare("pods", "1.36", questions) if one.difference]
    assert [one.question["name"] for one in found] == [questions[2]["name"]]
    smallest = minimising.minimised(found[0])
    assert smallest.difference == found[0].difference
    assert [list(one["metadata"].get("labels", ())) for one in smallest.question["nodes"]] == [["odd"]]
    assert smallest.question["pods"] == []


@pytest.mark.parametrize(
    "real, ours, expected",
    [
        ({"nominated": "n1", "victims": ["a"]}, {"nominated": "n1", "victims": ["a"]}, ""),
        ({"nominated": "n1", "victims": ["a"]}, {"nominated": "n1", "victims": ["b"]}, "victims"),
        ({"nominated": "n1", "others": [{"nominated": "n2"}]}, {"nominated": "n2"}, ""),
        ({"nominated": "n1"}, {"nominated": ""}, "no node nominated"),
        ({"error": "one text"}, {"error": "another text"}, ""),
        ({"nominated": ""}, {"error": "a bug: KeyError"}, "only bayplan fails: a bug: KeyError"),
    ],
)
def test_differences_are_named_by_what_differs(real, ours, expected):
    assert comparing.difference("preemption", real, ours) == expected


def test_admission_is_asked_about_valid_and_invalid_objects_of_every_kind():
    asked = [drawn_admissions.question("test", number)["object"] for number in range(300)]
    admitted = [obj for obj in asked if not admission.validate_all(obj)]
    assert 30 < len(admitted) < 270
    assert {obj["kind"] for obj in asked} == set(mutations.KINDS)


@pytest.mark.parametrize("field", ["affinity", "tolerations", "topologySpreadConstraints", "nodeSelector", "resources"])
def test_what_placing_reads_is_asked_about(field):
    asked = [drawn_admissions.question("test", number)["object"] for number in range(300)]
    causes = [cause.field for obj in asked for cause in admission.validate_all(obj)]
    assert any(f"spec.{field}" in one for one in causes)


def test_a_cause_that_only_one_of_them_has_is_named():
    one, other = ({"reason": "r", "field": f"spec.containers[{i}].x", "message": "bad"} for i in (3, 4))
    assert comparing.difference("admission", {"causes": [one]}, {"causes": [one]}) == ""
    found = comparing.difference("admission", {"causes": [one]}, {"causes": [one, other]})
    assert found == "only bayplan rejects spec.containers[#].x: r bad"
