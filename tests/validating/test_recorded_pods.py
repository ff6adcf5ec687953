"""The 600 pods that a real kube-apiserver v1.36.4 was asked about."""

import gzip
import json
import pathlib
from collections import Counter

from bayplan.validating import admission

RECORDED = pathlib.Path(__file__).parents[1] / "upstream" / "admission.jsonl.gz"


def recorded_pods():
    with gzip.open(RECORDED, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    return [case for case in cases if case["object"]["kind"] == "Pod"]


def test_every_recorded_pod_is_judged_as_the_api_server_judged_it():
    cases = recorded_pods()
    assert len(cases) == 600
    for case in cases:
        wanted = Counter((c["reason"], c["field"], c["message"]) for c in case["expect"]["causes"])
        found = Counter((c.reason, c.field, c.message) for c in admission.validate(case["object"]))
        assert found == wanted, case["name"]
