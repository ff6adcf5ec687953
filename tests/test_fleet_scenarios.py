"""Every fleet scenario holds, whoever answers."""

import pytest

import fleet_scenarios
from asking import fleet_engine_answer
from slow_twins import fleet as slow_twin

ENGINES = {"slow twin": slow_twin.answer, "engine": fleet_engine_answer}
CASES = fleet_scenarios.all_cases()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=[case.question["name"] for case in CASES])
def test_scenario(case, engine):
    case.check(ENGINES[engine](case.question))
