"""Answers of accurate estimators in the decisions about bindings, on a control plane in memory."""

import itertools

import pytest

from bayplan.live.assembly import EstimatorSettings
from live_loop.fleet_simulated import FleetSimulation

DIVIDED = {
    "clusterAffinity": {},
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
}
SETTINGS = EstimatorSettings("{cluster}:1", "ca.pem")


class Answers:
    """Estimators that answer at once: `replicas` by cluster, None for none. `asked` are the questions."""

    def __init__(self, estimators):
        self.replicas, self.asked = {}, []
        estimators._answer = self._answer

    async def _answer(self, name, demand):
        self.asked.append((name, demand.claim))
        found = self.replicas.get(name)
        return -1 if found is None else found


@pytest.fixture
def fleet():
    simulation = FleetSimulation(estimator=SETTINGS)
    for name in ("one", "two"):
        simulation.cluster(name)
    simulation.answers = Answers(simulation.parts.estimators)
    return simulation


async def test_the_least_of_all_estimates_counts_and_a_cluster_without_an_answer_is_estimated_by_its_report(fleet):
    fleet.answers.replicas = {"one": 2}
    fleet.bind("web", DIVIDED, replicas=10)
    await fleet.settle()
    assert fleet.shares("web") == {"two": 10}  # 2 to 100 by available replicas
    fleet.answers.replicas = {"one": 2, "two": 3}
    fleet.bind("api", DIVIDED, replicas=5, replicaRequirements={"resourceRequest": {"cpu": "2"}})
    await fleet.settle()
    assert fleet.shares("api") == {"one": 2, "two": 3}


async def test_an_estimate_above_the_report_adds_nothing(fleet):
    fleet.answers.replicas = {"one": 500, "two": 0}
    fleet.bind("web", DIVIDED, replicas=101)
    await fleet.settle()
    assert "available replicas 100 are not enough" in fleet.condition("web")["message"]


async def test_clusters_that_report_while_they_are_asked_hold_nothing_up(fleet):
    numbers = itertools.count(200)

    async def reporting(_name, _demand):
        fleet.cluster("one", cpu=str(next(numbers)))  # which outdates the answer
        return 5

    fleet.parts.estimators._answer = reporting
    fleet.bind("web", DIVIDED, replicas=4)
    await fleet.settle()
    assert sum(fleet.shares("web").values()) == 4
    assert next(numbers) < 210


async def test_answers_are_kept_by_class_and_what_was_placed_is_subtracted(fleet):
    fleet.answers.replicas = {"one": 4, "two": 0}
    for name in ("a", "b", "c"):
        fleet.bind(name, DIVIDED, replicas=2)
    await fleet.settle()
    assert [fleet.shares(name) for name in ("a", "b", "c")] == [{"one": 2}, {"one": 2}, {}]
    assert sorted(name for name, _ in fleet.answers.asked) == ["one", "two"]


async def test_an_unschedulable_binding_is_estimated_again_when_its_cluster_reports(fleet):
    fleet.answers.replicas = {"one": 1, "two": 0}
    fleet.bind("web", DIVIDED, replicas=2)
    await fleet.settle()
    assert fleet.condition("web")["reason"] == "Unschedulable"
    fleet.answers.replicas = {"one": 2, "two": 0}
    fleet.cluster("one", cpu="101")
    await fleet.settle()
    fleet.now = 2
    await fleet.settle()
    assert fleet.shares("web") == {"one": 2}


async def test_an_old_answer_keeps_nothing_waiting(fleet):
    fleet.answers.replicas = {"one": 1, "two": 0}
    fleet.bind("web", DIVIDED, replicas=2)
    await fleet.settle()
    fleet.answers.replicas = {"one": 2, "two": 0}
    fleet.now = 61
    await fleet.settle()
    fleet.now = 70
    await fleet.settle()
    assert fleet.shares("web") == {"one": 2}


async def test_what_is_asked_is_all_that_the_binding_requires(fleet):
    required = {
        "nodeClaim": {"nodeSelector": {"disk": "ssd"}},
        "namespace": "shop",
        "priorityClassName": "high",
        "resourceRequest": {"cpu": "500m"},
    }
    fleet.bind("web", DIVIDED, replicaRequirements=required)
    await fleet.settle()
    ((_, claim), _) = fleet.answers.asked
    for text in ('"disk":"ssd"', '"namespace":"shop"', '"priorityClassName":"high"', '"cpu":"500m"'):
        assert text in claim


async def test_resources_without_replicas_and_huge_requirements_are_not_asked_about(fleet):
    fleet.bind("config", DIVIDED, replicas=0)
    huge = {"resourceRequest": {"cpu": "1"}, "nodeClaim": {"nodeSelector": {"a": "x" * 20000}}}
    fleet.bind("huge", DIVIDED, replicaRequirements=huge)
    await fleet.settle()
    assert not fleet.answers.asked
    assert sum(fleet.shares("huge").values()) == 2


async def test_the_classes_that_are_kept_are_bounded(fleet, monkeypatch):
    monkeypatch.setattr("bayplan.watching.estimates.MAX_CLASSES", 8)
    fleet.answers.replicas = {"one": 100, "two": 100}
    for number in range(30):
        fleet.bind(f"web-{number}", DIVIDED, replicaRequirements={"resourceRequest": {"cpu": f"{number + 1}m"}})
    await fleet.settle()
    index = fleet.parts.index
    assert all(len(index.slots.at(slot).cluster.estimates) <= 8 for slot in index.slots.by_name.values())
    assert all(sum(fleet.shares(f"web-{number}").values()) == 2 for number in range(30))
