"""
Decide a problem exactly: a plan that the engine has checked, a set of rules that no plan keeps, or neither in time.

The model is made of what the rules say; CP-SAT solves it. A plan of the model that breaks a rule which the model does
not cover is no plan, so then the problem is undecided. A model without a solution is a proof all the same, because
every constraint follows from rules. Needs the package `ortools`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from bayplan.grouping import model_affinity, model_capacity, model_spread, plan_check
from bayplan.grouping.plan_model import ModelTooLargeError, PlanModel, RuleKey
from bayplan.grouping.problem import (
    Answer,
    ConflictingRule,
    GroupPlan,
    GroupProblem,
    ProvenImpossible,
    Solved,
    Undecided,
)
from bayplan.indexing.slots import rank_of
from bayplan.model.workloads import Workload

STAGE = "exact"
TOO_LARGE = "the problem is too large for the exact model"
NOT_IN_TIME = "the exact model was not decided in its number of steps"
NOT_COVERED = "the plan of the exact model breaks a rule that it does not cover: {}"


def model_of(
    problem: GroupProblem, *, every_node: bool = False, apart: Callable[[Workload], Hashable] = lambda _: None
) -> PlanModel:
    """The linear model of a problem; raises `ModelTooLargeError`."""
    model = PlanModel(problem, every_node=every_node, apart=apart)
    found = [*model_capacity.rejections(model), *model_affinity.rejections(model), *model_spread.rejections(model)]
    model.add_counts(found)
    rooms = model_capacity.add_resources(model)
    model_capacity.add_ports(model)
    model_spread.add(model)
    model_affinity.add(model)
    model_affinity.add_groups(model)
    model.add_domains()
    model_capacity.add_rooms_of_domains(model, rooms)
    return model


def solve(problem: GroupProblem, hint: GroupPlan, steps: float | None = None) -> Answer:
    """The answer to a problem; `hint` is the best part of a plan so far. The index is as before in the end."""
    from bayplan.grouping import cp_sat  # needs a package that is optional

    seed = rank_of(problem.index.slots.seed, "exact") % 2**30
    budget = cp_sat.SolverBudget() if steps is None else cp_sat.SolverBudget(steps)
    try:
        model = model_of(problem)
    except ModelTooLargeError:
        return Undecided(hint, TOO_LARGE)
    found = cp_sat.solve(model.linear, model.values_of(hint), seed, budget)
    if found.values is not None:
        plan = model.plan_of(found.values)
        broken = plan_check.faults(problem, plan)
        return Undecided(hint, NOT_COVERED.format(broken[0])) if broken else Solved(plan, STAGE)
    if not found.is_impossible:
        return Undecided(hint, NOT_IN_TIME)
    return _conflict(problem, seed, steps)


def _conflict(problem: GroupProblem, seed: int, steps: float | None) -> ProvenImpossible:
    """Rules that no plan keeps, few of them: without any one, the model of the others has a solution."""
    from bayplan.grouping import cp_sat

    budget = cp_sat.SolverBudget() if steps is None else cp_sat.SolverBudget(steps)
    try:
        model = model_of(problem, every_node=True)
    except ModelTooLargeError:
        return ProvenImpossible((), is_minimal=False)
    linear = model.linear
    rules = cp_sat.conflicting_rules(linear, seed, budget)
    if rules is None:
        rules = set(range(len(linear.rules)))
    is_minimal = True
    for rule in sorted(rules, reverse=True):
        without = cp_sat.is_satisfiable(linear, rules - {rule}, seed, budget)
        if without is None:
            is_minimal = False
        elif not without:
            rules = rules - {rule}
    return ProvenImpossible(tuple(_named(model, sorted(rules))), is_minimal=is_minimal)


def _named(model: PlanModel, rules: Iterable[int]) -> Iterable[ConflictingRule]:
    for rule in rules:
        key = model.linear.rules[rule]
        assert isinstance(key, RuleKey)
        yield ConflictingRule(key.rule, tuple(sorted(model.pods_of_rule[rule])), key.path, key.detail)
