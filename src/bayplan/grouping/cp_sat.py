"""
Solve a linear model with the CP-SAT solver of OR-tools, in counted steps and one thread: the same answer each time.

Knows nothing of pods. A model with `details` is first solved without them, and they are filled in: in which domain each
pod is decides most, and a search that begins with nodes finds that out late.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec
from ortools.sat.python import cp_model

from bayplan.grouping.linear_model import Constraint, LinearModel

MAX_STEPS = 10.0  # of a model, in CP-SAT's deterministic time: each takes a processor about a second
# How long a search takes depends much on its seed, so several short ones find more than a long one.
MAX_OUTLINES = 4
SHARE_OF_OUTLINE = 0.16  # of the steps, for one solution without the details
SHARE_OF_DETAILS = 0.1
TOLERANCE = 1e-6  # of a bound, which is no whole number
MAX_SECONDS = 120.0  # only met by a machine much slower than those that the steps were measured on


class SolverBudget:
    """The steps that are left, of those that there were."""

    def __init__(self, steps: float = MAX_STEPS) -> None:
        self.all = self.left = steps


class ModelAnswer(msgspec.Struct, frozen=True):
    """
    The values of a solution; None if there is none (`is_impossible`), or none was found.

    What is maximised is proven to be at most `bound`, if that is known.
    """

    values: Sequence[int] | None = None
    is_impossible: bool = False
    bound: int | None = None

    @property
    def is_decided(self) -> bool:
        return self.is_impossible or self.values is not None


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """
    One search: the constraints, how many steps it may take, and where to begin.

    `fixed` are values of variables, `forbidden` what they may not all be. `by_relaxation`: one search that follows the
    linear relaxation, which packs best, instead of several that take turns.
    """

    constraints: Sequence[Constraint]
    steps: float
    seed: int
    hint: Mapping[int, int] = {}
    fixed: Mapping[int, int] = {}
    forbidden: Sequence[Mapping[int, int]] = ()
    by_relaxation: bool = False
    optimises: bool = True


def solve(model: LinearModel, hint: Mapping[int, int], seed: int, budget: SolverBudget) -> ModelAnswer:
    """A solution of the model, the best that is found if there is something to maximise."""
    outlined = _solve_outline_first(model, hint, seed, budget) if len(model.details) < len(model.upper) else None
    if outlined is not None:
        if outlined.is_impossible or not model.objective:
            return outlined
        hint = dict(enumerate(outlined.values or ()))
    run = _Run(constraints=model.constraints, steps=budget.left / 3, seed=seed, hint=hint, by_relaxation=True)
    found = _search(model, run, budget)
    if not found.is_decided or model.objective:
        better = msgspec.structs.replace(run, steps=budget.left, by_relaxation=False, hint=_values(found) or hint)
        found = _best(model, found, _search(model, better, budget))
    return found if found.is_decided else outlined or found


def maximise(model: LinearModel, hint: Mapping[int, int], seed: int, budget: SolverBudget) -> ModelAnswer:
    """The best solution that is found, beginning with the hint, and a proven bound of what is maximised."""
    return _search(model, _Run(constraints=model.constraints, steps=budget.left, seed=seed, hint=hint), budget)


def _solve_outline_first(
    model: LinearModel, hint: Mapping[int, int], seed: int, budget: SolverBudget
) -> ModelAnswer | None:
    """A solution of the model without its details, filled in; None if none is found that way."""
    rest = [one for one in model.constraints if model.details.isdisjoint([variable for variable, _ in one.terms])]
    forbidden: list[Mapping[int, int]] = []
    for attempt in range(MAX_OUTLINES):
        outline = _search(
            model,
            _Run(
                constraints=rest,
                steps=budget.all * SHARE_OF_OUTLINE,
                seed=seed + attempt,
                hint=hint,
                forbidden=forbidden,
                optimises=False,
            ),
            budget,
        )
        if outline.is_impossible:
            return None if forbidden else outline
        if outline.values is None:
            continue
        fixed = {one: value for one, value in enumerate(outline.values) if one not in model.details}
        steps = budget.all * SHARE_OF_DETAILS
        found = _search(model, _Run(constraints=model.constraints, steps=steps, seed=seed, fixed=fixed), budget)
        if found.values is not None:
            return found
        forbidden.append(fixed)
    return None


def _values(answer: ModelAnswer) -> dict[int, int]:
    return dict(enumerate(answer.values or ()))


def _best(model: LinearModel, one: ModelAnswer, other: ModelAnswer) -> ModelAnswer:
    """The better solution of two searches, or what either has proven."""
    if one.values is None or other.values is None:
        return one if one.is_decided and not other.is_decided else other
    one_sum, other_sum = (
        sum(factor * found[v] for v, factor in model.objective) for found in (one.values, other.values)
    )
    return one if one_sum > other_sum else other


def is_satisfiable(model: LinearModel, rules: Collection[int], seed: int, budget: SolverBudget) -> bool | None:
    """Whether the constraints of these rules have a common solution; None if the budget does not suffice."""
    kept = frozenset(rules)
    some = [one for one in model.constraints if kept.issuperset(one.rules)]
    found = _search(model, _Run(constraints=some, steps=budget.left, seed=seed, optimises=False), budget)
    return found.values is not None if found.is_decided else None


def conflicting_rules(model: LinearModel, seed: int, budget: SolverBudget) -> set[int] | None:
    """Rules whose constraints have no common solution, not necessarily few; None if that is not found."""
    program, _, literals = _program(model, model.constraints, with_literals=True)
    program.add_assumptions(list(literals.values()))
    solver = _solver(seed, budget.left)
    status = solver.solve(program)
    budget.left -= solver.response_proto.deterministic_time
    if status != cp_model.INFEASIBLE:
        return None
    rule_of = {literal.index: rule for rule, literal in literals.items()}
    return {rule_of[index] for index in solver.sufficient_assumptions_for_infeasibility()}


def _search(model: LinearModel, run: _Run, budget: SolverBudget) -> ModelAnswer:
    steps = min(budget.left, run.steps)
    if steps <= 0:
        return ModelAnswer()
    program, variables, _ = _program(model, run.constraints)
    for one, value in run.hint.items():
        program.add_hint(variables[one], value)
    for one, value in run.fixed.items():
        program.add(variables[one] == value)
    for some in run.forbidden:
        program.add_forbidden_assignments([variables[one] for one in some], [list(some.values())])
    if model.objective and run.optimises:
        program.maximize(_sum(variables, model.objective))
    solver = _solver(run.seed, steps)
    if run.by_relaxation:
        solver.parameters.interleave_search = False
        solver.parameters.linearization_level = 2
    status = solver.solve(program)
    budget.left -= solver.response_proto.deterministic_time
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        bound = math.floor(solver.best_objective_bound + TOLERANCE) if program.has_objective() else None
        return ModelAnswer([solver.value(one) for one in variables], bound=bound)
    assert status != cp_model.MODEL_INVALID, program.validate()
    return ModelAnswer(is_impossible=status == cp_model.INFEASIBLE)


def _program(
    model: LinearModel, constraints: Sequence[Constraint], *, with_literals: bool = False
) -> tuple[cp_model.CpModel, list[cp_model.IntVar], dict[int, cp_model.IntVar]]:
    """The constraints for CP-SAT, the variables, and those that say of each rule whether it holds, if wanted."""
    program = cp_model.CpModel()
    variables = [program.new_int_var(0, upper, "") for upper in model.upper]
    numbers = sorted({rule for one in constraints for rule in one.rules}) if with_literals else []
    literals = {rule: program.new_bool_var("") for rule in numbers}
    for one in constraints:
        added = program.add(_sum(variables, one.terms) <= one.most)
        when = [] if one.when is None else [variables[one.when]]
        when += [literals[rule] for rule in one.rules if with_literals]
        if when:
            added.only_enforce_if(*when)
    return program, variables, literals


def _sum(variables: Sequence[cp_model.IntVar], terms: Sequence[tuple[int, int]]) -> cp_model.LinearExpr:
    return cp_model.LinearExpr.weighted_sum(
        [variables[variable] for variable, _ in terms], [factor for _, factor in terms]
    )


def _solver(seed: int, steps: float) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.interleave_search = True  # several strategies take turns, so that the answer repeats
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = steps
    solver.parameters.max_time_in_seconds = MAX_SECONDS
    return solver
