"""The planted problems of groups: their plans keep every rule, and the check of plans notices a broken one."""

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
