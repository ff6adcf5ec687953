"""Whatever happens to a fleet, and in whatever order it is reported: the loop of bindings ends where it should."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from live_loop.fleet_simulated import FleetSimulation

CLUSTERS, NAMES, PAIRS = ("one", "two", "three"), ("a0", "a1", "b0", "b1"), "ab"
PLACEMENTS = (
    {"clusterAffinity": {}, "replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
    {
        "clusterAffinity": {},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    },
    {
        "clusterAffinities": [
            {"affinityName": "first", "clusterNames": ["one"]},
            {"affinityName": "second", "clusterNames": ["two", "three"]},
        ],
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    },
)
APART = {"antiAffinity": {"groupByLabelKey": "pair"}}

names, clusters = st.sampled_from(NAMES), st.sampled_from(CLUSTERS)
actions = st.one_of(
    st.tuples(st.just("create"), names, st.integers(0, 2), st.integers(1, 5)),
    st.tuples(st.just("scale"), names, st.integers(1, 6)),
    st.tuples(st.just("evict"), names),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("status"), names),
    st.tuples(st.just("suspend"), names, st.booleans()),
    st.tuples(st.just("cluster"), clusters, st.sampled_from(["0", "1", "3", "10"]), st.integers(1, 3)),
    st.tuples(st.just("leave"), clusters),
    st.tuples(st.just("report")),
    st.tuples(st.just("step")),
    st.tuples(st.just("lose")),
    st.tuples(st.just("wait"), st.integers(1, 20)),
)


class Play:
    """Applies actions to a simulation; `replicas` and `evicted` are what others have written last."""

    def __init__(self):
        self.fleet = FleetSimulation()
        self.replicas, self.evicted = {}, {}
        for name in CLUSTERS:
            self.fleet.cluster(name, cpu="10")

    def apply(self, action):
        kind, *rest = action
        getattr(self, kind)(*rest)

    def exists(self, name):
        return f"shop/{name}-deployment" in self.fleet.server.bindings

    def create(self, name, placement, replicas):
        if not self.exists(name):
            groups = {"antiAffinityGroup": f"pair={name[0]}"}
            content = {**PLACEMENTS[placement], "workloadAffinity": APART}
            self.fleet.bind(name, content, replicas=replicas, workloadAffinityGroups=groups)
            self.replicas[name], self.evicted[name] = replicas, set()

    def scale(self, name, replicas):
        if self.exists(name):
            self.fleet.change(name, {"spec": {"replicas": replicas}})
            self.replicas[name] = replicas

    def evict(self, name):
        where = sorted(self.fleet.shares(name)) if self.exists(name) else ()
        if where:
            left = [one for one in self.fleet.of(name)["spec"]["clusters"] if one["name"] != where[0]]
            self.evicted[name].add(where[0])
            tasks = [{"fromCluster": one, "purgeMode": "Gracefully"} for one in sorted(self.evicted[name])]
            self.fleet.change(name, {"spec": {"clusters": left or None, "gracefulEvictionTasks": tasks}})

    def delete(self, name):
        if self.exists(name):
            self.fleet.delete(name)
            del self.replicas[name], self.evicted[name]

    def status(self, name):
        if self.exists(name):
            own = [self.fleet.condition(name)] if self.fleet.condition(name) else []
            foreign = {"type": "FullyApplied", "status": "True"}
            self.fleet.change(name, {"status": {"conditions": [foreign, *own]}})

    def suspend(self, name, is_suspended):
        if self.exists(name):
            self.fleet.change(name, {"spec": {"suspension": {"scheduling": is_suspended}}})

    def cluster(self, name, cpu, generation):
        self.fleet.cluster(name, cpu=cpu, generation=generation)

    def leave(self, name):
        self.fleet.state.drop_cluster(name)

    def report(self):
        self.fleet.report()

    def step(self):
        self.fleet.scheduler.step()

    def lose(self):
        self.fleet.server.lost_answers += 1

    def wait(self, seconds):
        self.fleet.now += seconds


async def play(script):
    """Apply the actions, with writes in progress between them, and then let everything settle."""
    playing = Play()
    for action in script:
        playing.apply(action)
        await asyncio.sleep(0)
    fleet = playing.fleet
    fleet.server.lost_answers = 0
    for name in CLUSTERS:
        if name not in fleet.state.index.slots.by_name:
            fleet.cluster(name, cpu="10", generation=9)
    for name in NAMES:
        playing.suspend(name, False)
    fleet.report()
    for pause in (20, 20, 301, 20, 0):  # the last but one lets the sweep look at all
        await fleet.settle()
        fleet.now += pause
    return playing


@given(st.lists(actions, max_size=40))
def test_nothing_is_lost_overwritten_or_broken(script):
    asyncio.run(check(script))


async def check(script):
    playing = await play(script)
    fleet = playing.fleet
    for name, replicas in playing.replicas.items():
        found, shares = fleet.of(name), fleet.shares(name)
        assert found["spec"]["replicas"] == replicas, "a newer write was overwritten"
        tasks = {one["fromCluster"] for one in found["spec"].get("gracefulEvictionTasks", ())}
        assert tasks == playing.evicted[name], "an eviction was undone"
        assert not tasks & shares.keys(), "it is back where it was evicted from"
        assert fleet.counted(name) == shares, "the index differs from the server"
        condition = fleet.condition(name)
        assert condition, "it was never decided about"
        if condition["status"] == "True":
            assert found["status"]["schedulerObservedGeneration"] == found["metadata"]["generation"]
            assert shares
        else:
            workload = fleet.state.workloads[f"shop/{name}-deployment"]
            decision = fleet.scheduler._evaluator.decision(workload)
            assert not decision.placed, "it fits, and was not woken"
            assert condition["reason"] == decision.reason, "the reason is no longer true"
    for pair in PAIRS:
        sides = [set(fleet.shares(name)) for name in (f"{pair}0", f"{pair}1") if playing.exists(name)]
        assert len(sides) < 2 or not sides[0] & sides[1], "a hard rule is broken"
    assert not fleet.state.writing
    assert not fleet.state.assumed
    assert b"bayplan_missed_requeues_total 0.0" in fleet.parts.metrics.text()
