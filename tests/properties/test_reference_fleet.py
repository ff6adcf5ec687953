"""The engine answers every random question about a fleet as the reference implementation, under all semantics."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asking import comparable_fleet, fleet_engine_answer
from fleet_scenarios import rule_id
from reference import fleet as reference_implementation
from reference.fleet import strategies
from reference.fleet.objects import AGGREGATED, DUPLICATED, DYNAMIC_WEIGHT, Binding
from reference.objects import name_of

SEEDS = st.integers(0, 2**32)

# What a question may hold: only fields of Karmada, or also those of the design documents, under either preset.
SCOPES = {
    "Karmada's": {"additions": False},
    "upstream": {"presets": ("upstream",)},
    "design": {"presets": ("design",)},
}
MISSING = {}  # scope → why the engine does not yet name the rules that the reference names

in_every_scope = pytest.mark.parametrize("scope", SCOPES)


def until_it_agrees(scope):
    return pytest.param(scope, marks=pytest.mark.xfail(reason=MISSING[scope], strict=True) if scope in MISSING else ())


def whole(answer):
    """What must agree: the clusters as a set, the observed group, the reason and the error of every group that failed."""
    return *comparable_fleet(answer), list(answer.get("errors") or ())


@in_every_scope
@settings(max_examples=250, deadline=None)
@given(seed=SEEDS)
def test_engine_answers_as_the_reference_implementation(scope, seed):
    question = strategies.seeded(seed, **SCOPES[scope])
    assert whole(fleet_engine_answer(question)) == whole(reference_implementation.answer(question))


@in_every_scope
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_engine_answers_shrinkable_questions_as_the_reference_implementation(scope, data):
    question = data.draw(strategies.questions(**SCOPES[scope]))
    assert whole(fleet_engine_answer(question)) == whole(reference_implementation.answer(question))


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_engine_divides_replicas_over_many_equal_clusters_as_the_reference_implementation(seed):
    question = strategies.large_fleet(strategies.Dice(random.Random(seed).randrange))
    assert whole(fleet_engine_answer(question)) == whole(reference_implementation.answer(question))


@settings(max_examples=250, deadline=None)
@given(seed=SEEDS)
def test_engine_counts_sets_of_components_as_the_reference_implementation(seed):
    question = strategies.component_sets(strategies.Dice(random.Random(seed).randrange))
    assert whole(fleet_engine_answer(question)) == whole(reference_implementation.answer(question))
    assert ranks(fleet_engine_answer(question)) == ranks(reference_implementation.answer(question))


@in_every_scope
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
@example(seed=2759)  # a cluster that a peer on its way out keeps to itself
def test_engine_ranks_clusters_as_the_reference_implementation(scope, seed):
    question = strategies.seeded(seed, **SCOPES[scope])
    assert ranks(fleet_engine_answer(question)) == ranks(reference_implementation.answer(question))


def ranks(answer):
    """Tier, score and available replicas of every feasible cluster."""
    return {
        name: (verdict["tier"], verdict["score"], verdict["available"])
        for name, verdict in answer["verdicts"].items()
        if verdict["fits"]
    }


@pytest.mark.parametrize("scope", [until_it_agrees(scope) for scope in SCOPES])
def test_engine_names_the_rules_and_peers_that_the_reference_implementation_names(scope):
    for seed in range(600):
        question = strategies.seeded(seed, **SCOPES[scope])
        assert rejections(question, fleet_engine_answer(question)) == rejections(
            question, reference_implementation.answer(question)
        ), seed


def rejections(question, answer):
    """
    The rules that reject each cluster, with the conflicting peers.

    Without clusters that are being deleted, for which the reference names no other rule, and those that the workload is
    evicted from.
    """
    away = {name_of(cluster) for cluster in question["clusters"] if cluster["metadata"].get("deletionTimestamp")}
    away |= {task["fromCluster"] for task in question["binding"]["spec"].get("gracefulEvictionTasks") or ()}
    found = {}
    for name, verdict in answer["verdicts"].items():
        for failure in verdict["failures"]:
            rule = rule_id(failure)
            if rule != "placeable" and name not in away:
                found.setdefault((name, rule), set()).update(failure.get("peers") or ())
    return found


@in_every_scope
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_order_of_the_input_never_changes_an_answer(scope, seed):
    question = strategies.seeded(seed, **SCOPES[scope])
    shuffled = dict(question)
    for part in ("clusters", "bindings", "resources"):
        shuffled[part] = random.Random(seed).sample(question[part], len(question[part]))
    assert whole(fleet_engine_answer(question)) == whole(fleet_engine_answer(shuffled))


@settings(max_examples=250, deadline=None)
@given(seed=SEEDS)
def test_replicas_add_up_and_fit(seed):
    question = strategies.seeded(seed)
    binding, answer = Binding(question["binding"]), fleet_engine_answer(question)
    placed = {target["name"]: target["replicas"] for target in answer["clusters"]}
    if answer["reason"]:
        assert not placed
        return
    assert all(answer["verdicts"][name]["fits"] for name in placed)
    if not binding.is_divisible or binding.strategy == DUPLICATED:
        return
    assert sum(placed.values()) == binding.replicas
    if binding.strategy in (AGGREGATED, DYNAMIC_WEIGHT):
        assert all(replicas <= answer["verdicts"][name]["available"] for name, replicas in placed.items())


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_no_workload_is_scheduled_where_a_rule_rejects_it(seed):
    answer = fleet_engine_answer(strategies.seeded(seed))
    for verdict in answer["verdicts"].values():
        assert verdict["fits"] == (not verdict["failures"])
    if answer["reason"]:
        assert answer["errors"]
        assert answer["observedAffinityName"] == ""
