"""Readers in other threads see complete states of the index, each of them one that it was in."""

import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_binding
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine.engine import Engine
from bayplan.explaining import explanation
from bayplan.indexing.followers import Follower
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.model.semantics import DESIGN, UPSTREAM, for_fleets
from bayplan.rules import fleet_profile
from bayplan.wire.fleets import Cluster, ResourceBinding
from properties.changing import ChangingCluster


def cluster(name, region="eu", cpu="100"):
    allocatable = {"cpu": cpu, "memory": "100Gi", "pods": "1000"}
    status = {
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
        "resourceSummary": {"allocatable": allocatable},
    }
    written = {"metadata": {"name": name, "labels": {}}, "spec": {"region": region}, "status": status}
    return targets.target_of_cluster(msgspec.convert(written, Cluster))


def binding(name, group, replicas=2):
    spec = {
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name, "uid": name},
        "replicas": replicas,
        "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
        "placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]},
        "workloadAffinityGroups": {"antiAffinityGroup": f"ha={group}"},
    }
    written = {"metadata": {"name": f"{name}-deployment", "namespace": "default"}, "spec": spec}
    return bindings.workload_of(msgspec.convert(written, ResourceBinding))


def fleet(n_clusters):
    index = PlacementIndex(for_fleets(UPSTREAM), lost_targets_count=True)
    for i in range(n_clusters):
        index.add_target(cluster(f"c{i:04}"))
    return index


@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_follower_answers_like_its_leader(semantics, seed):
    changing = ChangingCluster(seed, semantics)
    follower = Follower(changing.index)
    engine = Engine(follower.catch_up(), changing.rules)
    for _ in range(20):
        changing.step()
        if changing.chance.random() < 0.3:
            assert follower.catch_up() is engine.index
            assert changing.answers(engine) == changing.fresh_answers()
    assert follower.catch_up() is engine.index
    assert changing.answers(engine) == changing.fresh_answers()
    assert follower.n_copied == 1


def test_tentative_changes_are_never_visible():
    leader = fleet(3)
    follower = Follower(leader)
    with leader.tentatively():
        leader.add_shares(binding("a", "x"), [("c0000", 2)])
        assert not follower.catch_up().records
    assert not follower.catch_up().records
    leader.add_shares(binding("a", "x"), [("c0000", 2)])
    assert len(follower.catch_up().records) == 1


@pytest.mark.parametrize(
    "change, n_corrected",
    [
        (lambda leader: leader.update_target(cluster("c0500", cpu="7")), 0),  # no rule reads the capacity
        (lambda leader: leader.update_target(cluster("c0500", region="us")), 4),  # its peers stay where they are
        (lambda leader: leader.add_target(cluster("c1000")), 5),
        (lambda leader: leader.remove_target("c0007"), 5),
    ],
    ids=["capacity", "region", "added", "deleted"],
)
def test_a_change_of_one_cluster_among_a_thousand_refreshes_one_cluster(change, n_corrected):
    leader = fleet(1000)
    follower = Follower(leader)
    engine = FleetEngine(follower.catch_up(), fleet_profile.fleet_rules())
    schedule_binding.schedule(binding("a", "x"), engine)
    evaluations = engine.evaluations
    applied, full, corrected = follower.n_applied, evaluations.n_full, evaluations.n_corrected
    change(leader)
    assert follower.catch_up() is engine.index
    schedule_binding.schedule(binding("a", "x"), engine)
    assert (follower.n_applied - applied, follower.n_copied) == (1, 1)
    assert evaluations.n_full == full
    assert evaluations.n_corrected - corrected == n_corrected


def test_a_follower_that_is_too_far_behind_copies_the_index():
    leader = fleet(2)
    follower = Follower(leader)
    for i in range(10_000):
        leader.set_namespace("default", {"n": str(i)})
    assert follower.catch_up().peer_index.namespaces["default"] == {"n": "9999"}
    assert follower.n_copied == 2


def test_readers_explain_while_a_writer_places():
    """The answer of every reader is that of a state between two placements, and no reader hangs."""
    leader = fleet(12)
    engine = FleetEngine(leader, fleet_profile.fleet_rules())
    pending = [binding(f"w{i}", i % 4) for i in range(40)]
    explained = binding("explained", 1)
    done, failures, seen = threading.Event(), [], []

    def read():
        mine = Follower(leader)
        own_engine = FleetEngine(mine.catch_up(), fleet_profile.fleet_rules())
        while not done.is_set():
            index = mine.catch_up()
            assert index is own_engine.index
            placed = frozenset((key, record.shares) for key, record in index.records.items())
            found = explanation.explain_binding(explained, own_engine)
            seen.append((placed, tuple(v.name for v in found.targets if v.fits)))

    def reading():
        try:
            read()
        except Exception as error:  # noqa: BLE001 (reported by the main thread)
            failures.append(error)

    readers = [threading.Thread(target=reading) for _ in range(3)]
    for reader in readers:
        reader.start()
    states = [frozenset()]
    for i, workload in enumerate(pending):
        decision = schedule_binding.schedule(workload, engine)
        leader.add_shares(workload, decision.shares)
        states.append(_state(leader))
        if i % 5 == 4:
            leader.update_target(cluster(f"c{i % 12:04}", cpu=str(50 + i)))
            leader.replace(msgspec.structs.replace(workload, priority=i))
    done.set()
    for reader in readers:
        reader.join(timeout=60)
        assert not reader.is_alive()
    assert not failures
    assert {placed for placed, _ in seen} <= set(states)
    for placed, fits in seen:
        blocked = {name for key, shares in placed if int(key[9:].split("-")[0]) % 4 == 1 for name, _ in shares}
        assert blocked.isdisjoint(fits)
        assert len(blocked) + len(fits) == 12


def _state(index):
    return frozenset((key, record.shares) for key, record in index.records.items())
