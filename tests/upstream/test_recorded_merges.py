"""Manifests are merged into objects as kubectl's three-way strategic merge patch does."""

import copy
import gzip
import json
from pathlib import Path

from bayplan.controllers import applying
from bayplan.reading import checking

HERE = Path(__file__).parent


def test_objects_are_merged_as_by_kubectl():
    with gzip.open(HERE / "apply.jsonl.gz", "rt") as lines:
        cases = [json.loads(line) for line in lines]
    assert len(cases) == 500
    for case in cases:
        current = copy.deepcopy(case["current"])
        if case["last"] is not None:
            current["metadata"]["annotations"] = {applying.LAST_APPLIED: json.dumps(case["last"])}
        found = applying.applied(current, case["manifest"], checking.field_table(), "Deployment")
        found["metadata"].pop("annotations", None)
        assert found == case["expect"]
