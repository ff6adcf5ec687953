"""Rules of `bayplan.io/placement` on policies and templates, in the loop of bindings on a control plane in memory."""

import json

import pytest

from bayplan.queueing.pending_pod import QueueStage
from bayplan.validating import yaml_text
from bayplan.watching.fleet_state import FleetState
from live import fleets
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


async def test_the_reason_of_a_refusal_is_that_of_the_labels_as_they_are_known_by_now(fleet):
    """The third is tried before it is known that both others are of its pipeline."""
    fleet.cluster("two")
    alone = {**EVERYWHERE, "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}
    for name, pipeline in (("first", "a"), ("second", "a")):
        fleet.template(name, flink(pipeline))
        fleet.bind(name, alone, annotations=OF_POLICY)
        await fleet.settle()
    third = fleet.state.templates
    unknown = [third._templates.pop(key) for key in list(third._templates)]
    for name in ("first", "second"):
        fleet.change(name, {"metadata": {"labels": {"read": "again"}}})
    fleet.report()
    fleet.template("third", flink("a"))
    fleet.bind("third", alone, annotations=OF_POLICY)
    await fleet.settle()
    assert "Deployment shop/first, Deployment shop/second are not known" in fleet.condition("third")["message"]
    fleet.now = 20
    fleet.template("first", unknown[0]["metadata"]["labels"])
    await fleet.settle()
    fleet.now = 40
    await fleet.settle()
    assert "labels of Deployment shop/second are not known" in fleet.condition("third")["message"]
    fleet.template("second", unknown[1]["metadata"]["labels"])
    await fleet.settle()
    fleet.now = 60
    await fleet.settle()
    assert fleet.condition("third")["reason"] == "NoClusterFit"
    assert fleet.condition("third")["message"].startswith("0/2 clusters are available: ")
    assert fleet.server.events[-1][1:] == ("ScheduleBindingFailed", fleet.condition("third")["message"] + " Blocked by shop/first-deployment in one, shop/second-deployment in two.")  # fmt: skip
    assert b"bayplan_missed_requeues_total 0.0" in fleet.parts.metrics.text()


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


async def test_kinds_are_named_from_the_first_binding_to_the_last(fleet):
    fleet.bind("web", EVERYWHERE)
    fleet.bind("api", EVERYWHERE)
    templates = fleet.state.templates
    assert templates.kinds == {DEPLOYMENT: 2}
    assert templates.kinds_changed.is_set()
    templates.kinds_changed.clear()
    fleet.delete("web")
    fleet.change("api", {"spec": {"replicas": 5}})
    fleet.report()
    assert not templates.kinds_changed.is_set()
    fleet.template("api", {})
    fleet.delete("api")
    assert templates.kinds_changed.is_set()
    assert not templates.kinds
    assert not templates._by_template
    templates.forget(DEPLOYMENT)
    assert not templates._templates


EVERYWHERE_ELSE = {**TERM, "namespaceSelector": {}}
ANYWHERE = json.dumps({"workloadAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [EVERYWHERE_ELSE]}})


@pytest.mark.parametrize("shows", [False, True])
async def test_a_template_of_another_namespace_whose_labels_are_not_known_is_named_only_if_configured(shows):
    fleet = FleetSimulation(names_other_namespaces=shows)
    fleet.cluster("one")
    for name in ("shop", "bank"):
        fleet.state.index.set_namespace(name, {})
    fleet.policy("apart", ANYWHERE)
    theirs = fleets.binding("vault", "bank", {"one": 1}, EVERYWHERE)
    fleet.server.put(theirs)
    fleet.report()
    fleet.template("web", flink("a"))
    fleet.bind("web", EVERYWHERE, annotations=OF_POLICY)
    await fleet.settle()
    message = fleet.condition("web")["message"]
    named = "Deployment bank/vault" if shows else "a workload of another namespace"
    assert message == f"labels of {named} are not known"
    assert {note for _, reason, note in fleet.server.events if reason == "ScheduleBindingFailed"} == {message}


async def test_a_binding_that_cannot_be_read_is_named_as_one_whose_labels_are_not_known(fleet):
    fleet.bind("broken", EVERYWHERE, {"one": 2}, annotations={"bayplan.io/workload-labels": "[]"})
    fleet.template("web", flink("a"))
    fleet.bind("web", EVERYWHERE, annotations=OF_POLICY)
    await fleet.settle()
    assert fleet.condition("web")["message"] == "labels of Deployment shop/broken are not known"


@pytest.mark.parametrize(
    "text", [ANTI_AFFINITY, "workloadAntiAffinity: 3", "{"], ids=["valid", "wrong type", "no YAML"]
)
async def test_the_annotation_of_a_policy_is_parsed_once_for_all_its_bindings(fleet, monkeypatch, text):
    text += " " * 7  # a text that no other test has
    parsed, parse = [], yaml_text.parse
    monkeypatch.setattr(yaml_text, "parse", lambda one: parsed.append(one) or parse(one))
    for number in range(20):
        fleet.template(f"w{number}", flink(str(number)))
        fleet.bind(f"w{number}", EVERYWHERE, annotations=OF_POLICY)
    await fleet.settle()
    del parsed[:]
    fleet.policy("apart", text)
    fleet.now = 20
    await fleet.settle()
    assert len(parsed) <= 2, "once to check it, once to read it"


DIVIDED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
SETTLED = {**EVERYWHERE, "replicaScheduling": DIVIDED}  # scheduled again only for a reason


async def many_bindings(fleet, count):
    fleet.policy("apart", None)
    for number in range(count):
        fleet.template(f"w{number}", flink(str(number)))
        fleet.bind(f"w{number}", SETTLED, annotations=OF_POLICY)
    await fleet.settle()


async def test_the_bindings_of_an_edited_policy_are_read_a_few_at_a_time(fleet, monkeypatch):
    await many_bindings(fleet, 20)
    read, own = [], FleetState._read
    monkeypatch.setattr(FleetState, "_read", lambda state, written: read.append(written) or own(state, written))
    fleet.policy("apart", ANTI_AFFINITY)
    assert read == [], "the watch waits for none of them"
    fleet.state.read_again(lambda: True)
    assert len(read) == 1
    fleet.now = 20
    await fleet.settle()
    assert not fleet.state.has_to_read
    for number in range(20):
        assert "workloadAntiAffinity" in fleet.of(f"w{number}")["metadata"]["annotations"][APPLIED]


@pytest.mark.parametrize("meanwhile", ["report", "template", "deletion", "the policy is edited back"])
async def test_what_happens_before_a_binding_is_read_again_hides_no_change_of_its_policy(fleet, meanwhile):
    await many_bindings(fleet, 3)
    fleet.policy("apart", ANTI_AFFINITY)
    if meanwhile == "report":
        fleet.change("w0", {"metadata": {"labels": {"seen": "now"}}})
        fleet.report()
    elif meanwhile == "template":
        fleet.template("w0", flink("another"))
    elif meanwhile == "deletion":
        fleet.delete("w0")
        fleet.bind("w0", SETTLED, annotations=OF_POLICY)
    else:
        fleet.policy("apart", None)
    fleet.now = 20
    await fleet.settle()
    expected = meanwhile != "the policy is edited back"
    for number in range(3):
        annotations = fleet.of(f"w{number}")["metadata"]["annotations"]
        assert ("workloadAntiAffinity" in annotations[APPLIED]) is expected
        assert fleet.shares(f"w{number}") == {"one": 2}
    assert not fleet.state.has_to_read
    assert b"bayplan_missed_requeues_total 0.0" in fleet.parts.metrics.text()


async def test_a_binding_that_is_due_is_tried_by_the_policy_as_it_is(fleet):
    """It is in the queue already when its policy changes, and is not tried by what was read before."""
    await many_bindings(fleet, 3)
    fleet.bind("late", SETTLED, annotations=OF_POLICY)
    fleet.template("late", flink("1"))
    fleet.policy("apart", ANTI_AFFINITY)
    fleet.state.read_again = lambda _out_of_time: None
    fleet.scheduler.step()
    await fleet.scheduler.idle()
    del fleet.state.read_again
    fleet.now = 20
    await fleet.settle()
    assert fleet.shares("late") == {}
    assert fleet.condition("late")["reason"] == "NoClusterFit"


async def test_the_loop_goes_on_until_all_are_read_also_if_none_of_them_is_due(fleet):
    await many_bindings(fleet, 5)
    for number in range(5):
        fleet.change(f"w{number}", {"spec": {"suspension": {"scheduling": True}}})
    fleet.report()
    own = fleet.state.read_again
    fleet.state.read_again = lambda _out_of_time: own(lambda: True)
    fleet.policy("apart", ANTI_AFFINITY)
    steps = 0
    while fleet.scheduler.step():
        steps += 1
    assert not fleet.state.has_to_read
    assert steps >= 4
