"""Pods placed again as their controllers recreate them: what is left of the old pod, and how the new one is spread."""

import msgspec
import pytest

from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods
from bayplan.mapping.pods import SpreadContext
from bayplan.model import labels as label_model
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, REGION, ZONE, AffinityTerms, PodTerm
from bayplan.model.workloads import (
    ControllerReference,
    Needs,
    Requests,
    SpreadConstraint,
    SpreadRequirements,
    Workload,
)
from bayplan.placing import place_pods, recreating
from bayplan.rules import profiles
from bayplan.wire.controllers import Service

NOTHING = SpreadContext(services={}, controllers={}, priorities={})
SELECTING_WEB = label_model.equals({"app": "web"})
WEB_SET = ControllerReference("apps/v1", "ReplicaSet", "web-1")


def node(name, zone="", cpu=1000):
    labels = {HOSTNAME: name, **({ZONE: zone, REGION: f"region-of-{zone}"} if zone else {})}
    return Target(name=name, labels=labels, allocatable=(("cpu", cpu), ("memory", 1 << 30), ("pods", 10)))


def pod(name, cpu=100, controller=None, needs=None, **labels):
    amounts = (("cpu", cpu), ("memory", 1))
    made = Needs(requests=Requests(amounts, amounts, amounts), **(needs or {}))
    return Workload(namespace="shop", name=name, labels=labels, needs=made, controller=controller)


def engine_of(nodes, placed=()):
    index = PlacementIndex()
    for target in nodes:
        index.add_target(target)
    for workload, where in placed:
        index.add(workload, where)
    return Engine(index, profiles.pod_rules())


def service(namespace="shop", **selector):
    written = {"metadata": {"name": "web", "namespace": namespace}, "spec": {"selector": selector}}
    return msgspec.convert(written, Service)


def context_of(*services, **selectors):
    context = SpreadContext(services={}, controllers={}, priorities={})
    for one in services:
        context.add_service(one)
    for name, selector in selectors.items():
        context.controllers["ReplicaSet", "shop", name.replace("_", "-")] = selector
    return context


def recreated(workload, where, context=NOTHING, nodes=None):
    index = engine_of(nodes or [node("a", "x")], [(workload, where)]).index
    return recreating.as_recreated(index.records[workload.key], index, context)


def test_nothing_remains_of_what_happened_to_the_old_pod():
    template = msgspec.structs.replace(pod("web-1", app="web"), priority=5, created="2026-01-01T00:00:00Z")
    old = msgspec.structs.replace(
        template,
        uid="1",
        started="2026-01-01T00:00:05Z",
        terminating=True,
        preempted=True,
        requested_target="a",
        nominated_target="a",
    )
    assert recreated(old, "a") == template


@pytest.mark.parametrize("labels, kept", [
    ({ZONE: "x", REGION: "region-of-x"}, {}),
    ({ZONE: "y"}, {ZONE: "y"}),  # of its template: binding would have written the zone of the node
    ({"app": "web", ZONE: "x", "rack": "x"}, {"app": "web", "rack": "x"}),
])  # fmt: skip
def test_the_labels_that_binding_copied_from_the_node_are_gone(labels, kept):
    assert recreated(pod("web-1", **labels), "a").labels == kept


@pytest.mark.parametrize("where", ["bare", "unknown"])
def test_a_node_without_a_zone_or_unknown_has_given_the_pod_no_labels(where):
    old = pod("web-1", **{ZONE: "x"})
    assert recreated(old, where, nodes=[node("bare")]).labels == {ZONE: "x"}


OWN = SpreadRequirements((SpreadConstraint(1, ZONE, True, SELECTING_WEB),))


@pytest.mark.parametrize("context, controller, own, selected", [
    (context_of(service(app="web")), None, None, {"app": "web"}),
    (context_of(service(app="api")), None, None, None),
    (context_of(service("store", app="web")), None, None, None),
    (context_of(web_1=label_model.equals({"set": "1"})), WEB_SET, None, {"set": "1"}),
    (context_of(web_2=label_model.equals({"set": "1"})), WEB_SET, None, None),
    (context_of(service(app="web"), web_1=label_model.equals({"set": "1"})), WEB_SET, None, {"app": "web", "set": "1"}),
    (context_of(service(app="web")), None, OWN, None),  # its own constraints replace those by default
])  # fmt: skip
def test_the_new_pod_is_spread_by_those_that_select_it(context, controller, own, selected):
    old = pod("web-1", controller=controller, needs={"spread": own} if own else None, app="web")
    found = recreated(old, "a", context).needs.spread
    assert found.default_selector == (None if selected is None else label_model.equals(selected))
    assert found.constraints == (OWN.constraints if own else ())


def test_replicas_share_their_needs_as_recreated():
    index = engine_of([node("a")], [(pod(f"web-{i}", app="web"), "a") for i in range(2)]).index
    context = context_of(service(app="web"))
    one, other = (recreating.as_recreated(placed, index, context).needs for placed in index.records.values())
    assert one == other
    assert one is other


def test_a_running_pod_is_placed_again_where_its_replacement_would_be_placed():
    """b has more free resources, but also the other pods of the Service, which the default spread avoids."""
    nodes = [node("a", cpu=100), node("b", cpu=4000), node("c", cpu=1000)]
    peers = [(pod(f"web-{i}", cpu=10, app="web"), "b") for i in range(3)]
    context = context_of(service(app="web"))
    engine = engine_of(nodes, [*peers, (pod("web-9", app="web"), "a")])
    with engine.index.tentatively():
        placement = recreating.place_again("shop/web-9", engine, context)
        assert engine.index.records["shop/web-9"].shares == ((placement.target, 1),)
    new = pods.with_spread_context(pod("new", app="web"), context)
    assert placement.target == "c"
    assert placement.target == place_pods.place(new, engine).target
    assert recreating.place_again("shop/web-9", engine, NOTHING).target == "b"


def test_the_zone_of_the_old_node_does_not_follow_the_pod():
    """A pod on b rejects pods with the label of zone x: the old pod has it, its replacement has not."""
    rejecting = AffinityTerms(anti_required=(PodTerm(label_model.equals({ZONE: "x"}), HOSTNAME),))
    placed = [
        (pod("web-1", cpu=900, **{ZONE: "x", REGION: "region-of-x"}), "a"),
        (pod("full", cpu=500), "a"),
        (pod("strict", needs={"affinity": rejecting}), "b"),
    ]
    engine = engine_of([node("a", "x"), node("b", "y")], placed)
    assert recreating.place_again("shop/web-1", engine, NOTHING).target == "b"
    assert engine.index.records["shop/web-1"].workload.labels == {ZONE: "y", REGION: "region-of-y"}


def test_a_pod_that_fits_nowhere_any_more_is_removed():
    engine = engine_of([node("a", cpu=50)], [(pod("web-1"), "a")])
    placement = recreating.place_again("shop/web-1", engine, NOTHING)
    assert (placement.target, placement.message) == ("", "0/1 nodes are available: 1 Insufficient cpu.")
    assert "shop/web-1" not in engine.index.records
