"""The planted problems: their plans keep every rule, a broken plan is noticed, and the exact model finds plans."""

import copy
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import gen_planted  # noqa: E402
import planted as benchmark  # noqa: E402

from bayplan.grouping import exact  # noqa: E402
from bayplan.grouping.problem import GroupPlan, ProvenImpossible  # noqa: E402


@pytest.mark.parametrize("family", gen_planted.FAMILIES)
def test_every_planted_plan_keeps_the_rules(family):
    for seed in range(20):
        problem = gen_planted.planted(family, seed)
        assert gen_planted.violations(problem, problem["plan"]) == []
        assert gen_planted.MIN_PODS <= len(problem["pods"]) <= gen_planted.MAX_PODS
        assert 5 <= len(problem["nodes"]) <= 100
        assert problem == gen_planted.planted(family, seed)


@pytest.mark.parametrize("family, rule", [
    ("zone-affinity",        "breaks its pod"),
    ("mutual-anti-affinity", "breaks its pod"),
    ("spread",               "is skewed"),
    ("partners",             "breaks its podAffinity"),
    ("group-rules",          "is in several domains"),
    ("tight",                "is overcommitted"),
])  # fmt: skip
def test_a_broken_plan_is_noticed(family, rule):
    found = []
    for seed in range(5):
        problem = gen_planted.planted(family, seed)
        plan = copy.copy(problem["plan"])
        names = [node["metadata"]["name"] for node in problem["nodes"]]
        moved = random.Random(seed).sample(sorted(plan), min(5, len(plan)))
        plan |= {name: names[(names.index(plan[name]) + 1) % len(names)] for name in moved}
        found += gen_planted.violations(problem, plan)
    assert any(rule in text for text in found)
    assert gen_planted.violations(problem, {}) != []


def test_the_program_prints_one_problem():
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "gen_planted.py", "tight", "3"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == gen_planted.planted("tight", 3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("family", gen_planted.FAMILIES)
def test_the_exact_model_finds_a_plan(family, seed):
    planted = gen_planted.planted(family, seed)
    problem = benchmark.problem_of(planted)
    answer = exact.solve(problem, GroupPlan())
    assert gen_planted.violations(planted, answer.plan.nodes) == []
    assert answer == exact.solve(benchmark.problem_of(planted), GroupPlan())  # the same one each time
    assert not problem.index.records


@pytest.mark.parametrize("family", gen_planted.FAMILIES)
def test_a_plan_as_a_hint_is_found_again(family):
    planted = gen_planted.planted(family, 2)
    answer = exact.solve(benchmark.problem_of(planted), GroupPlan(planted["plan"]))
    assert gen_planted.violations(planted, answer.plan.nodes) == []


@pytest.mark.parametrize("family, seed", [("tight", 1), ("zone-affinity", 3), ("group-rules", 2)])
def test_one_pod_more_than_fits_is_proven(family, seed):
    """The nodes of a problem have hardly any room left, so that no pod of half a node fits as well."""
    planted = gen_planted.planted(family, seed)
    more = copy.deepcopy(planted["pods"][0])
    more["metadata"] = {"name": "more", "namespace": "default", "labels": {"app": "more"}}
    more["spec"] = {"containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "20"}}}]}
    planted["pods"].append(more)
    answer = exact.solve(benchmark.problem_of(planted), GroupPlan())
    assert isinstance(answer, ProvenImpossible)
    assert answer.is_minimal
    assert {one.rule for one in answer.conflict} == {"resources"}
