"""`bayplan audit`: exit codes, options and bad input."""

import json
import pathlib
import re
import xml.etree.ElementTree as ET

import pytest

SCENARIOS = pathlib.Path(__file__).parents[1] / "auditing" / "scenarios.yaml"
NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: {name}
  annotations: {{cluster.x-k8s.io/cluster-name: {cluster}}}
  labels: {{topology.kubernetes.io/zone: z, topology.kubernetes.io/region: r, node-role.kubernetes.io/control-plane: ""}}
spec: {{providerID: openstack:///{name}-uuid}}
"""


@pytest.fixture
def dump(tmp_path):
    """Three control-plane nodes in one zone, without host labels: what most clusters look like."""
    path = tmp_path / "nodes.yaml"
    path.write_text("---\n".join(NODE.format(name=f"n{i}", cluster="c") for i in range(3)))
    return path


@pytest.mark.parametrize("scenario, words, code", [
    ("success-1",      (),                                     0),
    ("success-2",      (),                                     1),
    ("success-2",      ("--exit-zero",),                       0),
    ("success-2",      ("--profile", "legacy"),                0),
    ("missing-labels", (),                                     1),
    ("missing-labels", ("--allow-undecided",),                 0),
    ("success-1",      ("--ha",),                              0),
    ("success-1",      ("--require-stage", "zones"),           0),
    ("success-1",      ("--require-stage", "none"),            0),
    ("success-1",      ("--require-stage", "sites"),           1),
    ("success-1",      ("--require-stage", "loss-safe:zones"), 0),
    ("success-1",      ("--require-stage", "moons"),           2),
    ("success-1",      ("--label-key", "floor=x"),             2),
    ("success-1",      ("--exclude-workloads", "("),           2),
    ("no-such",        (),                                     2),
])  # fmt: skip
def test_the_exit_code_is_the_answer(run, scenario, words, code):
    assert run("audit", "-f", SCENARIOS, "--scenario", scenario, *words).exit_code == code


def test_an_inventory_supplies_missing_topology(run, dump, tmp_path):
    assert run("audit", "-f", dump).exit_code == 1
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text("n0: {host: a}\nn1: {host: b}\nn2: {host: c}\n")
    done = run("audit", "-f", dump, "--inventory", inventory, "-o", "json")
    assert done.exit_code == 0
    checks = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["scs-0214-cp-machines"]["evidence"] == "observed"


def test_servers_of_openstack_are_an_inventory(run, dump, tmp_path):
    servers = [{"ID": f"n{i}-uuid", "Name": f"vm-{i}", "Host": f"hv{i}", "Availability Zone": "z"} for i in range(3)]
    (tmp_path / "servers.json").write_text(json.dumps(servers))
    done = run("audit", "-f", dump, "--inventory", tmp_path / "servers.json")
    assert done.exit_code == 0
    assert "hv2" in done.stdout
    assert lines_of(done) == [
        f"warning: {tmp_path / 'servers.json'}: zone z tells nothing, as it is the same for all servers; it is left out"
    ]


@pytest.mark.parametrize("words", [[], ["labels"]])
def test_a_server_is_known_by_its_id_before_its_name(run, tmp_path, words):
    nodes = [
        {"kind": "Node", "apiVersion": "v1", "spec": {"providerID": f"openstack:///id-{i}"},
         "metadata": {"name": f"cp-{i}", "labels": {"node-role.kubernetes.io/control-plane": ""}}}
        for i in range(2)
    ]  # fmt: skip
    rows = [("id-0", "cp-0", "h1"), ("id-1", "cp-1", "h1"), ("id-9", "cp-0", "h2")]  # names need not be unique
    servers = [{"ID": uuid, "Name": name, "Host": host} for uuid, name, host in rows]
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": nodes}))
    (tmp_path / "servers.json").write_text(json.dumps(servers))
    done = run("audit", *words, "-f", tmp_path / "nodes.json", "--inventory", tmp_path / "servers.json")
    assert "several servers are named cp-0; they are matched by provider id only" in done.stderr
    assert "h2" not in done.stdout
    if not words:
        assert re.search(r"FAIL +scs-0214-cp-machines", done.stdout)


def test_a_server_of_that_name_in_another_cloud_is_not_the_node(run, dump, tmp_path):
    servers = [{"ID": f"other-{i}", "Name": f"n{i}", "Host": f"hv{i}"} for i in range(3)]
    (tmp_path / "servers.json").write_text(json.dumps(servers))
    done = run("audit", "-f", dump, "--inventory", tmp_path / "servers.json")
    assert "names 6 unknown nodes" in done.stderr
    assert "hv0" not in done.stdout


def test_a_label_key_can_be_set(run, tmp_path):
    nodes = "".join(f"n{i}: {{node-role.kubernetes.io/control-plane: '', hv: h{i}}}\n" for i in range(3))
    (tmp_path / "labels.yaml").write_text(nodes)
    done = run("audit", "-f", tmp_path / "labels.yaml", "--label-key", "host=hv", "-o", "json")
    checks = {check["id"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
    assert checks["scs-0214-cp-machines"] == "PASS"
    assert checks["scs-0214-labels-zone"] == "FAIL"


def test_odd_input_is_a_warning_and_still_audited(run, dump, tmp_path):
    more = tmp_path / "more.yaml"
    more.write_text("---\n".join([NODE.format(name="n0", cluster="c"), NODE.format(name="x", cluster="other")]))
    (tmp_path / "hosts.yaml").write_text("n0: {host: a}\nghost: {host: b}\n")
    done = run("audit", "-f", dump, "-f", more, "--inventory", tmp_path / "hosts.yaml")
    assert done.exit_code == 1
    assert "warning: Node n0 is in the input more than once; the first one is used\n" in done.stderr
    assert "warning: the nodes belong to 2 clusters (c, other) and are audited as one\n" in done.stderr
    assert "hosts.yaml names an unknown node: ghost\n" in done.stderr


def test_a_cluster_wide_object_given_twice_has_no_namespace(run, dump, tmp_path):
    driver = "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: csi}}\n"
    (tmp_path / "twice.yaml").write_text(f"{driver}---\n{driver}")
    done = run("audit", "-f", dump, "-f", tmp_path / "twice.yaml")
    assert "warning: CSIDriver csi is in the input more than once; the first one is used\n" in done.stderr


def lines_of(done):
    return [line for line in done.stderr.splitlines() if line.startswith("warning: ")]


def test_many_duplicates_are_one_warning(run, dump, tmp_path):
    (tmp_path / "again.yaml").write_text(dump.read_text())
    done = run("audit", "-f", dump, "-f", tmp_path / "again.yaml", "-o", "json")
    assert lines_of(done) == [
        "warning: 3 objects are in the input more than once (Node n0, Node n1, Node n2); the first of each is used"
    ]
    assert len(json.loads(done.stdout)["layout"]["nodes"]) == 3


@pytest.mark.parametrize("objects", [
    # The same node with two ids; the namespace whose id identifies the cluster, twice.
    [{"kind": "Node", "metadata": {"name": "n9", "uid": uid}} for uid in ("1", "2")],
    [{"kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}} for uid in ("1", "2")],
])  # fmt: skip
def test_objects_of_two_clusters_are_known_by_their_ids(run, dump, tmp_path, objects):
    for i, one in enumerate(objects):
        (tmp_path / f"more-{i}.json").write_text(json.dumps({"apiVersion": "v1", **one}))
    done = run("audit", "-f", dump, "-f", tmp_path / "more-0.json", "-f", tmp_path / "more-1.json")
    assert done.exit_code == 1
    assert "warning: the objects come from several clusters, by their uids, and are audited as one" in lines_of(done)


@pytest.mark.parametrize("places, line", [
    (["h/x/r", "h/y/r"],          "host h is in zone x and y"),
    (["h/x/r", "g/x/s"],          "zone x is in region r and s"),
    (["h/x/r", "h/y/s"],          "host h is in zone x and y"),
])  # fmt: skip
def test_an_inconsistent_hierarchy_is_a_warning(run, tmp_path, places, line):
    nodes = {}
    for i, place in enumerate(places):
        host, zone, region = place.split("/")
        nodes[f"n{i}"] = {
            "node-role.kubernetes.io/control-plane": "",
            "topology.scs.community/host-id": host,
            "topology.kubernetes.io/zone": zone,
            "topology.kubernetes.io/region": region,
        }
    (tmp_path / "nodes.yaml").write_text(json.dumps(nodes))
    done = run("audit", "-f", tmp_path / "nodes.yaml", "-o", "json")
    assert lines_of(done) == [f"warning: labels contradict each other: {line}"]
    found = {check["id"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
    assert "FAIL" in (found["lbl-host-one-zone"], found["lbl-zone-one-region"])
    assert found["scs-0214-labels-zone"] == "PASS"


def test_an_inventory_with_unknown_nodes_is_a_warning(run, dump, tmp_path):
    (tmp_path / "hosts.yaml").write_text("".join(f"ghost-{i}: {{host: h}}\n" for i in range(7)))
    done = run("audit", "-f", dump, "--inventory", tmp_path / "hosts.yaml")
    assert done.exit_code == 1
    (line,) = lines_of(done)
    assert line.endswith("hosts.yaml names 7 unknown nodes: ghost-0, ghost-1, ghost-2, ghost-3, ghost-4, …")


@pytest.mark.parametrize("text, message", [
    ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "no Node among the objects"),
    ("a: 1\n", "expected an object with apiVersion and kind, or labels by node"),
    ("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: l}\nspec: {leaseDurationSeconds: x}\n", ':4, Lease default/l: spec.leaseDurationSeconds: expected a whole number, got the string "x"'),
    ("apiVersion: v1\nkind: Node\nmetadata: {labels: {}}\n", "expected a name"),
    ("a: [\n", "invalid YAML"),
])  # fmt: skip
def test_bad_input(run, tmp_path, text, message):
    (tmp_path / "bad.yaml").write_text(text)
    done = run("audit", "-f", tmp_path / "bad.yaml")
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("text, message", [
    ("", "the file is empty"),
    ("5", "expected domains by node, or a list of servers"),
    ("{}", "expected domains by node, or a list of servers"),
    ("n0: {host: h}\nn0: {host: g}", "bad.yaml:2: the key n0 is given twice, first on line 1"),
    ("n0: {host: [a]}", "n0.host: expected the name of a domain"),
    ("n0: {host: h}\n---\nn1: {host: h}", "bad.yaml:2: expected one document"),
    ("n0: &a {host: *a}", "*a has no anchor before it, or stands within it"),
    ("[" * 5000, "nested more than 200 levels deep"),
    ("n0: {host: !!int a}", "'a' is no int"),
    ("n0: h", "expected domains by level"),
    ("n0: {floor: 3}", "unknown level floor; there are host, rack, zone, region, cloud"),
    ("- {Host: h}", "expected a server with ID or Name"),
])  # fmt: skip
def test_bad_inventories(run, dump, tmp_path, text, message):
    (tmp_path / "bad.yaml").write_text(text)
    done = run("audit", "-f", dump, "--inventory", tmp_path / "bad.yaml")
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("form", ["table", "markdown", "junit", "sarif", "scs", "json"])
def test_escape_sequences_in_names_do_not_reach_the_terminal(run, tmp_path, form):
    label = '"\\e[31mz|<b>"'
    nodes = "".join(
        f"n{i}: {{node-role.kubernetes.io/control-plane: '', topology.kubernetes.io/zone: {label}, "
        f"topology.scs.community/host-id: {label}, topology.kubernetes.io/region: r{i}}}\n"
        for i in range(2)
    )
    (tmp_path / "nodes.yaml").write_text(nodes)
    done = run("audit", "-f", tmp_path / "nodes.yaml", "-o", form)
    assert done.exit_code == 1
    assert "\x1b" not in done.stdout
    if form == "junit":
        ET.fromstring(done.stdout)
    if form == "markdown":
        assert "<b>" not in done.stdout


def test_several_scenarios_need_a_choice(run):
    done = run("audit", "-f", SCENARIOS)
    assert done.exit_code == 2
    assert "choose one of success-1" in done.stderr


def test_labels_from_an_inventory(run, tmp_path):
    (tmp_path / "hosts.yaml").write_text("b: {host: rack 7, zone: z}\na: {host: h1}\n")
    assert run("audit", "labels", "--inventory", tmp_path / "hosts.yaml").exit_code == 2  # a label value has no space
    (tmp_path / "key").write_text("secret\n")
    done = run("audit", "labels", "--inventory", tmp_path / "hosts.yaml", "--hash-key-file", tmp_path / "key")
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()
    assert first.startswith("kubectl label node a topology.scs.community/host-id=")
    assert "rack 7" not in second
    assert all(len(word.partition("=")[2]) <= 63 for word in second.split()[4:])
    (tmp_path / "plain.yaml").write_text("a: {host: h1, zone: z}\n")
    plain = run("audit", "labels", "--inventory", tmp_path / "plain.yaml", "--label-key", "host=example.com/hv")
    assert plain.stdout == "kubectl label node a example.com/hv=h1 topology.kubernetes.io/zone=z\n"


def test_labels_of_servers_are_set_on_their_nodes(run, dump, tmp_path):
    servers = [{"ID": f"n{i}-uuid", "Name": f"vm-{i}", "Host": f"hv{i}"} for i in range(2)]
    (tmp_path / "servers.json").write_text(json.dumps(servers))
    done = run("audit", "labels", "-f", dump, "--inventory", tmp_path / "servers.json")
    assert [line.split()[3] for line in done.stdout.splitlines()] == ["n0", "n1"]
    alone = run("audit", "labels", "--inventory", tmp_path / "servers.json")
    assert [line.split()[3] for line in alone.stdout.splitlines()] == ["vm-0", "vm-1"]


def test_labels_need_an_inventory(run):
    assert run("audit", "labels").exit_code == 2


def test_links_images_and_html_in_names_are_text_in_markdown(run, tmp_path):
    zone = "'[free](https://evil.example) ![x](www.evil.example/p.png) <img src=x> `code` *b*'"
    nodes = "".join(
        f"n{i}: {{node-role.kubernetes.io/control-plane: '', topology.kubernetes.io/zone: {zone}}}\n" for i in range(2)
    )
    (tmp_path / "nodes.yaml").write_text(nodes)
    text = run("audit", "-f", tmp_path / "nodes.yaml", "-o", "markdown").stdout
    assert (
        r"\[free\](https&#58;//evil.example) \!\[x\](www&#46;evil.example/p.png) &lt;img src=x> \`code\` \*b\*" in text
    )
    assert not any(markup in text for markup in ("[free]", "https://evil", "www.evil", "<img"))
    assert "| `scs-0214-cp-machines` |" in text


def test_names_that_look_like_options_are_names(run, tmp_path):
    (tmp_path / "hosts.yaml").write_text("--all: {host: h1}\n")
    done = run("audit", "labels", "--inventory", tmp_path / "hosts.yaml", "--label-key", "host=example.com/hv")
    assert done.stdout == "# --all cannot be the name of a node\n"
    (tmp_path / "hosts.yaml").write_text('"a\\e[31m": {host: h1}\n')
    done = run("audit", "labels", "--inventory", tmp_path / "hosts.yaml")
    assert done.exit_code == 2
    assert "expected the name of a node, got 'a\\x1b[31m'" in done.stderr
