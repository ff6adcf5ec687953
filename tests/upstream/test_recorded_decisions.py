"""Every recorded decision of the real components is ours too."""

import gzip
import json
from pathlib import Path

import pytest

from asking import comparable, engine_answer

HERE = Path(__file__).parent


def recorded(kind):
    with gzip.open(HERE / f"{kind}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


PODS = recorded("pods")
PROFILES = sorted({case["name"].rsplit("-", 2)[0] for case in PODS})


@pytest.mark.parametrize("stressed", PROFILES)
def test_pods_go_where_kube_scheduler_puts_them(stressed):
    cases = [case for case in PODS if case["name"].rsplit("-", 2)[0] == stressed]
    for case in cases:
        question = {key: value for key, value in case.items() if key != "expect"}
        assert comparable(engine_answer(question)) == comparable(case["expect"]), case["name"]
