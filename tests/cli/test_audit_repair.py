"""`audit --repair` adds the moves that mend what failed, in every form that has room for them."""

import json

import yaml

HOST = "topology.scs.community/host-id"


def node(name, host):
    labels = {"node-role.kubernetes.io/control-plane": "", HOST: host}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def write(scene, *hosts):
    nodes = [node(f"control-{i}", host) for i, host in enumerate(hosts, 1)]
    (scene / "nodes.yaml").write_text(yaml.safe_dump_all(nodes))


def test_one_machine_for_all_is_mended_by_moves(run, scene):
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


def test_forms_without_room_for_a_plan_say_so(run, scene):
    write(scene, "hv-1", "hv-2", "hv-3")
    result = run("audit", "-f", "nodes.yaml", "--repair", "-o", "junit")
    assert result.exit_code == 2
