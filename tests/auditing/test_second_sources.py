"""What volumes, storage drivers, leases, endpoints and Machines add to labels and pods."""

import json

import pytest
from scenery import HOST, ZONE, finding, judge, layout_of, node, nodes, owned, pod, stacked, verdicts

from bayplan.auditing.audit_input import Unlisted, unlisted_text
from bayplan.auditing.repairing import repair_proposal
from bayplan.reading import audit_files
from bayplan.reading.files import ReadOptions
from bayplan.wire.meta import ObjectMeta, ObjectReference
from bayplan.wire.observed import (
    ObservedClaimSource,
    ObservedCondition,
    ObservedCsiDriver,
    ObservedCsiNode,
    ObservedCsiNodeSpec,
    ObservedEndpoint,
    ObservedEndpointSlice,
    ObservedLease,
    ObservedLeaseSpec,
    ObservedMachine,
    ObservedMachineSpec,
    ObservedMachineStatus,
    ObservedNodeReference,
    ObservedPodVolume,
)
from bayplan.wire.pods import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.wire.storage import PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity

CURRENT = "scs-0214-labels-current"


def volume(key, *values, claim="data"):
    term = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key=key, operator="In", values=list(values))])
    return PersistentVolume(
        metadata=ObjectMeta(name="pv-1"),
        spec=PersistentVolumeSpec(
            claim_ref=ObjectReference(namespace="shop", name=claim),
            node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=[term])),
        ),
    )


def user_of(claim, on):
    mounted = ObservedPodVolume(persistent_volume_claim=ObservedClaimSource(claim_name=claim))
    return owned("db-0", on, "db", kind="StatefulSet", volumes=[mounted])


@pytest.mark.parametrize("key, values, verdict", [
    (ZONE, ("x",),                                        "PASS"),
    (ZONE, ("x", "y"),                                    "PASS"),       # it may be in either
    (ZONE, ("w",),                                        "FAIL"),       # the node is where the volume cannot be
    ("topology.cinder.csi.openstack.org/zone", ("w",),    "FAIL"),
    ("kubernetes.io/hostname", ("w",),                    "UNDECIDED"),  # says nothing of zones
])  # fmt: skip
def test_a_mounted_volume_shows_the_zone(key, values, verdict):
    given = nodes("cp x/a", "cp y/b", "worker x/d")
    pods = [*stacked(given), user_of("data", "worker-2")]
    result = judge(given, pods, volumes=[volume(key, *values)])
    assert verdicts(result)[CURRENT] == verdict
    if verdict == "FAIL":
        assert "PersistentVolume pv-1 says w" in finding(result, CURRENT).message


def test_a_volume_that_is_not_mounted_shows_nothing():
    given = nodes("cp x/a", "cp y/b")
    assert verdicts(judge(given, stacked(given), volumes=[volume(ZONE, "w")]))[CURRENT] == "UNDECIDED"


def test_labels_of_storage_drivers_are_known_by_their_csi_node():
    own = "topology.ebs.csi.aws.com/zone"
    given = [node("a", "cp", "x/a", labels={own: "w"}), *nodes("worker y/b")]
    assert verdicts(judge(given))[CURRENT] == "UNDECIDED"  # any label may have this suffix
    drivers = [ObservedCsiDriver(name="ebs.csi.aws.com", topology_keys=[own, ZONE])]
    registered = ObservedCsiNode(metadata=ObjectMeta(name="a"), spec=ObservedCsiNodeSpec(drivers=drivers))
    assert verdicts(judge(given, csi_nodes=[registered]))[CURRENT] == "FAIL"


def api_lease(hostname, **spec):
    labels = {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": hostname}
    return ObservedLease(
        metadata=ObjectMeta(name=f"apiserver-{hostname}", labels=labels), spec=ObservedLeaseSpec(**spec)
    )


def test_leases_say_which_nodes_run_an_api_server():
    given = nodes("cp x/a", "cp y/b", "cp z/c")
    found = judge(given, leases=[api_lease("cp-0"), api_lease("cp-2")])
    assert [member.node for member in found.layout.members["kube-apiserver"]] == ["cp-0", "cp-2"]
    assert finding(found, "scs-0213-dup-apiserver").evidence == "observed"
    assert finding(found, "scs-0213-dup-scheduler").evidence == "inferred"


def slice_of(*addresses):
    return ObservedEndpointSlice(
        metadata=ObjectMeta(name="kubernetes", namespace="default"),
        endpoints=[ObservedEndpoint(addresses=list(addresses))],
    )


def test_endpoints_of_the_service_are_api_servers_where_they_are_nodes():
    given = [node(f"n{i}", "cp", f"z{i}/h{i}", ip=f"10.0.0.{i}") for i in range(3)]
    found = judge(given, endpoint_slices=[slice_of("10.0.0.0", "10.0.0.1")])
    assert [member.node for member in found.layout.members["kube-apiserver"]] == ["n0", "n1"]
    behind_a_balancer = judge(given, endpoint_slices=[slice_of("192.0.2.1")])
    assert len(behind_a_balancer.layout.members["kube-apiserver"]) == 3  # one address proves no single server
    assert finding(behind_a_balancer, "scs-0213-dup-apiserver").evidence == "inferred"


def test_a_hidden_control_plane_is_counted_but_not_judged():
    found = finding(judge(nodes("worker x/a"), endpoint_slices=[slice_of("192.0.2.1")]), "scs-0213-dup-apiserver")
    assert found.verdict == "UNDECIDED"
    assert "1 by addresses of the Service kubernetes" in found.message


def test_without_access_to_kube_system_components_are_undecided():
    given = nodes("cp x/a", "cp y/b", "cp z/c")
    unlisted = (Unlisted("pods", "kube-system"),)
    found = judge(
        given, [owned("web", "cp-0", "web")], unlisted=unlisted, leases=[api_lease("cp-0"), api_lease("cp-1")]
    )
    assert verdicts(found)["scs-0213-dup-etcd"] == "UNDECIDED"
    assert verdicts(found)["scs-0213-dup-apiserver"] == "PASS"  # by the leases
    assert verdicts(found)["fd-n1-component-host"] == "UNDECIDED"
    assert verdicts(found)["scs-0214-cp-machines"] == "PASS"
    assert str(found.stage) == "not distributed (perhaps over zones), not loss-safe (perhaps for zones)"
    assert unlisted_text([*unlisted, Unlisted("leases"), Unlisted("services", reason="gone")]) == [
        "pods of kube-system, leases could not be listed (forbidden): what depends on them is left undecided",
        "services could not be listed (gone): what depends on them is left undecided",
    ]
    assert verdicts(judge(given, unlisted=(Unlisted("persistentvolumes"),)))["scs-0213-dup-etcd"] == "PASS"


def machine(on, *unhealthy, zone=""):
    conditions = [ObservedCondition(type=kind, status="False") for kind in unhealthy]
    return ObservedMachine(
        metadata=ObjectMeta(name=f"m-{on}"),
        spec=ObservedMachineSpec(failure_domain=zone),
        status=ObservedMachineStatus(node_ref=ObservedNodeReference(name=on), conditions=conditions),
    )


def test_machines_report_unhealthy_members():
    given = nodes("cp x/a", "cp y/b", "cp z/c")
    healthy = judge(given, machines=[machine("cp-0")])
    assert verdicts(healthy)["fd-quorum-etcd-host"] == "PASS"
    unhealthy = judge(given, machines=[machine("cp-0", "EtcdMemberHealthy")])
    assert verdicts(unhealthy)["fd-quorum-etcd-host"] == "WARN"
    assert "now 1 of 3 unhealthy, by design safe" in finding(unhealthy, "fd-quorum-etcd-host").message


def test_holders_of_a_lease_or_a_local_volume_are_not_moved():
    given = nodes("cp z/a", "cp z/a", "cp z/a", "worker z/b", "worker z/c")
    for one in given:
        one.metadata.labels["kubernetes.io/hostname"] = one.metadata.name
    leader = ObservedLease(
        metadata=ObjectMeta(name="kube-scheduler", namespace="kube-system"),
        spec=ObservedLeaseSpec(holder_identity="cp-1_2c5a"),
    )
    held = {"leases": [leader], "volumes": [volume("kubernetes.io/hostname", "cp-2")]}
    layout = layout_of(given, **held)
    assert {one.name: one.holds for one in layout.nodes if one.holds} == {
        "cp-1": ("the lease kube-scheduler",),
        "cp-2": ("the volume pv-1",),
    }
    moved = [move.node for move in repair_proposal.propose_repair(judge(given, **held)).plan.moves]
    assert moved == ["cp-0"]


def test_pods_of_a_component_outrank_other_sources():
    given = nodes("cp x/a", "cp y/b")
    found = judge(given, [pod("kube-apiserver", "cp-0")], leases=[api_lease("cp-0"), api_lease("cp-1")])
    assert [member.node for member in found.layout.members["kube-apiserver"]] == ["cp-0"]
    assert HOST in given[0].metadata.labels


def test_leases_that_expired_long_before_the_others_do_not_count(tmp_path):
    def lease(host, renewed):
        labels = {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": host}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": f"apiserver-{host}", "namespace": "kube-system", "labels": labels},
            "spec": {"leaseDurationSeconds": 3600, "renewTime": renewed},
        }

    times = {
        "a": "2026-01-01T12:00:00.000000Z",
        "b": "2026-01-01T11:30:00Z",
        "gone": "2026-01-01T10:00:00Z",
        "odd": "x",
    }
    objects = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, *(lease(*one) for one in times.items())]
    (tmp_path / "dump.json").write_text("\n".join(map(json.dumps, objects)))
    found = audit_files.load(ReadOptions([str(tmp_path / "dump.json")]))
    assert [one.metadata.name for one in found.leases] == ["apiserver-a", "apiserver-b", "apiserver-odd"]


@pytest.mark.parametrize("zones, verdict", [
    (("a", "b", "b"), "PASS"),  # the zones of the labels are hashes
    (("a", "a", "b"), "FAIL"),
])  # fmt: skip
def test_hashed_zones_agree_with_machines_by_grouping(zones, verdict):
    hashes = ("9f86d081884c7d659a2f", "60303ae22b998861bce3", "60303ae22b998861bce3")
    given = [node(f"cp-{i}", "cp", f"{one}/h{i}") for i, one in enumerate(hashes)]
    machines = [
        ObservedMachine(
            metadata=ObjectMeta(name=f"machine-{i}"),
            spec=ObservedMachineSpec(failure_domain=zone),
            status=ObservedMachineStatus(node_ref=ObservedNodeReference(name=f"cp-{i}")),
        )
        for i, zone in enumerate(zones)
    ]
    found = judge(given, machines=machines)
    assert verdicts(found)[CURRENT] == verdict
    if verdict == "FAIL":
        assert finding(found, CURRENT).message == (
            "cp-1, cp-2: one zone by label, 2 by other sources; cp-0, cp-1: one zone by other sources, 2 by label"
        )
