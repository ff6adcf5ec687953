"""What a decision about a fleet costs: counted in looks, estimates and sortings, never in seconds."""

import msgspec
import pytest

from bayplan import schedule_binding
from bayplan.assigning import candidates, cluster_ranking, estimating
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.model.semantics import UPSTREAM, for_fleets
from bayplan.placing import place_bindings
from bayplan.rules import profiles
from bayplan.wire.fleets import Cluster, ResourceBinding

AGGREGATED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}
ONE = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}
RULES = profiles.fleet_rules()


def cluster(name, cpu="1000", **labels):
    status = {
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
        "resourceSummary": {"allocatable": {"cpu": cpu, "pods": "5000"}},
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
    return index


class Costs:
    """How often something was done, counted while a test runs."""

    def __init__(self, monkeypatch):
        self.estimates = self._counted(monkeypatch, estimating, "estimate_replicas")
        self.sortings = self._counted(monkeypatch, candidates, "ordered_candidates")

    @staticmethod
    def _counted(monkeypatch, module, name):
        calls, genuine = [], getattr(module, name)

        def counting(*arguments):
            calls.append(arguments)
            return genuine(*arguments)

        monkeypatch.setattr(module, name, counting)
        return calls


@pytest.fixture
def costs(monkeypatch):
    return Costs(monkeypatch)


def decide(index, *workloads):
    for workload in workloads:
        decision = schedule_binding.schedule(workload, index, RULES)
        assert decision.placed
        index.add_shares(workload, decision.shares)


@pytest.mark.parametrize("n_bindings", [0, 50, 1000])
def test_bindings_of_one_kind_are_looked_at_once_however_full_the_fleet_is(costs, n_bindings):
    index = fleet(n_bindings=n_bindings)
    decide(index, *(binding(f"new-{i}") for i in range(60)))
    assert (len(costs.estimates), len(costs.sortings)) == (1, 1)
    assert (index.evaluations.n_full, index.evaluations.n_corrected) == (4, 0)  # one for each rule about clusters


def test_what_rules_say_is_shared_by_bindings_that_ask_for_different_amounts(costs):
    index = fleet()
    decide(index, *(binding(f"new-{i}", cpu=f"{i + 1}m") for i in range(30)))
    assert len(costs.estimates) == len(costs.sortings) == 30
    assert index.evaluations.n_full == 4


def test_other_room_means_other_order_and_nothing_else(costs):
    index = fleet()
    decide(index, binding("a"))
    looked = (index.evaluations.n_full, index.evaluations.n_corrected)
    index.update_target(cluster("m007", cpu="4000"))
    decide(index, binding("b"), binding("c"))
    assert index.records["default/b-deployment"].shares == (("m007", 2),)
    assert (len(costs.estimates), len(costs.sortings)) == (2, 2)
    assert (index.evaluations.n_full, index.evaluations.n_corrected) == looked


def test_a_cluster_with_other_labels_is_looked_at_alone(costs):
    index = fleet()
    decide(index, binding("a"))
    index.update_target(cluster("m007", env="prod"))
    decide(index, binding("b"))
    assert (index.evaluations.n_full, index.evaluations.n_corrected) == (4, 4)
    assert len(costs.sortings) == 2


def test_the_second_of_a_pair_looks_only_where_the_first_went():
    index = fleet()
    pair = [binding(name, ONE, workloadAffinityGroups={"antiAffinityGroup": "ha=x"}) for name in "ab"]
    decide(index, pair[0])
    full = index.evaluations.n_full
    decide(index, pair[1])
    assert (index.evaluations.n_full, index.evaluations.n_corrected) == (full, 1)
    assert index.records["default/a-deployment"].shares != index.records["default/b-deployment"].shares


def test_placing_changes_the_room_of_clusters_and_nothing_that_rules_look_at(costs):
    index = fleet()
    for i in range(20):
        place_bindings.place(binding(f"new-{i}"), index, RULES)
    assert (index.evaluations.n_full, index.evaluations.n_corrected) == (4, 0)
    assert len(costs.sortings) == 20


def test_standings_do_not_grow_with_every_binding(monkeypatch):
    index = fleet()
    monkeypatch.setattr(cluster_ranking, "MEMORY", 20 * cluster_ranking.BYTES * index.slots.capacity)
    decide(index, *(binding(f"new-{i}", cpu=f"{i + 1}m") for i in range(60)))
    assert len(index.cluster_rankings) == 20


def test_rules_about_clusters_alone_come_first():
    leading, following = cluster_ranking.split(RULES)
    assert all(rule.follows_workloads for rule in following)
    assert [rule.id for rule in leading][-1] == "cluster-evicting"
