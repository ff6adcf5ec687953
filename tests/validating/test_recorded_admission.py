"""The 600 pods recorded with kube-apiserver v1.36.4, and the 600 policies with the rules of Karmada v1.18.2's webhook."""

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


def test_every_recorded_pod_has_the_causes_of_the_api_server():
    cases = recorded_pods()
    assert len(cases) == 600
    for case in cases:
        expected = Counter((c["reason"], c["field"], c["message"]) for c in case["expect"]["causes"])
        found = Counter((c.reason, c.field, c.message) for c in admission.validate(case["object"]))
        assert found == expected, case["name"]


def recorded_policies():
    with gzip.open(RECORDED, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    return [case for case in cases if case["object"]["kind"] != "Pod"]


def without_value(cause, recorded):
    """The cause as recorded: its message cut to the detail that it ends with."""
    details = [c["detail"] for c in recorded if (c["reason"], c["field"]) == (cause.reason, cause.field)]
    ends = [detail for detail in details if cause.message.endswith(f": {detail}")]
    return cause.reason, cause.field, max(ends, key=len, default=cause.message)


def test_every_recorded_policy_has_the_causes_of_karmada():
    cases = recorded_policies()
    assert len(cases) == 600
    for case in cases:
        recorded = case["expect"]["causes"]
        expected = Counter((c["reason"], c["field"], c["detail"]) for c in recorded)
        found = Counter(without_value(cause, recorded) for cause in admission.validate(case["object"]))
        assert found == expected, case["name"]
