"""Placing pods one after another: what a placed pod carries, and what an unschedulable one is told."""

from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import equals
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, REGION, ZONE, AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.placing import place_pods
from bayplan.rules import profiles

RULES = profiles.pod_rules()


def node(name, cpu=1000, **labels):
    return Target(
        name=name, labels={HOSTNAME: name, **labels}, allocatable=(("cpu", cpu), ("memory", 1000), ("pods", 10))
    )


def pod(name, cpu=100, memory=1, terms=None, **labels):
    amounts = (("cpu", cpu), ("memory", memory))
    requests = Requests(amounts, amounts, amounts)
    needs = Needs(requests=requests, affinity=terms or AffinityTerms())
    return Workload(namespace="default", name=name, labels=labels, needs=needs)


def test_the_message_of_an_unschedulable_class_follows_the_cluster():
    index = PlacementIndex()
    engine = Engine(index, RULES)
    index.add_target(node("a"))
    index.add(pod("full", cpu=500), "a")
    first = place_pods.place(pod("one", cpu=800, memory=800), engine)
    again = place_pods.place(pod("two", cpu=800, memory=800), engine)
    index.add(pod("fuller", cpu=0, memory=500), "a")
    later = place_pods.place(pod("three", cpu=800, memory=800), engine)
    assert first.message == again.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert later.message == "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."
    assert later.reasons == {"Insufficient cpu": 1, "Insufficient memory": 1}


def test_a_placed_pod_carries_the_zone_and_region_of_its_node():
    index = PlacementIndex()
    engine = Engine(index, RULES)
    index.add_target(node("a", **{ZONE: "z1", REGION: "r1", "disk": "ssd"}))
    place_pods.place(pod("one", app="web"), engine)
    assert index.records["default/one"].workload.labels == {"app": "web", ZONE: "z1", REGION: "r1"}


def test_terms_match_the_zone_that_a_placed_pod_carries():
    index = PlacementIndex()
    engine = Engine(index, RULES)
    for name, zone in (("a", "z1"), ("b", "z2")):
        index.add_target(node(name, **{ZONE: zone}))
    place_pods.place(pod("one"), engine)
    taken = index.records["default/one"].shares[0][0]
    own_zone = "z1" if taken == "a" else "z2"
    apart = AffinityTerms(anti_required=(PodTerm(equals({ZONE: own_zone}), HOSTNAME),))
    assert place_pods.place(pod("two", terms=apart), engine).target == ("b" if taken == "a" else "a")
