"""Decisions of upstream schedulers on benchmark inputs: as many placed as by Bayplan; a clear error without a build."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from live import kube_binaries
from live.conftest import skip_or_fail

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
OFFLINE = "dial tcp: lookup proxy: no such host"
GO_OFFLINE = f'#!/bin/sh\n[ "$1" = version ] && echo go1.26 || {{ echo "{OFFLINE}" >&2; exit 1; }}\n'


@pytest.fixture
def generated(tmp_path):
    def generate(generator, *sizes):
        command = [sys.executable, BENCHMARKS / generator, *map(str, sizes)]
        path = tmp_path / "input.json"
        path.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
        return path

    return generate


def run(*command, **environment):
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=900
    )


def peer(kind, path, **environment):
    return run(sys.executable, BENCHMARKS / "peers.py", kind, path, **environment)


def counts(kind, path):
    """Return how many were placed and not placed, by upstream and by Bayplan, each with its rate."""
    theirs = peer(kind, path)
    if theirs.returncode == kube_binaries.UNAVAILABLE:
        skip_or_fail(theirs.stderr.strip())
    assert theirs.returncode == 0, theirs.stderr
    ours = run(sys.executable, "-m", "bayplan", "bench", kind, path)
    assert ours.returncode == 0, ours.stderr
    return [json.loads(answer.stdout.splitlines()[-1]) for answer in (theirs, ours)]


@pytest.mark.live
@pytest.mark.timeout(900)  # the first builds
@pytest.mark.parametrize(
    "kind, nodes, init, pods, ok",
    [
        ("plain", 2, 0, 100, 80),  # forty to a node, by CPU
        ("anti", 10, 4, 8, 6),  # one to a node
        ("aff", 9, 3, 20, 20),
        ("aff", 9, 0, 20, 20),  # the first of a group fits every node
        ("spread", 9, 9, 20, 20),
        ("pref", 9, 9, 20, 20),
        ("prefanti", 9, 9, 20, 20),
        ("mixed", 12, 10, 60, 58),  # twelve with mutual anti-affinity, on ten free nodes
    ],
)
def test_kube_scheduler_places_as_many_pods(generated, kind, nodes, init, pods, ok):
    theirs, ours = counts("pods", generated("gen_pods.py", kind, nodes, init, pods))
    assert (theirs["ok"], theirs["fail"]) == (ours["ok"], ours["fail"]) == (ok, pods - ok)
    assert theirs["pods_per_s"] == pytest.approx(pods / theirs["seconds"])


@pytest.mark.live
@pytest.mark.timeout(900)
def test_pods_without_api_server_defaults_are_placed(generated):
    """Without a UID or the name of a scheduler, which an API server adds."""
    theirs, ours = counts("pods", generated("gen_templates.py", 3, 4, 6, 9))
    assert (theirs["ok"], theirs["fail"]) == (ours["ok"], ours["fail"]) == (6, 3)


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "kind, clusters, bindings, pending, ok",
    [
        ("ha", 1, 0, 6, 3),  # the second of each pair fits no other cluster
        ("ha", 2, 4, 6, 6),
        ("agg", 5, 4, 8, 8),
        ("dyn", 5, 4, 8, 8),
        ("overflow", 5, 4, 8, 8),
        ("mixed", 5, 4, 12, 12),
    ],
)
def test_karmada_scheduler_places_as_many_bindings(generated, kind, clusters, bindings, pending, ok):
    theirs, ours = counts("fleet", generated("gen_fleet.py", kind, clusters, bindings, pending))
    assert (theirs["ok"], theirs["fail"]) == (ours["ok"], ours["fail"]) == (ok, pending - ok)
    assert theirs["bindings_per_s"] == pytest.approx(pending / theirs["seconds"])


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.parametrize("spread", ["some", "region"])
def test_too_few_clusters_for_a_spread_constraint_is_an_answer(generated, spread):
    shape = ("fleet", f"spread={spread}", "regions=1")
    theirs, ours = counts("fleet", generated("shapes.py", "generate", *shape, 3, 4, 6))
    assert (theirs["ok"], theirs["fail"]) == (ours["ok"], ours["fail"]) == (3, 3)


@pytest.mark.parametrize("kind, name", [("pods", "kube-decisions"), ("fleet", "karmada-decisions")])
def test_without_modules_there_is_no_peer(tmp_path, kind, name):
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text(GO_OFFLINE, encoding="utf-8")
    go.chmod(0o755)
    answer = peer(kind, "any.json", PATH=str(go.parent), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert answer.returncode == kube_binaries.UNAVAILABLE
    assert f"{name} is left out: Go modules cannot be fetched: {OFFLINE}" in answer.stderr


def test_another_source_is_another_build(tmp_path):
    (tmp_path / "go.mod").touch()
    (tmp_path / "go.sum").touch()
    source = tmp_path / "main.go"
    keys = set()
    for text in ("package main", "package main // again"):
        source.write_text(text, encoding="utf-8")
        keys.add(kube_binaries._key(tmp_path, source))
    assert len(keys | {kube_binaries._key(tmp_path)}) == 3
