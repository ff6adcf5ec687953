"""The capacity that the index shows is always what clusters report, less the load of results that they do not show yet."""

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.model.semantics import UPSTREAM
from bayplan.model.targets import ReplicaDemand
from bayplan.watching.fleet_capacity import FleetCapacity
from bayplan.wire.fleets import Cluster, ResourceBinding
from live import fleets

CLUSTERS, BINDINGS = ("one", "two", "three"), ("a", "b", "c")
cluster, name = st.sampled_from(CLUSTERS), st.sampled_from(BINDINGS)
shares = st.dictionaries(cluster, st.integers(1, 9), max_size=3)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("report"), cluster, st.integers(0, 50)),
        st.tuples(st.just("drop"), cluster),
        st.tuples(st.just("place"), name, shares),
        st.tuples(st.just("follow"), name, shares),
        st.tuples(st.just("health"), name, cluster, st.sampled_from(["Healthy", "Unhealthy"]), st.integers(0, 3)),
        st.tuples(st.just("release"), name),
        st.tuples(st.just("estimate"), st.dictionaries(cluster, st.integers(-1, 9), max_size=3)),
        st.tuples(st.just("wait"), st.sampled_from([1, 14, 61, 299])),
    ),
    max_size=30,
)
DEMAND = ReplicaDemand(claim="{}")


class Checked:
    """A FleetCapacity with its index, and beside it the last reports, results and statuses."""

    def __init__(self):
        self.now = 0.0
        self.index = PlacementIndex(UPSTREAM, "", lost_targets_count=True)
        self.capacity = FleetCapacity(self.index, lambda: self.now)
        self.reported, self.had, self.said = {}, {}, {}

    def report(self, cluster, cpu):
        self.reported[cluster] = cpu
        target = self.capacity.put(
            targets.target_of_cluster(msgspec.convert(fleets.cluster(cluster, str(cpu)), Cluster))
        )
        (self.index.update_target if cluster in self.index.slots.by_name else self.index.add_target)(target)

    def drop(self, cluster):
        if self.reported.pop(cluster, None) is not None:
            self.capacity.drop(cluster)
            self.index.remove_target(cluster)

    def place(self, name, shares):
        self.capacity.placed(workload(name), shares.items(), self.had.get(name, {}))
        self.capacity.assume(workload(name), shares.items(), self.had.get(name, {}))
        self.had[name] = shares

    def follow(self, name, shares):
        self.capacity.follow(workload(name), list(shares.items()))
        self.had[name] = shares

    def health(self, name, cluster, health, number):
        content = fleets.binding(name, "shop", {}, {})
        items = [{"clusterName": cluster, "health": health, "status": {"replicas": number}}]
        now = msgspec.convert({**content, "status": {"aggregatedStatus": items}}, ResourceBinding)
        self.capacity.note_health(workload(name).key, self.said.get(name), now)
        self.said[name] = now

    def release(self, name):
        self.capacity.release(workload(name).key)

    def estimate(self, answers):
        self.capacity.put_estimates(DEMAND, answers)

    def wait(self, seconds):
        self.now += seconds
        self.capacity.expire(self.now)

    def check(self):
        loads = self.capacity._loads
        assert {key for of in loads.values() for key in of} == set(self.capacity._loaded_by)
        for cluster, cpu in self.reported.items():
            taken = sum(count for one in loads.get(cluster, {}).values() for _, count in one.load)
            report = self.index.cluster_capacity.reports[self.index.slots.by_name[cluster]]
            assert report.free["cpu"] == 1000 * max(0, cpu - taken)
            assert report.estimates == dict(self.capacity.estimates.of(cluster))
        assert all(
            one.load and 0 < sum(count for _, count in one.load) <= one.replicas
            for of in loads.values()
            for one in of.values()
        )
        ends = [one.until for of in loads.values() for one in of.values()]
        assert self.capacity.next_at <= max(min(ends, default=math.inf), self.now + 1)


def workload(name):
    return bindings.workload_of(msgspec.convert(fleets.binding(name, "shop", {}, {}), ResourceBinding))


@given(changes)
def test_the_index_shows_what_is_reported_less_what_was_placed(changes):
    checked = Checked()
    checked.report("one", 20)
    for method, *arguments in changes:
        getattr(checked, method)(*arguments)
        checked.check()
    checked.wait(400)
    assert not checked.capacity.n_loads
    checked.check()
