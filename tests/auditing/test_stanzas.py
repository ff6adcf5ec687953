"""A stanza that spreads replicas is proposed only after it was tried on the index."""

from bayplan.auditing import stanzas
from bayplan.auditing.workload_groups import ReplicaGroup
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target
from bayplan.model.terms import ZONE
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles

RULES = profiles.pod_rules()


def node(name, zone, cpu=4000):
    labels = {ZONE: zone}
    return Target(name=name, labels=labels, allocatable=(("cpu", cpu), ("memory", 8 << 30), ("pods", 10)))


def pod(name, cpu=1000, app="web"):
    amounts = (("cpu", cpu),)
    return Workload(
        namespace="shop", name=name, labels={"app": app}, needs=Needs(requests=Requests(amounts, amounts, amounts))
    )


def index_of(nodes, placed):
    index = PlacementIndex()
    for target in nodes:
        index.add_target(target)
    for workload, where in placed:
        index.add(workload, where)
    return index


def state(index):
    return {key: (record.workload, record.shares) for key, record in index.records.items()}


def replicas_on(index, *names, at_least=1):
    keys = tuple(f"shop/{name}" for name in names)
    return ReplicaGroup(stanzas.group_on_index("Deployment shop/web", keys, index, at_least=at_least), keys, "shop")


def test_a_spread_stanza_removes_a_single_point():
    index = index_of([node("a1", "a"), node("b1", "b")], [(pod("w1"), "a1"), (pod("w2"), "a1")])
    before = state(index)
    found = stanzas.find_stanza(replicas_on(index, "w1", "w2"), ZONE, Engine(index, RULES))
    assert (found.kind, found.works, found.single_points) == ("spread", True, ())
    assert sorted(target for _, target in found.placed) == ["a1", "b1"]
    [entry] = found.patch["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert entry == {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    assert state(index) == before


def test_a_soft_spread_where_a_full_zone_would_block_a_hard_one():
    other = [(pod("x", 3500, app="x"), "a1")]
    nodes = [node("a1", "a", 9000), node("b1", "b"), node("c1", "c", 100)]
    index = index_of(nodes, [(pod(f"w{i}"), "a1") for i in range(3)] + other)
    found = stanzas.find_stanza(replicas_on(index, "w0", "w1", "w2"), ZONE, Engine(index, RULES))
    assert found.kind == "soft spread"  # zone c holds none and has no room: hard rules leave a replica pending
    assert found.works


def test_a_stanza_that_does_not_help_names_the_remaining_problems():
    index = index_of([node("a1", "a"), node("b1", "b")], [(pod(f"w{i}"), "a1") for i in range(3)])
    found = stanzas.find_stanza(replicas_on(index, "w0", "w1", "w2", at_least=2), ZONE, Engine(index, RULES))
    assert (found.kind, found.works) == ("spread", False)
    assert len(found.single_points) == 1


def test_no_stanza_for_one_replica_or_for_no_common_label():
    index = index_of([node("a1", "a")], [(pod("w1"), "a1"), (pod("x", app="x"), "a1")])
    assert stanzas.find_stanza(replicas_on(index, "w1"), ZONE, Engine(index, RULES)) is None
    assert stanzas.find_stanza(replicas_on(index, "w1", "x"), ZONE, Engine(index, RULES)) is None


def test_anti_affinity_is_tried_if_requested():
    index = index_of([node("a1", "a"), node("b1", "b")], [(pod("w1"), "a1"), (pod("w2"), "a1")])
    ours = replicas_on(index, "w1", "w2")
    found = stanzas.find_stanza(ours, ZONE, Engine(index, RULES), kinds=(stanzas.ANTI_AFFINITY,))
    assert found.works
    terms = found.patch["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert terms == {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
