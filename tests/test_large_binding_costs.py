"""Twice as large a placement takes twice as much work, whatever it has much of: counted in executed lines."""

import asyncio
import functools
import json

import pytest

import large_bindings
from bayplan.mapping import bindings
from fuzzing import running
from live import fleets
from live_loop.fleet_simulated import FleetSimulation
from test_large_pod_costs import n_lines

N = 80


def scheduled(placement, name):
    """The binding is reported, and scheduled or refused."""

    async def run():
        fleet = FleetSimulation(max_binding_constraints=0)
        for cluster in ("one", "two", "three"):
            fleet.cluster(cluster)
        fleet.bind(name, placement)
        await fleet.settle()
        assert fleet.condition(name)

    asyncio.run(run())


def decided(placement, name):
    question = {"name": name, "clusters": [fleets.cluster("one", "10")], "binding": {"spec": {"placement": placement}}}
    outcome = running.run(["decide", "fleet"], {}, json.dumps(question).encode())
    assert outcome.failure == "", outcome.detail
    assert outcome.code == 0, outcome.stdout


def validated(placement, name):
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": placement},
    }
    outcome = running.run(["validate", "-f", "doc"], {"doc": json.dumps(policy).encode()})
    assert outcome.failure == "", outcome.detail


@pytest.mark.parametrize("door", [scheduled, decided, validated], ids=lambda door: door.__name__)
@pytest.mark.parametrize("kind", large_bindings.PLACEMENTS)
def test_the_work_grows_with_the_size_of_the_placement(kind, door, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(bindings, "_MAX_CACHED_LENGTH", 0)  # large ones are not remembered
    work = {}
    for prefix, n in (("warm", N), ("small", N), ("twice", 2 * N)):
        placement = large_bindings.PLACEMENTS[kind](large_bindings.names(n, prefix))
        work[prefix] = n_lines(functools.partial(door, placement, prefix))
    assert work["twice"] < 2.3 * work["small"], work
