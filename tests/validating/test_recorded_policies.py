"""The 600 policies that Karmada v1.18.2's webhook rules were asked about."""

import gzip
import json
import pathlib
from collections import Counter

from bayplan.validating import admission

RECORDED = pathlib.Path(__file__).parents[1] / "upstream" / "admission.jsonl.gz"


def recorded_policies():
    with gzip.open(RECORDED, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    return [case for case in cases if case["object"]["kind"] != "Pod"]


def without_value(cause, recorded):
    """The cause as recorded: its message cut to the detail that it ends with."""
    details = [c["detail"] for c in recorded if (c["reason"], c["field"]) == (cause.reason, cause.field)]
    ends = [detail for detail in details if cause.message.endswith(f": {detail}")]
    return cause.reason, cause.field, max(ends, key=len, default=cause.message)


def test_every_recorded_policy_is_judged_as_karmada_judged_it():
    cases = recorded_policies()
    assert len(cases) == 600
    for case in cases:
        recorded = case["expect"]["causes"]
        wanted = Counter((c["reason"], c["field"], c["detail"]) for c in recorded)
        found = Counter(without_value(cause, recorded) for cause in admission.validate(case["object"]))
        assert found == wanted, case["name"]
