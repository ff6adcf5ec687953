"""Preemption chooses the node and victims of the reference implementation, and leaves the index unchanged."""

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asking import comparable_preemption, preemption_engine_answer
from bayplan import schedule_pod
from bayplan.engine.engine import Engine
from bayplan.preempting import candidate_search, preemption
from bayplan.reading import questions
from bayplan.rules import profiles
from bayplan.rules.placeable import Placeable
from bayplan.rules.rule import Rule
from bayplan.writing import answers
from reference import crowding
from reference import preemption as reference_implementation

SEEDS = st.integers(0, 2**32)
BOTH = pytest.mark.parametrize("preset", ["upstream", "design"])


def situation_of(question):
    return questions.preemption_situation_of(msgspec.convert(question, questions.PodQuestion))


def is_invalid(question):
    """Whether a term has no topology key where that is invalid: the engine rejects what the reference ignores."""
    situation = situation_of(question)
    return Placeable().part(situation.workload, situation.index) is not None


def agrees(question):
    ours = comparable_preemption(preemption_engine_answer(question))
    return is_invalid(question) or ours == comparable_preemption(reference_implementation.answer(question))


@BOTH
@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_victims_are_those_of_the_reference_implementation(preset, seed):
    assert agrees(crowding.seeded(seed, presets=(preset,)))


@given(question=crowding.questions())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_victims_of_shrinkable_questions_are_those_of_the_reference_implementation(question):
    assert agrees(question)


@pytest.mark.parametrize("steps", [1, 2])
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_the_number_of_priority_steps_does_not_change_the_answer(steps, seed):
    question = crowding.seeded(seed)
    fine = preemption_engine_answer(question)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidate_search, "MAX_PRIORITY_STEPS", steps)
        assert preemption_engine_answer(question) == fine


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_order_of_the_input_never_changes_the_victims(seed):
    question = crowding.seeded(seed)
    for pod in question["pods"]:  # of pods that have not started, it depends on which one came last
        pod["status"].setdefault("startTime", crowding.STARTS[1])
    shuffled = dict(question)
    for part in ("nodes", "pods", "namespaces", "objects"):
        shuffled[part] = random.Random(seed).sample(question[part], len(question[part]))
    assert preemption_engine_answer(question) == preemption_engine_answer(shuffled)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_the_index_is_unchanged_and_the_pod_fits_without_the_victims(seed):
    question = crowding.seeded(seed)
    question["pods"] = [pod for pod in question["pods"] if pod["spec"].get("nodeName")]  # no pod is nominated
    situation = situation_of(question)
    workload, index = situation.workload, situation.index
    engine = Engine(index, profiles.pod_rules(situation.profile))

    def verdicts():
        decision = schedule_pod.schedule(workload, engine)
        return answers.pod_answer("", decision, index)["nodes"]

    before = verdicts()
    found = preemption.preempt(workload, engine, situation.disruption_budgets)
    assert verdicts() == before
    assert found == preemption.preempt(workload, engine, situation.disruption_budgets)
    for victim in found.victims:
        assert index.remove(victim).priority < workload.priority
    if found.target:
        assert verdicts()[found.target]["code"] == "Success"


RULES_OF_EVICTIONS = [
    rule for rule in map(type, profiles.pod_rules()) if rule.eviction_effect is not Rule.eviction_effect
]


@pytest.mark.parametrize("rules", [*((rule,) for rule in RULES_OF_EVICTIONS), RULES_OF_EVICTIONS])
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_what_rules_say_of_evictions_gives_the_victims_of_dry_runs(rules, seed):
    """Across nodes and for spared partners the two differ: these searches need what rules say."""
    question = crowding.seeded(seed)
    question["options"].setdefault("switches", {}).update(dict.fromkeys(crowding.SWITCHES, False))
    said = preemption_engine_answer(question)
    with pytest.MonkeyPatch.context() as patch:
        for rule in rules:
            patch.setattr(rule, "eviction_effect", Rule.eviction_effect)
        assert preemption_engine_answer(question) == said


def test_random_questions_cover_all_outcomes():
    seen = Counter()
    for seed in range(400):
        question = crowding.seeded(seed)
        found = reference_implementation.search(question)
        victims = found["candidates"].get(found["best"], {}).get("victims") or []
        seen["no victim"] += bool(found["message"])
        seen["victims"] += bool(victims)
        seen["several victims"] += len(victims) > 1
        seen["victims on other nodes"] += any(pod.node_name != found["best"] for pod in victims)
        seen["budget violation"] += bool(victims) and found["candidates"][found["best"]]["violations"] > 0
        seen["nominated pods"] += any(pod["status"].get("nominatedNodeName") for pod in question["pods"])
        for reason in (
            reference_implementation.NO_VICTIMS,
            reference_implementation.NEVER,
            reference_implementation.TERMINATING,
            "Insufficient cpu",
            "didn't match pod affinity rules",
            "didn't match pod anti-affinity rules",
            "didn't satisfy existing pods anti-affinity rules",
        ):
            seen[reason] += reason in found["message"]
    assert not [what for what, times in seen.items() if not times]
    assert seen["victims"] > 30
