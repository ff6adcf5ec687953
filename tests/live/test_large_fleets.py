"""Random fleets of more clusters than Go sorts in a stable way are divided as by karmada-scheduler's own code."""

import os
import random

import pytest

from asking import comparable_fleet, fleet_engine_answer
from live import kube_binaries, oracles
from live.conftest import skip_or_fail
from reference.fleet import strategies

COUNT = int(os.environ.get("BAYPLAN_LARGE_FLEETS", "60"))
FIRST = int(os.environ.get("BAYPLAN_LARGE_FLEETS_SEED", "1"))


@pytest.mark.live
@pytest.mark.timeout(900)  # the first builds
def test_aggregated_replicas_of_large_fleets_go_where_karmada_scheduler_puts_them():
    seeds = range(FIRST, FIRST + COUNT)
    questions = [
        {**strategies.large_fleet(strategies.Dice(random.Random(seed).randrange)), "name": f"fleet {seed}"}
        for seed in seeds
    ]
    try:
        answers = oracles.answers("fleet", questions)
    except kube_binaries.UnavailableError as reason:
        skip_or_fail(str(reason))
    for question, answer in zip(questions, answers, strict=True):
        assert comparable_fleet(fleet_engine_answer(question)) == comparable_fleet(answer), question["name"]
