"""The estimates of all clusters at once equal those of each, whatever clusters report and however they change."""

import random
from fractions import Fraction

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.assigning import estimating
from bayplan.indexing.capacity import MAX_ARRAY_GRADES, capacity_report_of
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import targets
from bayplan.mapping.targets import amounts_of
from bayplan.model.bindings import ReplicaDemand
from bayplan.model.targets import ClusterFacts, NodeGrade, ResourceSummary, Target
from bayplan.wire.fleets import Cluster
from reference.fleet import estimator, strategies
from reference.fleet.objects import Cluster as ReferenceCluster
from reference.strategies import Dice

SIZES = [0, 1, 999, 2**31 - 1, 2**31, 2**32 - 1, 2**62 - 1, 2**62, 2**63, 10**30]
AMOUNTS = st.sampled_from([Fraction(size, unit) for size in SIZES for unit in (1, 7, 1000)])
RESOURCES = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "example.com/gpu", "gpu"]), AMOUNTS, max_size=4)
GRADES = st.builds(
    NodeGrade,
    count=st.sampled_from([0, 1, 5, 2**28, 2**40]),
    least=RESOURCES.map(lambda amounts: tuple(amounts.items())),
    pods=st.sampled_from([0, 1, 110, 2**30]),
)
FACTS = st.builds(
    ClusterFacts,
    summary=st.none()
    | st.builds(ResourceSummary, *[RESOURCES.map(lambda amounts: tuple(amounts.items())) for _ in range(3)]),
    grades=st.none() | st.lists(GRADES, max_size=3).map(tuple),
)
TALL = ClusterFacts(
    summary=ResourceSummary((("pods", Fraction(10**6)),)),
    grades=tuple(NodeGrade(1, (("cpu", Fraction(i)),)) for i in range(MAX_ARRAY_GRADES + 1)),
)


@settings(max_examples=300, deadline=None)
@given(facts=st.lists(FACTS, min_size=1, max_size=5), asked=st.none() | RESOURCES)
@example(facts=[TALL], asked={"cpu": Fraction(2)})
@example(facts=[ClusterFacts(summary=TALL.summary, grades=())], asked={})
def test_estimates_of_all_clusters_are_those_of_each(facts, asked):
    index = PlacementIndex()
    for i, one in enumerate(facts):
        index.add_target(Target(name=f"m{i}", labels={}, cluster=one))
    requests = None if asked is None else tuple(asked.items())
    replica = None if requests is None else estimating.replica_requests(requests)
    found = estimating.estimate_replicas(ReplicaDemand(requests), index)
    for i, one in enumerate(facts):
        assert found[index.slots.by_name[f"m{i}"]] == estimating.max_replicas(replica, capacity_report_of(one))


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_estimates_are_those_of_the_reference_implementation_through_every_change(seed):
    chance = random.Random(seed)
    dice, index, written = Dice(chance.randrange), PlacementIndex(), {}
    for step in range(12):
        name = f"m{chance.randrange(6)}"
        if name in written and step % 4 == 3:
            index.remove_target(name)
            del written[name]
            continue
        known = name in written
        written[name] = strategies.cluster(dice, name)
        target = targets.target_of_cluster(msgspec.convert(written[name], Cluster))
        index.update_target(target) if known else index.add_target(target)
    asked = strategies.request(dice)
    for requirements in (None, {"resourceRequest": asked}):
        demand = None if requirements is None else ReplicaDemand(amounts_of(asked))
        found = estimating.estimate_replicas(demand, index)
        for name, cluster in written.items():
            assert found[index.slots.by_name[name]] == estimator.most_replicas(requirements, ReferenceCluster(cluster))
