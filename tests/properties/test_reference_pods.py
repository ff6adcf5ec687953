"""The engine answers every random question as the reference implementation, under all semantics."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asking import comparable, engine_answer
from reference import pods as reference_implementation
from reference import strategies

SEEDS = st.integers(0, 2**32)


def agrees(question):
    """Equal answers; but a missing topology key that is invalid is rejected by the engine and ignored by the reference."""
    ours = engine_answer(question)
    rejected = [verdict for verdict in ours["nodes"].values() if verdict.get("plugin") == "Bayplan"]
    if rejected:
        assert len(rejected) == len(ours["nodes"])
        return "topologyKey: Required value" in ours["message"]
    return comparable(ours) == comparable(reference_implementation.answer(question))


@pytest.mark.parametrize("preset", ["upstream", "design"])
@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_engine_answers_as_the_reference_implementation(preset, seed):
    assert agrees(strategies.seeded(seed, presets=(preset,)))


@settings(max_examples=50, deadline=None)
@given(seed=SEEDS)
def test_order_of_the_input_never_changes_an_answer(seed):
    question = strategies.seeded(seed)
    shuffled = dict(question)
    for part in ("nodes", "pods", "namespaces"):
        shuffled[part] = random.Random(seed).sample(question[part], len(question[part]))
    assert comparable(engine_answer(question)) == comparable(engine_answer(shuffled))


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_a_pod_has_either_feasible_nodes_or_a_message(seed):
    answer = engine_answer(strategies.seeded(seed))
    if answer["best"]:
        assert all(answer["nodes"][name]["code"] == "Success" for name in answer["best"])
    else:
        assert answer["message"]
        assert not any(verdict["code"] == "Success" for verdict in answer["nodes"].values())


@given(question=strategies.questions())
@settings(max_examples=25, deadline=None)
def test_engine_answers_shrinkable_questions_as_the_reference_implementation(question):
    assert agrees(question)
