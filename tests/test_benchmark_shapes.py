"""Inputs of every shape are placed as the reference implementation says, and shapes are what their words say."""

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import shapes
from shape_fleets import FleetShape
from shape_pods import PodShape

from bayplan.cli import benchmarks
from bayplan.indexing import owner_rules, term_table
from bayplan.rules import profiles
from reference import fleet as reference_fleet
from reference import pods as reference_pods

RANDOM = {
    PodShape: [PodShape.random(random.Random(f"pods {n}")) for n in range(60)],
    FleetShape: [FleetShape.random(random.Random(f"fleet {n}")) for n in range(20)],
}
NAMED = [shapes.parse([name]) for name in shapes.NAMED]


def of(kind):
    return [*(shape for shape in NAMED if isinstance(shape, kind)), *RANDOM[kind]]


def placements(kind, given):
    """What `bayplan bench` answers."""
    return [
        dict(line) for line in benchmarks.BENCHMARKS[kind](json.dumps(given).encode(), profiles.pod_rules())().lines()
    ]


@pytest.mark.parametrize("shape", of(PodShape), ids=shapes.written)
def test_pods_of_a_shape_are_placed_as_by_the_reference_implementation(shape):
    given = shapes.generate(shape, 12, 18, 20)
    running = list(given["init"])
    for pod, placed in zip(given["pods"], placements("pods", given), strict=True):
        question = {"nodes": given["nodes"], "namespaces": given["namespaces"], "pods": running, "pod": pod}
        answer = reference_pods.answer(question)
        assert placed["node"] in (answer["best"] or [""])
        if placed["node"]:
            running.append({**pod, "spec": {**pod["spec"], "nodeName": placed["node"]}})


@pytest.mark.parametrize("shape", of(PodShape), ids=shapes.written)
def test_pods_are_placed_alike_however_many_terms_make_a_value_common(shape, monkeypatch):
    given = shapes.generate(shape, 12, 60, 30)
    expected = placements("pods", given)
    monkeypatch.setattr(term_table, "COMMON", 1)
    monkeypatch.setattr(owner_rules, "COMMON", 1)
    assert placements("pods", given) == expected


@pytest.mark.parametrize("shape", of(FleetShape), ids=shapes.written)
def test_bindings_of_a_shape_are_placed_as_by_the_reference_implementation(shape):
    given = shapes.generate(shape, 8, 14, 8)
    scheduled = list(given["bindings"])
    for binding, placed in zip(given["pending"], placements("fleet", given), strict=True):
        answer = reference_fleet.answer({"clusters": given["clusters"], "bindings": scheduled, "binding": binding})
        by_name = [sorted((c["name"], c["replicas"]) for c in one["clusters"]) for one in (answer, placed)]
        assert by_name[0] == by_name[1]
        scheduled.append({**binding, "spec": {**binding["spec"], "clusters": answer["clusters"]}})


@pytest.mark.parametrize("shape", [*NAMED, *RANDOM[PodShape], *RANDOM[FleetShape]], ids=shapes.written)
def test_a_shape_is_read_from_the_words_it_is_written_as(shape):
    assert shapes.parse(shapes.written(shape).split()) == shape


@pytest.mark.parametrize("kind", [PodShape, FleetShape])
def test_a_mutation_changes_one_or_two_axes(kind):
    chance, shape = random.Random(1), kind()
    for _ in range(50):
        other = shape.mutated(chance)
        assert sum(getattr(other, axis) != getattr(shape, axis) for axis in kind.axes()) in (1, 2)
        shape = other


def test_axes_after_a_name_change_the_named_shape():
    assert shapes.parse(["helm", "apps=each"]) == shapes.parse(
        ["pods", "shared=5", "by=shared+own", "anti_required=1", "apps=each"]
    )


@pytest.mark.parametrize("words", [["rudder"], ["pods", "apps=many"], ["pods", "app=each"]])
def test_words_that_describe_no_shape_are_rejected(words):
    with pytest.raises(ValueError, match="expected"):
        shapes.parse(words)
