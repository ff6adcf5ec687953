"""`bayplan audit` on a cluster with pods: what each loss affects, whether displaced pods fit, and repairs."""

import contextlib
import io
import json
import pathlib
import shlex

import pytest
import yaml

from bayplan.cli import console

CLUSTER = pathlib.Path(__file__).parents[1] / "auditing" / "cluster.yaml"


def report(run, *words):
    done = run("audit", "-f", CLUSTER, "-o", "json", *words)
    assert done.exit_code in (0, 1), done.stderr
    return json.loads(done.stdout)


def level(found, name):
    return next(one for one in found["survivability"]["levels"] if one["level"] == name)


def verdicts(found):
    return {check["id"]: check["verdict"] for check in found["checks"]}


def without(tmp_path, change):
    """The cluster with every object changed by a function; an object for which it returns None is left out."""
    objects = [kept for one in yaml.safe_load_all(CLUSTER.read_text()) if (kept := change(one)) is not None]
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def test_every_level_is_lost_by_default_and_displaced_pods_are_rescheduled(run):
    found = report(run)
    assert [one["level"] for one in found["survivability"]["levels"]] == ["node", "host", "zone", "region", "cloud"]
    host = level(found, "host")
    assert host["controlPlane"]["tolerance"] == 0
    assert host["controlPlane"]["singlePoints"] == ["hv-1"]
    worst = host["events"][0]
    assert (worst["domain"], worst["controlPlane"]["belowNeed"]) == ("hv-1", ["etcd"])
    again = worst["rescheduling"]
    assert (again["displaced"], again["placed"], again["lostWithNode"]) == (3, 2, 8)
    (stranded,) = again["stranded"]
    assert (stranded["workload"], stranded["nearest"], stranded["missing"]) == (
        "StatefulSet data/db", "worker-2", {"cpu": "500m"},
    )  # fmt: skip
    assert "Insufficient cpu" in stranded["message"]
    assert stranded["fixes"]


def test_workloads_are_listed_by_namespace(run):
    weak = level(report(run), "zone")["workloads"]["weak"]
    assert {namespace: [one["name"] for one in ones] for namespace, ones in weak.items()} == {
        "data": ["Deployment data/report", "PodDisruptionBudget data/db"],
        "shop": ["Deployment shop/web"],
    }


def test_only_the_requested_levels_are_lost(run):
    found = report(run, "--lose", "zone")
    assert [one["level"] for one in found["survivability"]["levels"]] == ["zone"]
    assert verdicts(found)["fd-room-host"] == "N/A"


def test_losses_can_be_of_node_properties_labels_and_inventory_columns(run, tmp_path):
    (tmp_path / "power.yaml").write_text(
        "\n".join(f"{name}: {{power-feed: {'left' if name.endswith('1') else 'right'}}}"
                  for name in ("control-1", "control-2", "control-3", "worker-1", "worker-2", "worker-3"))
    )  # fmt: skip
    named = ("kernel", "topology.kubernetes.io/zone", "power-feed")
    words = [word for name in named for word in ("--lose", name)]
    found = report(run, "--inventory", tmp_path / "power.yaml", *words)
    assert level(found, "kernel")["controlPlane"]["singlePoints"] == ["6.1.0"]
    assert level(found, "topology.kubernetes.io/zone")["controlPlane"]["singlePoints"] == ["a"]
    assert level(found, "power-feed")["controlPlane"]["singlePoints"] == ["right"]
    result = run("audit", "-f", CLUSTER, "--inventory", tmp_path / "power.yaml")
    assert result.exit_code == 2
    assert "unknown level power-feed; there are host, rack, zone, region, cloud, and what --lose names" in result.stderr


def test_a_property_that_no_node_has_is_reported(run):
    done = run("audit", "-f", CLUSTER, "--lose", "flavour")
    assert "warning: no node has flavour: its loss is not simulated" in done.stderr


def test_losses_are_counted_without_rescheduling(run):
    found = report(run, "--no-reschedule")
    assert found["survivability"]["rescheduled"] is False
    assert found["survivability"]["note"] == "rescheduling is off (--no-reschedule)"
    assert all(event["rescheduling"] is None for event in level(found, "host")["events"])
    assert verdicts(found)["fd-room-host"] == "N/A"
    assert verdicts(found)["fd-n1-workloads-host"] == "WARN"


def test_nodes_without_allocatable_resources_are_reported(run, tmp_path):
    def bare(one, spare=()):
        if one["kind"] == "Node" and one["metadata"]["name"] not in spare:
            del one["status"]["allocatable"]
        return one

    path = without(tmp_path, bare)
    found = json.loads(run("audit", "-f", path, "-o", "json").stdout)
    assert "status.allocatable" in found["survivability"]["note"]
    done = run("audit", "-f", without(tmp_path, lambda one: bare(one, ("worker-1", "worker-2"))), "-o", "json")
    assert "4 nodes have no status.allocatable" in done.stderr
    assert json.loads(done.stdout)["survivability"]["rescheduled"] is True


def test_a_check_can_be_required(run):
    assert run("audit", "-f", CLUSTER).exit_code == 0
    done = run("audit", "-f", CLUSTER, "--require", "fd-room-zone", "-o", "scs")
    assert done.exit_code == 1
    assert "fd-room-zone: FAIL" in done.stdout
    assert done.stdout.endswith("node-distribution-check: PASS\n")  # the standard does not require it
    assert run("audit", "-f", CLUSTER, "--require", "fd-rooms").exit_code == 2


def test_quorum_workloads_are_selected_by_name(run):
    assert verdicts(report(run))["fd-need-workloads-zone"] == "WARN"
    checks = {check["id"]: check for check in report(run, "--quorum-workloads", "data/db")["checks"]}
    assert checks["fd-need-workloads-zone"]["workloads"]["data"] == [
        "PodDisruptionBudget data/db", "StatefulSet data/db",
    ]  # fmt: skip
    assert run("audit", "-f", CLUSTER, "--quorum-workloads", "(").exit_code == 2


def test_repair_has_patches_that_spread_vulnerable_workloads(run, tmp_path):
    found = report(run, "--repair")
    patches = {patch["workload"]: patch for patch in found["repair"]["patches"]}
    web = patches["Deployment shop/web"]
    assert web["works"]
    (constraint,) = web["patch"]["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"] == {"matchLabels": {"app": "web"}}
    assert patches["Deployment data/report"]["works"] is False  # too large for the other zone
    text = run("audit", "-f", CLUSTER, "--repair").stdout.partition("For workloads:")[2]
    line = next(line for line in text.splitlines() if "patch deployment web" in line)
    words = shlex.split(line)
    assert words[:7] == ["kubectl", "-n", "shop", "patch", "deployment", "web", "--patch"]
    assert json.loads(words[7]) == web["patch"]


def test_workloads_without_a_label_to_spread_by_are_listed(run, tmp_path):
    def unlabelled(one):
        for key in [key for key in one["metadata"].get("labels", {}) if "host-id" in key or "zone" in key]:
            del one["metadata"]["labels"][key]
        return one

    path = without(tmp_path, unlabelled)
    hosts = {"control-1": "a", "control-2": "b", "control-3": "c", "worker-1": "d", "worker-2": "e", "worker-3": "f"}
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump({name: {"host": host} for name, host in hosts.items()}))
    done = run("audit", "-f", path, "--inventory", tmp_path / "hosts.yaml", "-o", "json", "--repair")
    assert json.loads(done.stdout)["repair"]["unlabelled"] == ["Deployment shop/web"]


def test_the_audit_is_repeated_on_the_plan(run):
    found = report(run, "--repair", "--ha")
    plan = found["repair"]
    assert (plan["passes"], plan["remaining"]) == (True, [])
    assert plan["tolerance"]["host"] == {"before": 0, "after": 1}
    (move,) = plan["moves"]
    assert (move["node"], move["from"]["host"], move["how"]) == ("control-1", "hv-1", "add-first")
    staged = report(run, "--repair", "--require-stage", "loss-safe:zones")["repair"]
    assert staged["passes"]
    assert staged["tolerance"]["zone"] == {"before": 0, "after": 1}


def test_checks_that_moves_cannot_fix_are_reported(run):
    found = report(run, "--repair", "--require", "fd-room-zone")["repair"]
    assert (found["passes"], found["remaining"], found["moves"]) == (False, ["fd-room-zone"], [])
    done = run("audit", "-f", CLUSTER, "--repair", "--require", "fd-room-zone")
    assert "moving nodes does not fix fd-room-zone" in done.stdout


def test_pods_on_unknown_nodes_are_left_out_with_a_note(run, tmp_path):
    path = without(tmp_path, lambda one: None if one["metadata"]["name"] == "worker-3" else one)
    done = run("audit", "-f", path, "-o", "json")
    assert "warning: pods on an unknown node (worker-3) are not counted\n" in done.stderr
    assert json.loads(done.stdout)["notes"] == ["pods on an unknown node (worker-3) are not counted"]


@pytest.mark.parametrize("value", ["half", "50"])
def test_an_invalid_disruption_budget_is_an_error(run, tmp_path, value):
    def broken(one):
        if one["kind"] == "PodDisruptionBudget":
            one["spec"]["minAvailable"] = value
        return one

    done = run("audit", "-f", without(tmp_path, broken))
    assert done.exit_code == 2
    assert f"spec.minAvailable: expected a whole number or a share such as 50%, got '{value}'" in done.stderr


def test_the_scs_report_needs_a_subject(run):
    done = run("audit", "-f", CLUSTER, "-o", "scs-report")
    assert done.exit_code == 2
    assert "--subject" in done.stderr


def test_a_long_audit_shows_a_progress_bar(run, monkeypatch):
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr(console, "PROGRESS_DELAY_SECONDS", -1.0)
    monkeypatch.setattr(console, "PROGRESS_INTERVAL_SECONDS", -1.0)

    @contextlib.contextmanager
    def progress(_):
        line = console.ProgressLine(shown)
        yield line.show
        line.clear()

    monkeypatch.setattr("bayplan.cli.console.Console.progress", progress)
    assert run("audit", "-f", CLUSTER).exit_code == 0
    assert "losing host hv-1 [" in shown.getvalue()
    assert "9 of 9" in shown.getvalue()
    assert shown.getvalue().endswith("\r\x1b[2K")


def test_a_hosting_cluster(run, tmp_path):
    workers = without(tmp_path, lambda one: one if one["metadata"]["name"].startswith("worker") else None)
    assert run("audit", "-f", workers).exit_code == 1  # hidden
    there = [one for one in yaml.safe_load_all(CLUSTER.read_text()) if one["kind"] == "Node"]
    parts = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{part}-{i}", "namespace": "tenant"},
            "spec": {"nodeName": f"worker-{i}", "containers": [{"name": part}]},
            "status": {"phase": "Running"},
        }
        for part in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        for i in (1, 2, 3)
    ]
    (tmp_path / "hosting.yaml").write_text(yaml.safe_dump_all([*there, *parts]))
    done = run("audit", "-f", workers, "--hosting", tmp_path / "hosting.yaml", "-o", "json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert verdicts(found)["scs-0214-cp-machines"] == "PASS"
    assert "hosting/worker-1" in run("audit", "-f", workers, "--hosting", tmp_path / "hosting.yaml").stdout


def test_objects_given_twice_do_not_stop_the_losses(run, tmp_path):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}}
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(json.dumps(service))
    done = run("audit", "-f", CLUSTER, "-f", tmp_path / "one.json", "-f", tmp_path / "two.json", "-o", "json")
    assert done.exit_code == 0
    assert "warning: Service shop/web is in the input more than once; the first one is used\n" in done.stderr
    assert json.loads(done.stdout)["survivability"]["rescheduled"] is True


BY_SERVICE = {
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"app": "web"}},
}  # fmt: skip
BY_CONTROLLER = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}},
    },
}  # fmt: skip


def spread_scene(extra, lost_node):
    """
    Two replicas on b, where most is free, and one on the node that is lost, or pending if that is empty.

    A large pod of lower priority goes the same way, and fits only on c, as long as c is empty.
    """
    found = []
    for name, cpu in (("a", "4"), ("b", "8"), ("c", "2")):
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": name}
        labels |= {"disk": "small"} if name == "c" else {}
        status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
        if name != "a" or lost_node:
            meta = {"name": name, "labels": labels}
            found.append({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status})
    for app, name, node, cpu in (
        ("web", "web-abc-1", "b", "100m"),
        ("web", "web-abc-2", "b", "100m"),
        ("web", "web-abc-x", lost_node, "100m"),
        ("big", "big-abc-x", lost_node, "1950m"),
    ):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-abc", "uid": app, "controller": True}
        labels = {"app": app, "pod-template-hash": "abc"}
        meta = {"name": name, "namespace": "shop", "labels": labels, "ownerReferences": [owner]}
        requests = {"cpu": cpu, "memory": "1Mi"}
        spec = {"containers": [{"name": "c", "image": app, "resources": {"requests": requests}}]}
        spec |= {"nodeName": node, "priority": 10 if app == "web" else 0}
        spec |= {"nodeSelector": {"disk": "small"}} if app == "big" else {}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    return [*found, *extra]


@pytest.mark.parametrize("extra, target", [([BY_SERVICE], "c"), ([BY_CONTROLLER], "c"), ([], "b")])
def test_displaced_pods_are_spread_as_place_spreads_new_ones(extra, target, run, tmp_path):
    before, after = tmp_path / "before.yaml", tmp_path / "after.yaml"
    before.write_text(yaml.safe_dump_all(spread_scene(extra, "a")))
    after.write_text(yaml.safe_dump_all(spread_scene(extra, "")))
    placed = {
        item["name"]: item["target"] for item in json.loads(run("place", "-f", after, "-o", "json").stdout)["items"]
    }
    audited = json.loads(run("audit", "-f", before, "-o", "json", "--lose", "node").stdout)
    (event,) = [one for one in level(audited, "node")["events"] if one["domain"] == "a"]
    assert placed == {"web-abc-x": target, "big-abc-x": "" if target == "c" else "c"}
    assert [one["workload"] for one in event["rescheduling"]["stranded"]] == (
        ["Deployment shop/big"] if target == "c" else []
    )


def test_advice_on_room_names_the_rule_that_no_room_helps(run, tmp_path):
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]}}  # fmt: skip
    objects = [
        {"apiVersion": "v1", "kind": "Node",
         "metadata": {"name": f"n{i}", "labels": {"kubernetes.io/hostname": f"n{i}", "topology.scs.community/host-id": f"h{i}"}},
         "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}}
        for i in range(2)
    ]  # fmt: skip
    objects += [
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": f"web-{i}", "namespace": "shop", "labels": {"app": "web"},
                      "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}]},
         "spec": {"nodeName": f"n{i}", "affinity": apart, "containers": [{"name": "c", "image": "web"}]},
         "status": {"phase": "Running"}}
        for i in range(2)
    ]  # fmt: skip
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    found = json.loads(run("audit", "-f", path, "-o", "json").stdout)
    fix = next(check["fix"] for check in found["checks"] if check["id"] == "fd-room-host")
    assert "add room" not in fix
    assert fix.startswith(
        "no room helps 1 pod, such as shop/web-0: 0/1 nodes are available: 1 node(s) didn't match pod"
    )
    assert "To try: " in fix
