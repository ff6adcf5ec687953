"""What a node lacks for a pod that all other rules admit there."""

import pytest

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.explaining import shortages
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles
from bayplan.rules.resources_fit import ResourcesFit, ResourcesFitArguments

GPU = "example.com/gpu"


@pytest.fixture
def index():
    found = PlacementIndex()
    for name, cpu, memory in (("a", 1500, 8), ("b", 3000, 4), ("cordoned", 8000, 8)):
        amounts = (("cpu", cpu), ("memory", memory), ("pods", 10))
        found.add_target(Target(name=name, labels={}, allocatable=amounts, unschedulable=name == "cordoned"))
    return found


def smallest(index, rules, **amounts):
    needs = Needs(requests=Requests(amounts=tuple(amounts.items())))
    workload = Workload(namespace="web", name="large", labels={}, needs=needs)
    verdicts = filtering.run(workload, Engine(index, rules))
    admitted = shortages.admitted_but_for_resources(verdicts, index)
    found = shortages.smallest_shortage(admitted, shortages.counted_requests(workload, verdicts), index)
    return found.nearest, found.missing


def test_fractions_of_the_requests_are_compared(index):
    found = smallest(index, profiles.pod_rules(), cpu=4000, memory=8)
    assert found == ("a", (("cpu", 2500),)), "five eighths of the cpu; b lacks a quarter of it and half of the memory"


def test_what_a_profile_ignores_is_not_missing(index):
    ignoring = ResourcesFit(ResourcesFitArguments(ignored_resources=frozenset({GPU})))
    rules = tuple(ignoring if isinstance(rule, ResourcesFit) else rule for rule in profiles.pod_rules())
    assert smallest(index, profiles.pod_rules(), cpu=2000, **{GPU: 1}) == ("b", ((GPU, 1),))
    assert smallest(index, rules, cpu=4000, **{GPU: 1}) == ("b", (("cpu", 1000),))


def test_amounts_are_shown_as_they_are_written():
    assert (
        shortages.amounts_text((("cpu", 500), ("memory", 2**30), ("pods", 1)))
        == "500m cpu and 1Gi memory and 1 pod slot"
    )
    assert shortages.amounts_text((("pods", 2),)) == "2 pod slots"
