"""Every placement of the benchmarks is one that the reference implementation allows."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.cli import benchmarks
from bayplan.rules import profiles
from reference import fleet as reference_fleet
from reference import pods as reference_pods

GENERATORS = Path(__file__).parents[1] / "benchmarks"


def generated(generator, *arguments):
    command = [sys.executable, GENERATORS / generator, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def placements(kind, content):
    return [dict(line) for line in benchmarks.BENCHMARKS[kind](content, profiles.pod_rules())().lines()]


@pytest.mark.parametrize("kind", ["anti", "aff", "pref", "prefanti", "mixed", "plain", "spread"])
def test_pods_are_placed_as_by_the_reference_implementation(kind):
    content = generated("gen_pods.py", kind, 12, 18, 20)
    given = json.loads(content)
    running = given["init"]
    for pod, placed in zip(given["pods"], placements("pods", content), strict=True):
        answer = reference_pods.answer({"nodes": given["nodes"], "pods": running, "pod": pod})
        assert placed["node"] in (answer["best"] or [""])
        if placed["node"]:
            running.append({**pod, "spec": {**pod["spec"], "nodeName": placed["node"]}})


@pytest.mark.parametrize("kind", ["ha", "agg", "dyn", "overflow", "mixed"])
def test_bindings_are_placed_as_by_the_reference_implementation(kind):
    content = generated("gen_fleet.py", kind, 8, 20, 12)
    given = json.loads(content)
    scheduled = given["bindings"]
    for binding, placed in zip(given["pending"], placements("fleet", content), strict=True):
        answer = reference_fleet.answer({"clusters": given["clusters"], "bindings": scheduled, "binding": binding})
        by_name = [sorted((c["name"], c["replicas"]) for c in one["clusters"]) for one in (answer, placed)]
        assert by_name[0] == by_name[1]
        scheduled.append({**binding, "spec": {**binding["spec"], "clusters": answer["clusters"]}})
