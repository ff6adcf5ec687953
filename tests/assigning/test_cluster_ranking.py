"""The cost of scheduling a binding, counted in evaluations, estimates and sorts, never in seconds."""

import msgspec
import pytest

from bayplan import schedule_binding
from bayplan.assigning import candidates, cluster_ranking, estimating
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.model.reasons import Reason, StatusCode
from bayplan.model.semantics import UPSTREAM, for_fleets
from bayplan.placing import place_bindings
from bayplan.rules import fleet_profile
from bayplan.rules.rule import LiftedBy, PartRule
from bayplan.wire.fleets import Cluster, ResourceBinding

AGGREGATED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}
ONE = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}


def cluster(name, cpu="1000", pods="5000", kind="Deployment", **labels):
    status = {
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": kind}]}],
        "resourceSummary": {"allocatable": {"cpu": cpu, "pods": pods}},
    }
    return targets.target_of_cluster(
        msgspec.convert({"metadata": {"name": name, "labels": labels}, "status": status}, Cluster)
    )


def binding(name, placement=AGGREGATED, cpu="1", **spec):
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name, "uid": name}
    written = {
        "metadata": {"name": f"{name}-deployment", "namespace": "default"},
        "spec": {
            "resource": resource,
            "replicas": 2,
            "replicaRequirements": {"resourceRequest": {"cpu": cpu}},
            "placement": placement,
            **spec,
        },
    }
    return bindings.workload_of(msgspec.convert(written, ResourceBinding))


def fleet(n_clusters=40, n_bindings=0):
    index = PlacementIndex(for_fleets(UPSTREAM), lost_targets_count=True)
    for i in range(n_clusters):
        index.add_target(cluster(f"m{i:03}"))
    for i in range(n_bindings):
        group = {"antiAffinityGroup": f"ha={i}"}
        index.add_shares(binding(f"old-{i}", workloadAffinityGroups=group), [(f"m{i % n_clusters:03}", 2)])
    return FleetEngine(index, fleet_profile.fleet_rules())


class Costs:
    """Counts calls while a test runs."""

    def __init__(self, monkeypatch):
        self.estimates = self._counted(monkeypatch, estimating, "estimate_replicas")
        self.sorts = self._counted(monkeypatch, candidates, "ordered_candidates")

    @staticmethod
    def _counted(monkeypatch, module, name):
        calls, original = [], getattr(module, name)

        def counting(*arguments):
            calls.append(arguments)
            return original(*arguments)

        monkeypatch.setattr(module, name, counting)
        return calls


@pytest.fixture
def costs(monkeypatch):
    return Costs(monkeypatch)


def decide(engine, *workloads):
    for workload in workloads:
        decision = schedule_binding.schedule(workload, engine)
        assert decision.placed
        engine.index.add_shares(workload, decision.shares)


@pytest.mark.parametrize("n_bindings", [0, 50, 1000])
def test_equivalent_bindings_are_evaluated_once_however_full_the_fleet_is(costs, n_bindings):
    engine = fleet(n_bindings=n_bindings)
    decide(engine, *(binding(f"new-{i}") for i in range(60)))
    assert (len(costs.estimates), len(costs.sorts)) == (1, 1)
    assert (engine.evaluations.n_full, engine.evaluations.n_corrected) == (
        4,
        0,
    )  # one for each rule about clusters alone


def test_verdicts_are_shared_by_bindings_with_different_requests(costs):
    engine = fleet()
    decide(engine, *(binding(f"new-{i}", cpu=f"{i + 1}m") for i in range(30)))
    assert len(costs.estimates) == len(costs.sorts) == 30
    assert engine.evaluations.n_full == 4


def test_only_a_binding_that_is_on_a_cluster_already_is_exempt_from_its_rules():
    engine = fleet(2)
    engine.index.update_target(cluster("m000", cpu="9000", kind="StatefulSet"))
    for name, clusters in (("old", [{"name": "m000", "replicas": 2}]), ("new", [])):
        decide(engine, binding(name, clusters=clusters))
    shares = [engine.index.records[f"default/{name}-deployment"].shares for name in ("old", "new")]
    assert shares == [(("m000", 2),), (("m001", 2),)]


def test_changed_capacity_changes_the_order_and_nothing_else(costs):
    engine = fleet()
    decide(engine, binding("a"))
    evaluated = (engine.evaluations.n_full, engine.evaluations.n_corrected)
    engine.index.update_target(cluster("m007", cpu="4000"))
    decide(engine, binding("b"), binding("c"))
    assert engine.index.records["default/b-deployment"].shares == (("m007", 2),)
    assert (len(costs.estimates), len(costs.sorts)) == (2, 2)
    assert (engine.evaluations.n_full, engine.evaluations.n_corrected) == evaluated


def test_where_no_limit_is_known_a_ranking_is_for_one_number_of_replicas(costs):
    engine, unlimited = fleet(0), str(2**31 - 1)
    for name in ("m0", "m1"):
        engine.index.add_target(cluster(name, cpu=unlimited, pods=unlimited))
    decide(engine, binding("a"), binding("b", replicas=5), binding("c", replicas=5))
    assert [engine.index.records[f"default/{name}-deployment"].shares for name in "abc"] == [
        (("m0", 2),),
        (("m0", 5),),
        (("m0", 5),),
    ]
    assert len(costs.sorts) == 2


def test_only_the_cluster_with_changed_labels_is_evaluated_again(costs):
    engine = fleet()
    decide(engine, binding("a"))
    engine.index.update_target(cluster("m007", env="prod"))
    decide(engine, binding("b"))
    assert (engine.evaluations.n_full, engine.evaluations.n_corrected) == (4, 4)
    assert len(costs.sorts) == 2


def test_the_second_of_a_pair_is_evaluated_only_on_the_cluster_of_the_first():
    engine = fleet()
    pair = [binding(name, ONE, workloadAffinityGroups={"antiAffinityGroup": "ha=x"}) for name in "ab"]
    decide(engine, pair[0])
    full = engine.evaluations.n_full
    decide(engine, pair[1])
    assert (engine.evaluations.n_full, engine.evaluations.n_corrected) == (full, 1)
    assert engine.index.records["default/a-deployment"].shares != engine.index.records["default/b-deployment"].shares


def test_placing_changes_the_capacity_of_clusters_and_nothing_that_rules_read(costs):
    engine = fleet()
    for i in range(20):
        place_bindings.place(binding(f"new-{i}"), engine)
    assert (engine.evaluations.n_full, engine.evaluations.n_corrected) == (4, 0)
    assert len(costs.sorts) == 20


def test_cached_rankings_are_bounded(monkeypatch):
    engine = fleet()
    n_bytes = 20 * cluster_ranking.BYTES_PER_CLUSTER * engine.index.slots.capacity
    monkeypatch.setattr(cluster_ranking, "MAX_CACHED_BYTES", n_bytes)
    decide(engine, *(binding(f"new-{i}", cpu=f"{i + 1}m") for i in range(60)))
    assert 18 <= len(engine._rankings) <= 20
    assert len(engine._filters) == 1  # they differ in their requests only


def test_a_ranking_in_use_is_kept(costs, monkeypatch):
    engine = fleet()
    monkeypatch.setattr(cluster_ranking, "MAX_CACHED_BYTES", 0)  # the least number of rankings
    for i in range(2 * cluster_ranking.MIN_CACHED_RANKINGS):
        decide(engine, binding(f"often-{i}"), binding(f"once-{i}", cpu=f"{i + 1}m"))
    assert len(costs.sorts) == 1 + 2 * cluster_ranking.MIN_CACHED_RANKINGS


def test_a_filter_in_use_is_kept(monkeypatch):
    engine = fleet()
    monkeypatch.setattr(cluster_ranking, "MAX_CACHED_BYTES", 0)
    for i in range(2 * cluster_ranking.MIN_CACHED_RANKINGS):
        only = {"clusterAffinity": {"clusterNames": ["m001", f"m{i + 2:03}"]}}
        decide(engine, binding(f"often-{i}"), binding(f"once-{i}", {**AGGREGATED, **only}))
    often = engine.ranking_of(binding("often")).filter
    assert len(engine._filters) <= cluster_ranking.MIN_CACHED_RANKINGS
    assert any(often is one for one in engine._filters.values())


def test_a_released_engine_keeps_no_rankings_and_decides_as_before(costs):
    engine = fleet()
    decide(engine, binding("a"))
    engine.release()
    assert len(engine._rankings) == len(engine._filters) == len(engine.evaluations) == 0
    decide(engine, binding("b"))
    assert len(costs.sorts) == 2
    assert engine.index.records["default/a-deployment"].shares == engine.index.records["default/b-deployment"].shares


class RejectingAll(PartRule[str]):
    """Decides before any cluster is evaluated."""

    name = id = "rejecting-all"
    lifted_by = LiftedBy.TARGET

    def part(self, workload, index):
        return "all"

    def pre_filter(self, state, index):
        return Reason("all", "no cluster fits", StatusCode.UNSCHEDULABLE)


def test_no_rule_after_those_about_peers_decides_beforehand():
    with pytest.raises(AssertionError, match="rejecting-all comes after rules about peers"):
        FleetEngine(PlacementIndex(), [*fleet_profile.fleet_rules(), RejectingAll()])


def test_rules_about_clusters_alone_come_first():
    engine = fleet()
    assert engine.about_clusters + engine.about_peers == engine.rules
    assert all(rule.follows_workloads for rule in engine.about_peers)
    assert [rule.id for rule in engine.about_clusters][-1] == "cluster-evicting"
