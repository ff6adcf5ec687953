"""`audit --repair` adds the moves that make failed checks pass, in every format that can show them."""

import json

import yaml

HOST = "topology.scs.community/host-id"


def node(name, host):
    labels = {"node-role.kubernetes.io/control-plane": "", HOST: host}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def write(scene, *hosts):
    nodes = [node(f"control-{i}", host) for i, host in enumerate(hosts, 1)]
    (scene / "nodes.yaml").write_text(yaml.safe_dump_all(nodes))


def test_moves_fix_a_control_plane_on_one_machine(run, scene):
    write(scene, "hv-1", "hv-1", "hv-1")
    result = run("audit", "-f", "nodes.yaml", "--repair")
    assert result.exit_code == 1
    assert "Repair plan:" in result.stdout
    assert "control-" in result.stdout.partition("Repair plan:")[2]


def test_the_plan_is_in_json_too(run, scene):
    write(scene, "hv-1", "hv-1", "hv-1")
    report = json.loads(run("audit", "-f", "nodes.yaml", "--repair", "-o", "json").stdout)
    assert report["repair"]["steps"]
    assert "repair" not in json.loads(run("audit", "-f", "nodes.yaml", "-o", "json").stdout)


def test_repair_needs_a_format_that_can_show_a_plan(run, scene):
    write(scene, "hv-1", "hv-2", "hv-3")
    result = run("audit", "-f", "nodes.yaml", "--repair", "-o", "junit")
    assert result.exit_code == 2
