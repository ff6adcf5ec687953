"""Faults of a fleet's input are reported before anything is placed; failback waits for the hold-down."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.errors import InputError
from bayplan.model.semantics import UPSTREAM
from bayplan.placing.place_bindings import place_all
from bayplan.reading import fleet
from bayplan.reading.collecting import Inputs
from bayplan.rules import fleet_profile
from bayplan.wire.fleets import Cluster, ResourceBinding

SCHEDULED = datetime(2026, 1, 1, 12, tzinfo=UTC)


def cluster(name, pods="100"):
    status = {
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
        "resourceSummary": {"allocatable": {"pods": pods}},
    }
    return msgspec.convert({"metadata": {"name": name}, "status": status}, Cluster)


def binding(placement, runs, observed=""):
    spec = {
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "shop", "uid": "u"},
        "replicas": sum(runs.values()) or 3,
        "replicaRequirements": {},
        "placement": placement,
        "clusters": [{"name": name, "replicas": n} for name, n in runs.items()],
    }
    applied = msgspec.json.encode(placement).decode()
    metadata = {
        "name": "shop-deployment",
        "namespace": "default",
        "labels": {"propagationpolicy.karmada.io/permanent-id": "x"},
        "annotations": {"policy.karmada.io/applied-placement": applied},
    }
    status = {"schedulerObservingAffinityName": observed, "lastScheduledTime": SCHEDULED.isoformat()}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, ResourceBinding)


def decided(written, after, *, minutes, clusters=("idc", "cloud")):
    semantics = msgspec.structs.replace(UPSTREAM, fail_back_after=after)
    inputs = Inputs(clusters=[cluster(name) for name in clusters], bindings=[written])
    found = fleet.fleet_of(inputs, semantics=semantics, now=SCHEDULED + timedelta(minutes=minutes))
    engine = FleetEngine(found.index, fleet_profile.fleet_rules())
    return [(p.group, dict(p.shares)) for p in place_all(found.pending, engine)]


AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
GROUPS = {
    "clusterAffinities": [
        {"affinityName": "first", "clusterNames": ["idc"]},
        {"affinityName": "second", "clusterNames": ["cloud"]},
    ],
    "replicaScheduling": AGGREGATED,
}
TIERS = {
    "clusterAffinities": [
        {
            "affinityName": "all",
            "clusterNames": ["idc"],
            "overflowAffinities": [{"affinityName": "more", "clusterNames": ["cloud"]}],
        }
    ],
    "replicaScheduling": AGGREGATED,
}


@pytest.mark.parametrize(
    "placement, observed, after, minutes, outcome",
    [
        (GROUPS, "second", 0, 60, []),  # never by default
        (GROUPS, "second", 600, 5, []),  # not yet
        (GROUPS, "second", 600, 15, [("first", {"idc": 3})]),
        (TIERS, "all", 600, 5, []),
        (TIERS, "all", 600, 15, [("all", {"idc": 3})]),
    ],
)
def test_failback_waits_for_the_hold_down(placement, observed, after, minutes, outcome):
    assert decided(binding(placement, {"cloud": 3}, observed), after, minutes=minutes) == outcome


def test_failback_needs_a_better_placement():
    even = {
        "replicaScheduling": {
            **AGGREGATED,
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        }
    }
    written = binding(even, {"idc": 3})
    assert decided(written, 600, minutes=60) == [("", {"idc": 3})]


def test_a_topology_key_that_no_cluster_has_is_a_fault():
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": "rack"}]}
    inputs = Inputs(clusters=[cluster("idc")], bindings=[binding({"workloadAntiAffinity": terms}, {})])
    with pytest.raises(InputError, match=r"\[0\]\.topologyKey: expected cluster, zone, region, provider .*, got rack"):
        fleet.fleet_of(inputs)
