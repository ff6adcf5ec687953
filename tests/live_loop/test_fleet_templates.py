"""Rules of `bayplan.io/placement` on policies and templates, in the loop of bindings on a control plane in memory."""

import json

import pytest

from bayplan.queueing.pending_pod import QueueStage
from live_loop.fleet_simulated import DEPLOYMENT, FleetSimulation

EVERYWHERE = {"clusterAffinity": {}}
APPLIED = "policy.karmada.io/applied-placement"
OF_POLICY = {"propagationpolicy.karmada.io/namespace": "shop", "propagationpolicy.karmada.io/name": "apart"}
TERM = {"labelSelector": {"matchLabels": {"app": "flink"}}, "matchLabelKeys": ["pipeline"]}
ANTI_AFFINITY = json.dumps({"workloadAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}})


def flink(pipeline):
    return {"app": "flink", "pipeline": pipeline}


@pytest.fixture
def fleet():
    simulation = FleetSimulation()
    simulation.cluster("one")
    simulation.policy("apart", ANTI_AFFINITY)
    return simulation


async def test_the_annotation_of_the_policy_and_the_labels_of_the_template_decide(fleet):
    for name, pipeline in (("first", "a"), ("second", "a"), ("other", "b")):
        fleet.template(name, flink(pipeline))
        fleet.bind(name, EVERYWHERE, annotations=OF_POLICY)
        await fleet.settle()
    assert fleet.shares("first") == fleet.shares("other") == {"one": 2}
    assert fleet.shares("second") == {}
    assert fleet.condition("second")["reason"] == "NoClusterFit"
    applied = json.loads(fleet.of("first")["metadata"]["annotations"][APPLIED])
    assert applied == {**EVERYWHERE, **json.loads(ANTI_AFFINITY)}


async def test_unknown_labels_leave_a_workload_unscheduled_until_they_are_known(fleet):
    fleet.template("first", flink("a"))
    fleet.bind("first", EVERYWHERE, annotations=OF_POLICY)
    await fleet.settle()
    fleet.bind("second", EVERYWHERE, annotations=OF_POLICY)
    await fleet.settle()
    assert fleet.shares("second") == {}
    assert fleet.condition("second")["reason"] == "Unschedulable"
    notes = [note for _, reason, note in fleet.server.events if reason == "ScheduleBindingFailed"]
    for text in (fleet.condition("second")["message"], notes[0]):
        assert "Deployment shop/second are not known" in text
    fleet.now = 20
    fleet.template("second", flink("b"))
    await fleet.settle()
    assert fleet.shares("second") == {"one": 2}


async def test_a_peer_that_is_relabelled_blocks_no_longer(fleet):
    for name in ("first", "second"):
        fleet.template(name, flink("a"))
        fleet.bind(name, EVERYWHERE, annotations=OF_POLICY)
        await fleet.settle()
    (waiting,) = fleet.state.queue.pods.values()
    assert waiting.stage is QueueStage.UNSCHEDULABLE
    fleet.now = 20
    fleet.template("first", flink("z"))
    await fleet.settle()
    assert fleet.shares("first") == fleet.shares("second") == {"one": 2}


async def test_an_edited_annotation_of_a_policy_is_noticed(fleet):
    fleet.cluster("two", cpu="1000")
    where = {"clusterAffinity": {"clusterNames": ["one", "two"]}, "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}  # fmt: skip
    for name in ("first", "second"):
        fleet.template(name, flink("a"))
        fleet.bind(name, where)
        await fleet.settle()
        fleet.change(name, {"metadata": {"annotations": OF_POLICY}})
        fleet.report()
        await fleet.settle()
    fleet.policy("apart", None)
    await fleet.settle()
    fleet.policy("apart", ANTI_AFFINITY)
    await fleet.settle()
    applied = json.loads(fleet.of("first")["metadata"]["annotations"][APPLIED])
    assert "workloadAntiAffinity" in applied


@pytest.mark.parametrize("text", ["{", "workloadAntiAffinity: 3", "replicaScheduling: {}"])
async def test_a_malformed_annotation_of_a_policy_is_an_error_of_its_bindings(fleet, text):
    fleet.policy("apart", text)
    fleet.template("web", {})
    fleet.bind("web", EVERYWHERE, annotations=OF_POLICY)
    fleet.bind("fine", EVERYWHERE)
    await fleet.settle()
    assert fleet.shares("web") == {}
    assert fleet.condition("web")["reason"] == "SchedulerError"
    assert "bayplan.io/placement" in fleet.condition("web")["message"]
    assert fleet.shares("fine") == {"one": 2}
    fleet.policy("apart", None)
    await fleet.settle()
    assert fleet.shares("web") == {"one": 2}


async def test_the_annotation_of_a_template_counts(fleet):
    fleet.template("first", flink("a"), {"bayplan.io/placement": ANTI_AFFINITY})
    fleet.template("second", flink("a"), {"bayplan.io/placement": ANTI_AFFINITY})
    for name in ("first", "second"):
        fleet.bind(name, EVERYWHERE)
        await fleet.settle()
    assert (fleet.shares("first"), fleet.shares("second")) == ({"one": 2}, {})
    fleet.now = 20
    fleet.template("second", flink("a"))
    await fleet.settle()
    assert fleet.shares("second") == {}, "the term of the first one is symmetric"


async def test_kinds_are_named_once(fleet):
    fleet.bind("web", EVERYWHERE)
    assert fleet.state.templates.kinds == {DEPLOYMENT}
    assert fleet.state.templates.kind_named.is_set()
    fleet.delete("web")
    assert not fleet.state.templates._by_template
