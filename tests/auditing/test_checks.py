"""Every cluster of the standard's analysis gets the verdicts listed there."""

import pathlib

import msgspec
import pytest
from scenery import CONTROL_PLANE, HOST, ZONE, judge, node, nodes, pod, stacked, verdicts

from bayplan.auditing import catalogue, checks, profiles, spread
from bayplan.auditing.layout import AuditNode, Layout
from bayplan.reading import audit_files
from bayplan.reading.files import ReadOptions
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.observed import (
    ObservedConfigMap,
    ObservedLease,
    ObservedMachine,
    ObservedMachineSpec,
    ObservedMachineStatus,
    ObservedNodeReference,
)

SCENARIOS = str(pathlib.Path(__file__).parent / "scenarios.yaml")
PASS, FAIL, WARN, OPEN, NA = "PASS", "FAIL", "WARN", "UNDECIDED", "N/A"
HALF = tuple(f"scs-0213-half-{part}" for part in ("apiserver", "controller-manager", "scheduler", "etcd"))


def upstream(name):
    return audit_files.load(ReadOptions([SCENARIOS]), scenario=name).nodes


# Layouts of n members: half rule, and whether a majority survives one loss.
@pytest.mark.parametrize("layout, half, any_left, majority_left", [
    ("1",             False, False, False),
    ("2",             False, False, False),
    ("1+1",           True,  True,  False),
    ("3",             False, False, False),
    ("2+1",           True,  True,  False),  # satisfies the MUST and the half rule and still does not survive one machine
    ("1+1+1",         True,  True,  True),
    ("3+1",           False, True,  False),
    ("2+2",           True,  True,  False),
    ("2+1+1",         True,  True,  False),
    ("1+1+1+1",       True,  True,  True),
    ("4+1",           False, True,  False),
    ("3+2",           True,  True,  False),
    ("3+1+1",         True,  True,  False),
    ("2+2+1",         True,  True,  True),
    ("2+1+1+1",       True,  True,  True),
    ("1+1+1+1+1",     True,  True,  True),
    ("3+3",           True,  True,  False),
    ("2+2+2",         True,  True,  True),
    ("1+1+1+1+1+1",   True,  True,  True),
    ("4+3",           True,  True,  False),
    ("3+3+1",         True,  True,  True),
    ("3+2+2",         True,  True,  True),
    ("2+1+1+1+1+1",   True,  True,  True),
    ("1+1+1+1+1+1+1", True,  True,  True),
])  # fmt: skip
def test_the_table_of_layouts(layout, half, any_left, majority_left):
    counts = [int(count) for count in layout.split("+")]
    members = [
        AuditNode(name=f"{d}-{i}", domains={"host": f"h{d}"}) for d, count in enumerate(counts) for i in range(count)
    ]
    found = spread.spread_over_domains(Layout(nodes=tuple(members)), members)
    assert found.counts == counts
    assert found.judge(spread.half) is half
    assert found.judge(spread.separate) is any_left
    assert found.judge(spread.quorum) is majority_left


def test_the_literal_reading_is_reported_where_it_differs():
    given = nodes("2x cp z/h1", "2x cp z/h2", "2x cp z/h3")
    found = {one.id: one for one in judge(given).results}["scs-0213-half-etcd"]
    assert found.verdict == PASS
    assert "not two halves that share no host" in found.message


# machines, zone label, region label, host label, half, quorum on hosts
@pytest.mark.parametrize("name, machines, host_one_zone, host_present, half, quorum", [
    ("success-1",         PASS, PASS, PASS, PASS, PASS),
    ("success-2",         FAIL, FAIL, PASS, WARN, WARN),  # upstream passes it
    ("no-distribution-1", FAIL, PASS, PASS, WARN, WARN),
    ("no-distribution-2", FAIL, PASS, PASS, WARN, WARN),
    ("missing-labels",    OPEN, PASS, WARN, OPEN, WARN),  # two members have no majority to lose, whatever the hosts
    ("not-enough-nodes",  FAIL, PASS, PASS, WARN, WARN),
])  # fmt: skip
def test_the_scenarios_of_upstream(name, machines, host_one_zone, host_present, half, quorum):
    result = judge(upstream(name))
    found = verdicts(result)
    assert found["scs-0214-cp-machines"] == machines
    assert found["scs-0214-labels-zone"] == found["scs-0214-labels-region"] == PASS
    assert found["lbl-host-one-zone"] == host_one_zone
    assert found["lbl-host-present"] == host_present
    assert {found[check] for check in HALF} == {half}
    assert found["fd-quorum-etcd-host"] == quorum
    assert result.passed() is (name == "success-1")


def test_the_stage_of_success_1():
    assert str(judge(upstream("success-1")).stage) == "distributed over zones, loss-safe for zones"


@pytest.mark.parametrize("name, old, head", [
    ("success-1",         PASS, PASS),
    ("success-2",         PASS, PASS),
    ("no-distribution-1", FAIL, PASS),
    ("no-distribution-2", FAIL, PASS),
    ("missing-labels",    FAIL, PASS),
    ("not-enough-nodes",  FAIL, FAIL),
])  # fmt: skip
def test_the_retired_script(name, old, head):
    for profile, verdict in (("legacy=old", old), ("legacy=head", head)):
        result = judge(upstream(name), profile=profile)
        assert verdicts(result) == {"node-distribution-check": verdict}
        assert result.passed() is (verdict == PASS)


@pytest.mark.parametrize("given, old, head", [
    (nodes("worker z1/h", "worker z2/h"),           PASS, PASS),  # without the label all are judged as control plane
    (nodes("worker -/- -", "worker -/- -"),         FAIL, FAIL),
    (nodes("cp z1/h", "worker -/- -"),              FAIL, FAIL),
])  # fmt: skip
def test_the_retired_script_beyond_its_scenarios(given, old, head):
    assert verdicts(judge(given, profile="legacy=old")) == {"node-distribution-check": old}
    assert verdicts(judge(given, profile="legacy=head")) == {"node-distribution-check": head}


@pytest.mark.parametrize("rows, machines, half, on_hosts, on_zones", [
    (["2x cp z/a", "cp z/b"],                     PASS, PASS, WARN, WARN),
    (["cp x/-", "cp y/-", "cp z/-"],              PASS, PASS, PASS, PASS),  # no host label needed
    (["2x cp x/-", "cp y/-"],                     PASS, PASS, OPEN, WARN),
    (["2x cp x/-", "2x cp y/-", "cp z/-"],        PASS, PASS, PASS, PASS),
    (["cp x/h", "cp y/-", "cp z/-"],              PASS, PASS, PASS, PASS),
    (["3x cp nova/-"],                            OPEN, OPEN, OPEN, WARN),
    (["2x cp z/a", "2x cp z/b", "cp z/c"],        PASS, PASS, PASS, WARN),
    (["cp z/a", "cp z/b", "cp z/c", "cp z/d"],    PASS, PASS, PASS, WARN),
])  # fmt: skip
def test_control_planes_by_labels_alone(rows, machines, half, on_hosts, on_zones):
    found = verdicts(judge(nodes(*rows)))
    assert found["scs-0214-cp-machines"] == machines
    assert {found[check] for check in HALF} == {half}
    assert found["fd-quorum-etcd-host"] == on_hosts
    assert found["fd-quorum-etcd-zone"] == on_zones
    assert found["scs-0214-labels-zone"] == PASS


def test_a_default_zone_is_uninformative():
    assert verdicts(judge(nodes("3x cp nova/-")))["lbl-zone-uninformative"] == WARN


def test_four_members_are_safe_with_a_hint():
    found = verdicts(judge(nodes("cp z/a", "cp z/b", "cp z/c", "cp z/d")))
    assert found["fd-odd-etcd"] == WARN


def test_host_ids_that_are_the_nodes_own():
    given = [node(f"n{i}", "cp", f"z/uuid-{i}", uuid=f"UUID-{i}") for i in range(3)]
    found = verdicts(judge(given))
    assert found["scs-0214-cp-machines"] == OPEN
    assert found["lbl-host-vacuous"] == WARN
    assert {found[check] for check in HALF} == {OPEN}
    assert found["fd-quorum-etcd-host"] == OPEN


def test_one_zone_name_in_two_regions():
    found = verdicts(judge(nodes("cp z/- r", "cp z/- s")))
    assert found["lbl-zone-one-region"] == FAIL
    assert found["scs-0214-cp-machines"] == PASS


def test_roles_count_by_presence_and_are_inferred():
    given = [node(f"n{i}", "cp+etcd", f"z{i}/h{i}", role_value="true") for i in range(3)]
    found = {one.id: one for one in judge(given).results}
    assert found["scs-0213-half-etcd"].verdict == PASS
    assert found["fd-quorum-etcd-host"].evidence == "inferred"


def test_a_hidden_control_plane_is_undecided_and_workers_are_not_judged_for_it():
    lease = ObservedLease(
        metadata=ObjectMeta(name="apiserver-1", labels={"apiserver.kubernetes.io/identity": "kube-apiserver"})
    )
    result = judge(nodes("worker x/a", "worker y/b"), leases=[lease, lease])
    found = verdicts(result)
    asked = ["cp-hidden", "scs-0214-cp-machines", "scs-0214-cp-zones", *HALF, "fd-quorum-etcd-host"]
    asked += ["scs-0213-dup-apiserver", "fd-n1-component-host", "fd-odd-etcd"]
    assert {found[check] for check in asked} == {OPEN}
    assert not result.passed()
    assert "API servers: 2 by leases" in {one.id: one for one in result.results}["scs-0213-dup-apiserver"].message
    assert {v for check, v in found.items() if "bsi" in check} == set()
    staged = judge(nodes("worker x/a"), stages=[("distributed", "machines")])
    assert verdicts(staged)["stage"] == OPEN


def etcd_flag(*hosts):
    return (f"--etcd-servers={','.join(f'https://{host}:2379' for host in hosts)}",)


def test_etcd_on_nodes_of_its_own():
    given = [node("cp-0", "cp", "x/a"), node("cp-1", "cp", "y/b")]
    given += [node(f"e{i}", "worker", f"{z}/h{i}", ip=f"10.0.0.{i}") for i, z in enumerate("xyz")]
    flag = etcd_flag("10.0.0.0", "10.0.0.1", "10.0.0.2")
    pods = [
        pod(part, f"cp-{i}", args=flag)
        for i in range(2)
        for part in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    ]
    result = judge(given, pods)
    found = verdicts(result)
    assert [member.node for member in result.layout.members["etcd"]] == ["e0", "e1", "e2"]
    assert found["scs-0214-cp-machines"] == PASS
    assert {found[check] for check in HALF} == {PASS}
    assert found["fd-quorum-etcd-host"] == PASS
    assert result.layout.component_evidence["etcd"] == "declared"


def test_etcd_outside_the_cluster():
    given = nodes("cp x/a", "cp y/b")
    config = ObservedConfigMap(
        metadata=ObjectMeta(name="kubeadm-config", namespace="kube-system"),
        data={
            "ClusterConfiguration": "etcd:\n  external:\n    endpoints:\n    - https://e1:2379\n    - https://e2:2379\n    - https://e3:2379\n"
        },
    )
    result = judge(given, config_maps=[config])
    assert [one.name for one in result.layout.external] == ["e1", "e2", "e3"]
    assert verdicts(result)["scs-0213-dup-etcd"] == PASS
    assert verdicts(result)["fd-quorum-etcd-host"] == OPEN  # their location is unknown


def test_etcd_nodes_that_share_hosts_with_the_control_plane():
    given = nodes("cp x/a", "cp y/b", "etcd x/a", "etcd y/b", "etcd z/c")
    result = judge(given)
    assert verdicts(result)["scs-0214-cp-machines"] == PASS
    assert len(result.layout.members["etcd"]) == 3
    assert verdicts(result)["fd-quorum-etcd-host"] == PASS


def test_a_node_that_is_not_ready_counts_as_a_member_but_survives_nothing():
    given = [node(f"n{i}", "cp", f"z{i}/h{i}", ready=i > 0) for i in range(3)]
    result = judge(given)
    found = {one.id: one for one in result.results}
    assert found["scs-0214-cp-machines"].verdict == PASS
    assert found["scs-0213-half-etcd"].verdict == PASS
    assert found["fd-quorum-etcd-host"].verdict == WARN
    assert "now 1 of 3 unhealthy, by design safe" in found["fd-quorum-etcd-host"].message
    assert "n0" in found["fd-quorum-etcd-host"].nodes


def test_a_pod_bound_in_another_zone_shows_a_changed_label():
    given = nodes("cp x/a", "cp y/b", "cp z/c")
    stale = pod("etcd", "cp-0", labels={ZONE: "old"})
    result = judge(given, [*stacked(given), stale])
    assert verdicts(result)["scs-0214-labels-current"] == FAIL
    assert not result.passed()
    agreeing = pod("etcd", "cp-0", labels={ZONE: "x"})
    assert verdicts(judge(given, [agreeing]))["scs-0214-labels-current"] == PASS


def test_machines_and_storage_are_second_sources():
    given = nodes("cp x/a", "cp y/b")
    machine = ObservedMachine(
        metadata=ObjectMeta(name="m"),
        spec=ObservedMachineSpec(failure_domain="elsewhere"),
        status=ObservedMachineStatus(node_ref=ObservedNodeReference(name="cp-0")),
    )
    assert verdicts(judge(given, machines=[machine]))["scs-0214-labels-current"] == FAIL
    csi = [node("a", "cp", "x/a", labels={catalogue.CSI_ZONE_KEY: "w"}), *nodes("worker y/b")]
    assert verdicts(judge(csi))["scs-0214-labels-current"] == FAIL


def test_an_inventory_is_observed_and_wins_over_labels():
    given = nodes("cp x/a", "cp x/a")
    result = judge(given, inventory={"cp-0": {"host": "one"}, "cp-1": {"host": "two"}})
    assert verdicts(result)["scs-0214-cp-machines"] == PASS
    assert verdicts(result)["scs-0214-labels-current"] == FAIL
    assert result.layout.nodes[0].evidence["host"] == "observed"


def test_a_scheduler_that_runs_once():
    given = nodes("cp x/a", "cp y/b", "cp z/c")
    pods = [one for one in stacked(given) if "scheduler" not in one.metadata.name or one.spec.node_name == "cp-0"]
    found = verdicts(judge(given, pods))
    assert found["scs-0213-dup-scheduler"] == FAIL
    assert found["scs-0213-dup-etcd"] == found["scs-0214-cp-machines"] == PASS


def test_without_kube_system_components_are_undecided():
    given = nodes("cp x/a", "cp y/b", "cp z/c")
    other = msgspec.structs.replace(pod("web", "cp-0"), metadata=ObjectMeta(name="web", namespace="shop"))
    result = judge(given, [other])
    assert result.layout.notes
    assert verdicts(result)["scs-0213-dup-etcd"] == OPEN
    assert verdicts(result)["scs-0214-cp-machines"] == PASS
    assert result.passed()  # the standard in force concerns nodes only
    assert not judge(given, [other], profile="scs-0213").passed()


def test_roles_and_pods_that_disagree():
    given = nodes("cp x/a", "cp y/b", "worker z/c")
    pods = [*stacked(given), pod("kube-apiserver", "worker-2")]
    result = judge(given, pods)
    assert verdicts(result)["cp-role-mismatch"] == WARN
    assert len(result.layout.control_plane) == 3


@pytest.mark.parametrize("profile, broken", [
    ("scs-0214-v2",       set()),
    ("scs-0214-v2-draft", {"scs-0214-cp-each-zone"}),
    ("scs-0214-v1",       {"scs-0214-cp-each-zone"}),
    ("scs-0213",          set()),
    ("ha",                {"fd-quorum-etcd-host", "fd-quorum-etcd-zone"}),
    ("bsi-app-4.4.a19",   {"bsi-cp-three-zones", "fd-quorum-etcd-zone"}),
])  # fmt: skip
def test_profiles_weigh_the_same_cluster(profile, broken):
    result = judge(nodes("2x cp x/a", "cp y/b", "worker x/c", "worker w/d"), profile=profile)
    assert {one.id for one in result.results if one.verdict == FAIL} == broken
    assert result.passed() is (not broken)


def test_the_record_asks_for_duplicates_and_only_warns_of_halves_and_workers():
    found = verdicts(judge(nodes("cp z/a", "2x worker z/a"), profile="scs-0213"))
    assert found["scs-0213-dup-etcd"] == FAIL
    assert found["scs-0213-half-etcd"] == found["scs-0214-worker-spread"] == WARN


@pytest.mark.parametrize("rows, stage", [
    (["cp z/a"],                                       "not distributed, not loss-safe"),
    (["2x cp z/a", "cp z/b"],                          "distributed over machines, not loss-safe"),
    (["cp x/a", "cp y/b", "cp y/c"],                   "distributed over zones, loss-safe for machines"),
    (["cp x/a r", "cp y/b s", "cp z/c t"],             "distributed over sites, loss-safe for sites"),
    (["3x cp nova/-"], "not distributed (perhaps over machines), not loss-safe (perhaps for machines)"),
])  # fmt: skip
def test_stages_in_both_senses(rows, stage):
    found = judge(nodes(*rows)).stage
    assert str(found) == stage


@pytest.mark.parametrize("sense, stage, verdict", [
    ("distributed", "none", PASS),
    ("distributed", "machines", PASS),
    ("distributed", "zones", PASS),
    ("distributed", "sites", FAIL),
    ("loss-safe", "machines", PASS),
    ("loss-safe", "zones", FAIL),
])  # fmt: skip
def test_a_required_stage_is_a_gate(sense, stage, verdict):
    result = judge(nodes("cp x/a", "cp y/b", "cp y/c"), stages=[(sense, stage)])
    assert verdicts(result)["stage"] == verdict
    assert result.passed() is (verdict == PASS)


def test_hosts_inferred_from_the_provider():
    bare = [node(f"n{i}", "cp", "z/-", provider_id=f"metal3://m/{i}") for i in range(3)]
    assert verdicts(judge(bare))["scs-0214-cp-machines"] == PASS
    zones = [node(f"n{i}", "cp", f"pve{i % 2}/-", provider_id=f"proxmox://c/{i}") for i in range(3)]
    assert judge(zones).layout.nodes[0].domains["host"] == "pve0"
    own = catalogue.Catalogue().preferring("host", "example.com/hypervisor")
    labelled = [node(f"n{i}", "cp", "z/-", labels={"example.com/hypervisor": f"h{i}"}) for i in range(3)]
    assert verdicts(judge(labelled, catalogue=own))["fd-quorum-etcd-host"] == PASS


def test_two_host_keys_that_disagree():
    given = [node("a", "cp", "z/h1", labels={"topology.openstack.org/host-id": "h2"}), *nodes("cp z/h3")]
    assert verdicts(judge(given))["lbl-mixed-keys"] == WARN
    partial = [node("a", "cp", "z/h1"), node("b", "cp", "z/-", labels={"topology.openstack.org/host-id": "h2"})]
    assert verdicts(judge(partial))["lbl-mixed-keys"] == WARN


def test_every_check_is_in_a_profile():
    assert set(checks.ALL) == {check for profile in profiles.PROFILES.values() for check in profile.weights}


def test_every_profile_names_checks_that_exist():
    for profile in profiles.PROFILES.values():
        assert set(profile.weights) <= set(checks.ALL)


def test_the_page_has_the_weight_of_every_check():
    page = (pathlib.Path(__file__).parents[2] / "docs/reference/audit.md").read_text(encoding="utf-8")
    letters = {"fail": "F", "fail-if-shown": "f", "warn": "w", "info": "i", None: "-"}
    asked = [profile for profile in profiles.PROFILES.values() if profile.name not in profiles.LEGACY]
    for check in checks.ALL:
        cells = [f"`{check}`", *(letters[profile.weights.get(check)] for profile in asked)]
        assert f"| {' | '.join(cells)} |" in page
    assert f"| {' | '.join(['Check', *(f'`{profile.name}`' for profile in asked)])} |" in page


def test_order_of_nodes_changes_no_verdict():
    given = nodes("2x cp x/a", "cp y/-", "cp -/b", "worker x/a")
    assert verdicts(judge(given)) == verdicts(judge(given[::-1]))


def test_every_finding_names_its_source():
    for one in judge(nodes("cp x/a", "worker -/- -")).results:
        assert one.source
        assert one.title
        assert one.message


def test_labels_alone_make_a_control_plane():
    assert CONTROL_PLANE in nodes("cp x/a")[0].metadata.labels
    assert HOST in nodes("cp x/a")[0].metadata.labels
    assert len(judge(nodes("cp x/a", "worker x/b")).layout.control_plane) == 1
