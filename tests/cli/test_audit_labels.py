"""`audit labels`: labels from an inventory, without overwriting any, and safe to paste."""

import json
import subprocess

import pytest
import yaml

ZONE, HOST = "topology.kubernetes.io/zone", "topology.scs.community/host-id"


@pytest.fixture
def files(tmp_path):
    """Writes nodes with labels, and servers with their host and zone, as OpenStack lists them."""

    def write(nodes, servers):
        items = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            for name, labels in nodes.items()
        ]
        rows = [
            {"ID": f"id-{i}", "Name": name, "Host": host, "Availability Zone": zone}
            for i, (name, (host, zone)) in enumerate(servers.items())
        ]
        (tmp_path / "nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        (tmp_path / "servers.json").write_text(json.dumps(rows))
        return ["audit", "labels", "-f", tmp_path / "nodes.json", "--inventory", tmp_path / "servers.json"]

    return write


def test_present_labels_are_not_overwritten_unless_asked(run, files):
    words = files(
        {"n1": {ZONE: "eu-1a"}, "n2": {ZONE: "az2"}, "n3": {}},
        {"n1": ("hv1", "az1"), "n2": ("hv2", "az2"), "n3": ("hv3", "az2")},
    )
    done = run(*words)
    assert done.exit_code == 0
    differing = f"n1 has {ZONE}=eu-1a, and the inventory says az1: not changed without --overwrite"
    assert done.stdout.splitlines() == [
        f"kubectl label node n1 {HOST}=hv1",
        f"# {differing}",
        f"kubectl label node n2 {HOST}=hv2",
        f"kubectl label node n3 {HOST}=hv3 {ZONE}=az2",
    ]
    assert f"warning: {differing}" in done.stderr
    forced = run(*words, "--overwrite")
    assert forced.stdout.splitlines()[0] == f"kubectl label --overwrite node n1 {HOST}=hv1 {ZONE}=az1"
    assert "--overwrite" not in forced.stdout.splitlines()[1]


@pytest.mark.parametrize("zone, why", [("nova", "the default of OpenStack"), ("az1", "the same for all servers")])
def test_zones_that_tell_nothing_are_neither_written_nor_evidence(run, files, zone, why):
    words = files(
        {f"n{i}": {ZONE: f"eu-1{i}", "node-role.kubernetes.io/control-plane": ""} for i in range(3)},
        {f"n{i}": (f"hv{i}", zone) for i in range(3)},
    )
    done = run(*words, "--overwrite")
    assert ZONE not in done.stdout
    assert f"zone {zone} tells nothing, as it is {why}; it is left out" in done.stderr
    report = json.loads(run("audit", *words[2:], "-o", "json").stdout)
    assert [one["domains"]["zone"] for one in report["layout"]["nodes"]] == ["eu-10", "eu-11", "eu-12"]
    assert {check["id"]: check["verdict"] for check in report["checks"]}["scs-0214-labels-current"] == "UNDECIDED"


def test_an_inventory_written_by_hand_may_state_one_zone(run, tmp_path):
    (tmp_path / "hosts.yaml").write_text("a: {host: h1, zone: z}\nb: {host: h2, zone: z}\n")
    assert run("audit", "labels", "--inventory", tmp_path / "hosts.yaml").stdout.count(f"{ZONE}=z") == 2


@pytest.mark.parametrize(
    "name", ["$(touch pwned)", "`touch pwned`", "a; touch pwned", "a' || touch pwned '", "!!", "-f/x"]
)
def test_output_can_be_pasted_whatever_a_server_is_called(run, tmp_path, name):
    (tmp_path / "servers.json").write_text(json.dumps([{"ID": "1", "Name": name, "Host": "hv1"}]))
    done = run("audit", "labels", "--inventory", tmp_path / "servers.json")
    assert done.exit_code == 0
    script = "kubectl() { :; }\n" + done.stdout
    subprocess.run(["bash", "-eu", "-c", script], cwd=tmp_path, check=True)
    assert not (tmp_path / "pwned").exists()


def test_manifests_instead_of_commands(run, files):
    words = files({"n1": {ZONE: "x"}, "n2": {}}, {"n1": ("hv1", "x"), "n2": ("hv2", "y")})
    expected = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {HOST: "hv1"}}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2", "labels": {HOST: "hv2", ZONE: "y"}}},
    ]
    assert json.loads(run(*words, "-o", "json").stdout)["items"] == expected
    assert yaml.safe_load(run(*words, "-o", "yaml").stdout)["items"] == expected
    assert run(*words, "-o", "junit").exit_code == 2


def test_hashed_labels_then_pass_the_audit_with_the_inventory(run, files, tmp_path):
    (tmp_path / "key").write_text("secret\n")
    control = {"node-role.kubernetes.io/control-plane": "", "topology.kubernetes.io/region": "r"}
    servers = {f"n{i}": (f"hv{i}", f"az{i}") for i in range(3)}
    words = files(dict.fromkeys(servers, control), servers)
    manifests = json.loads(run(*words, "--hash-key-file", tmp_path / "key", "-o", "json").stdout)["items"]
    labelled = {one["metadata"]["name"]: {**control, **one["metadata"]["labels"]} for one in manifests}
    words = files(labelled, servers)
    done = run("audit", *words[2:], "-o", "json")
    checks = {check["id"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
    assert (checks["scs-0214-labels-current"], checks["scs-0214-cp-machines"]) == ("PASS", "PASS")
    assert "hv1" not in done.stdout + run("audit", *words[2:]).stdout


def test_overwriting_is_for_labels_only(run, files):
    words = files({"n1": {}}, {"n1": ("hv1", "x")})
    assert run("audit", *words[2:], "--overwrite").exit_code == 2
