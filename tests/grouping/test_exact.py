"""The exact model answers as trying every plan does, with every plan checked by the reference implementation."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bayplan.grouping import exact, plan_check
from bayplan.grouping.problem import GroupPlan, ProvenImpossible, Solved, Undecided
from grouping.small_problems import any_problem, dense_problem

SEEDS = st.integers(0, 2**32)


def answered(small):
    """The answer, which must be that of trying every plan unless the model says that it does not cover a rule."""
    problem = small.of_product()
    answer = exact.solve(problem, GroupPlan())
    if isinstance(answer, Solved):
        assert small.keeps_rules(dict(answer.plan.nodes))
    elif isinstance(answer, ProvenImpossible):
        # The reference implementation ignores what no API server admits.
        assume("placeable" not in {one.rule for one in answer.conflict})
        assert not small.is_solvable()
        assert answer.is_minimal
    assert problem.index.records.keys() == small.of_product().index.records.keys()
    return answer


@settings(max_examples=100)
@given(seed=SEEDS)
def test_pods_with_many_rules_between_them(seed):
    assert not isinstance(answered(dense_problem(seed)), Undecided)


@settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(seed=SEEDS)
def test_as_many_members_of_a_group_as_possible(seed):
    small = dense_problem(seed)
    assume(any(least < len(names) for names, least, _ in small.groups))
    answer = exact.solve(small.of_product(), GroupPlan())
    most = max([len(plan) for plan in small.plans() if small.keeps_rules(plan)], default=0)
    assert (len(answer.plan.nodes) if isinstance(answer, Solved) else 0) == most


@pytest.mark.parametrize("preset", ["upstream", "design"])
@settings(max_examples=40)
@given(seed=SEEDS)
def test_pods_with_any_rules(preset, seed):
    small = any_problem(seed, preset)
    answer = answered(small)
    if isinstance(answer, Undecided):
        assert answer.reason.startswith(exact.NOT_COVERED.partition("{")[0])


@settings(max_examples=30)
@given(seed=SEEDS)
def test_the_check_of_plans_is_that_of_the_reference_implementation(seed):
    small = dense_problem(seed)
    problem = small.of_product()
    for number, plan in enumerate(small.plans()):
        if number % 5 == seed % 5:
            assert (plan_check.faults(problem, GroupPlan(plan)) == []) == small.keeps_rules(plan)
