import json

import pytest
import yaml

MESSAGE = "0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) had untolerated taint(s)."
TABLE = f"""\
NAMESPACE  NAME   NODE    MESSAGE
shop       web-2  <none>  {MESSAGE}
store      db-0   b1      -
"""


def test_the_table_has_one_row_per_pod(run, scene):
    result = run("place", "-f", ".")
    assert result.stdout == TABLE
    assert result.stderr == "note: 1 of 2 placed\n"
    assert result.exit_code == 1


def test_wide_adds_owner_priority_and_score(run, scene):
    lines = run("place", "-f", ".", "-o", "wide").stdout.splitlines()
    assert lines[0].split() == ["NAMESPACE", "NAME", "NODE", "OWNER", "PRIORITY", "SCORE", "MESSAGE"]
    assert lines[1].split()[:6] == ["shop", "web-2", "<none>", "<none>", "0", "<none>"]
    assert int(lines[2].split()[5]) > 0


def test_the_owner_of_a_pod_is_its_controller(run, scene):
    manifest = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: queue}
spec:
  serviceName: queue
  selector: {matchLabels: {app: queue}}
  template:
    metadata: {labels: {app: queue}}
    spec: {containers: [{name: c, image: i}]}
"""
    (scene / "queue.yaml").write_text(manifest)
    items = json.loads(run("place", "-f", ".", "-o", "json").stdout)["items"]
    assert {one["name"]: one["owner"] for one in items} == {"web-2": "", "db-0": "", "queue-0": "statefulset/queue"}


def test_the_exit_code_is_0_if_everything_is_placed(run, scene):
    assert run("place", "-f", "nodes.yaml", "-f", "db.yaml").exit_code == 0


def test_exit_zero_overrides_the_answer(run, scene):
    assert run("place", "-f", ".", "--exit-zero").exit_code == 0


def test_a_pod_of_another_api_group_is_no_pod(run, scene):
    (scene / "other.yaml").write_text("{apiVersion: example.io/v1, kind: Pod, metadata: {name: web-3}}")
    result = run("place", "-f", ".")
    assert result.stdout == TABLE
    assert (
        "note: not read, because their kinds are not known; if they make pods, these are missing: 1 Pod\n"
        in result.stderr
    )


def test_nothing_to_place_is_reported(run, scene):
    result = run("place", "-f", "nodes.yaml")
    assert (result.exit_code, "there is nothing to place" in result.stderr) == (0, True)


def test_names_are_as_kubectl_prints_them(run, scene):
    assert run("place", "-f", ".", "-o", "name").stdout == "pod/web-2\npod/db-0\n"


@pytest.mark.parametrize("output, parse", [("json", json.loads), ("yaml", yaml.safe_load)])
def test_documents_are_versioned(output, parse, run, scene):
    plan = parse(run("place", "-f", ".", "-o", output).stdout)
    assert (plan["apiVersion"], plan["kind"]) == ("bayplan.io/v1alpha1", "PlacementList")
    assert plan["summary"] == {"placed": 1, "unplaced": 1, "notJudged": 0}
    unschedulable, placed = plan["items"]
    assert (unschedulable["name"], unschedulable["target"], unschedulable["message"]) == ("web-2", "", MESSAGE)
    assert unschedulable["reasons"] == {
        "node(s) didn't match pod anti-affinity rules": 1,
        "node(s) had untolerated taint(s)": 1,
    }
    assert (placed["name"], placed["target"]) == ("db-0", "b1")


@pytest.mark.parametrize("scope, names", [
    (("-n", "store"), ["db-0"]),
    (("-n", "store", "-A"), ["web-2", "db-0"]),
    (("-l", "app=web"), ["web-2"]),
    (("-l", "app notin (web)"), ["db-0"]),
    (("-l", "app in (web,db),!old"), ["web-2", "db-0"]),
])  # fmt: skip
def test_only_workloads_in_scope_are_placed(scope, names, run, scene):
    plan = json.loads(run("place", "-f", ".", "-o", "json", *scope).stdout)
    assert [item["name"] for item in plan["items"]] == names


def test_explain_shows_the_reasons_and_the_fixes(run, scene):
    result = run("place", "-f", ".", "--explain")
    assert result.stdout.startswith(TABLE + f"\nshop/web-2: {MESSAGE}\n  a1  pod-affinity")
    assert "What would make it fit:" in result.stdout


def test_the_document_holds_the_explanations(run, scene):
    unschedulable, placed = json.loads(run("place", "-f", ".", "--explain", "-o", "json").stdout)["items"]
    assert unschedulable["explanation"]["verdicts"]["a1"]["failures"][0]["peers"] == ["shop/web-1"]
    assert "explanation" not in placed


def test_replicas_with_the_same_failure_are_explained_once(run, scene):
    again = (scene / "web.yaml").read_text().replace("web-2", "web-3")
    (scene / "more.yaml").write_text(again)
    result = run("place", "-f", ".", "--explain")
    assert result.stdout.count("What would make it fit:") == 1


def test_how_many_more_fit(run, scene):
    result = run("place", "-f", ".", "--replicas", "max")
    lines = result.stdout.splitlines()
    assert lines[0].split("  ")[0] == "WORKLOAD"
    assert lines[1].split()[:3] == ["shop/web-2", "0", "0"]
    assert lines[2].split()[:3] == ["store/db-0", "4", "1"]
    assert lines[2].endswith("1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector.")
    assert result.exit_code == 1


REPLICAS = """\
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, namespace: shop}}
spec: {{replicas: 2, selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}},
  spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: 9}}}}}}]}}}}}}
---
"""


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_every_controller_is_explained_once(kind, run, scene):
    """Although no rule distinguishes their pods; the pods of a StatefulSet even differ in their labels."""
    (scene / "web.yaml").write_text("".join(REPLICAS.format(kind=kind, name=name) for name in ("api", "cms")))
    result = run("place", "-f", ".", "--explain")
    explained = [line for line in result.stdout.splitlines() if line.startswith("shop/")]
    assert [line.partition(":")[0].removeprefix("shop/")[:3] for line in explained] == ["api", "cms"]
    items = json.loads(run("place", "-f", ".", "--explain", "-o", "json").stdout)["items"]
    assert [(item["name"][:3], "explanation" in item) for item in items if item["namespace"] == "shop"] == [
        ("api", True), ("api", True), ("cms", True), ("cms", True),
    ]  # fmt: skip


def test_bare_pods_with_other_labels_are_explained_on_their_own(run, scene):
    again = (scene / "web.yaml").read_text().replace("web-2", "web-3")
    (scene / "more.yaml").write_text(again.replace("{app: web}}\nspec", "{app: web, mine: pod}}\nspec"))
    result = run("place", "-f", ".", "--explain")
    assert result.stdout.count("What would make it fit:") == 2


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{parallelism: 2, completions: 2, template: {{metadata: {{labels: {{task: {task}}}}}, spec: {{restartPolicy: Never,
  nodeSelector: {{disk: ssd}}, containers: [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}
---
"""
NODES = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1, disk: ssd}}
status: {allocatable: {cpu: "4", memory: 4Gi, pods: "110"}}
"""


def rows(answer):
    """The controller of each row, without the suffix of its pod, and how many more fit."""
    return [(item["workload"].rpartition("-")[0], item["fit"]) for item in json.loads(answer.stdout)["items"]]


@pytest.mark.parametrize("other", [
    {"name": "late"},
    {"name": "late", "task": "b"},  # no rule reads the label
    {"namespace": "late"},
    {"name": "late", "cpu": "500m"},
])  # fmt: skip
def test_how_many_more_of_every_job_fit_however_alike_they_are(other, run, tmp_path):
    made = [{"name": "early", "namespace": "early", "task": "a", "cpu": "1", **given} for given in ({}, other)]
    (tmp_path / "jobs.yaml").write_text(NODES + "---\n" + "".join(JOB.format(**given) for given in made))
    answer = run("place", "-f", tmp_path / "jobs.yaml", "--replicas", "max", "-o", "json")
    fits = {"1": 4, "500m": 8}
    assert rows(answer) == [(f"{given['namespace']}/{given['name']}", fits[given["cpu"]]) for given in made]


def test_how_many_more_of_every_bare_pod_fit(run, scene):
    (scene / "more.yaml").write_text((scene / "db.yaml").read_text().replace("db-0", "db-1"))
    answer = run("place", "-f", ".", "-l", "app=db", "--replicas", "max", "-o", "json")
    assert [(item["workload"], item["fit"]) for item in json.loads(answer.stdout)["items"]] == [
        ("store/db-0", 4), ("store/db-1", 4),
    ]  # fmt: skip


def test_a_pod_that_is_not_scheduled_does_not_share_the_count_of_its_equals(run, scene):
    """Neither scheduling gates nor the scheduler are read by a rule, but they decide how many fit."""
    again = (scene / "db.yaml").read_text().replace("db-0", "db-1")
    (scene / "more.yaml").write_text(again.replace("spec:", "spec:\n  schedulingGates: [{name: quota}]"))
    answer = run("place", "-f", ".", "-l", "app=db", "--replicas", "max", "-o", "json")
    assert [(item["workload"], item["fit"]) for item in json.loads(answer.stdout)["items"]] == [
        ("store/db-0", 4), ("store/db-1", 0),
    ]  # fmt: skip


@pytest.mark.parametrize("asked, code", [("4", 0), ("5", 1), ("max", 0)])
def test_the_exit_code_says_whether_the_replicas_fit(asked, code, run, scene):
    assert run("place", "-f", ".", "-l", "app=db", "--replicas", asked).exit_code == code


def test_the_remaining_capacity_in_every_format(run, scene):
    words = ("place", "-f", ".", "-l", "app=db", "--replicas", "2", "-o")
    room = json.loads(run(*words, "json").stdout)
    assert (room["kind"], room["items"][0]["fit"], room["items"][0]["targets"]) == ("RoomList", 2, ["b1", "b1"])
    assert run(*words, "name").stdout == "node/b1\nnode/b1\n"
    assert "<td>store/db-0</td>" in run(*words, "html").stdout


def test_the_page_is_self_contained(run, scene):
    page = run("place", "-f", ".", "--explain", "-o", "html").stdout
    assert "://" not in page
    assert "<script" not in page
    assert "✗ unschedulable" in page
    assert "What would make it fit:" in page


def test_standard_input_is_a_source(run, scene):
    given = (scene / "db.yaml").read_bytes()
    assert run("place", "-f", "nodes.yaml", "-f", "-", given=given).stdout.splitlines()[1].split()[:3] == [
        "store", "db-0", "b1",
    ]  # fmt: skip


def test_objects_without_a_namespace_are_in_the_given_one(run, scene):
    (scene / "db.yaml").write_text((scene / "db.yaml").read_text().replace("namespace: store, ", ""))
    assert "infra      db-0" in run("place", "-f", ".", "-n", "infra").stdout


def test_the_answer_is_written_to_a_file(run, scene):
    result = run("place", "-f", ".", "--output-file", "plan.txt")
    assert result.stdout == ""
    assert (scene / "plan.txt").read_text() == TABLE


def test_an_unwritable_output_file_ends_with_2(run, scene):
    result = run("place", "-f", ".", "--output-file", "no/such/folder/plan.txt")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_the_scheduler_configuration_sets_the_rules(run, scene):
    (scene / "config").mkdir()
    config = scene / "config" / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: InterPodAffinity}]}}}]\n"
    )
    assert run("place", "-f", ".", "--config", config).exit_code == 0


def test_a_bad_scheduler_configuration_is_named(run, scene):
    config = scene / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1\n")
    result = run("place", "-f", "nodes.yaml", "--config", config)
    assert result.exit_code == 2
    assert "scheduler.yaml, KubeSchedulerConfiguration: parallelism: Invalid value: -1" in result.stderr


def configured(scene, filters):
    """A scheduler configuration with these filter plugins."""
    config = scene / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{plugins: {{filter: {filters}}}}}]\n"
    )
    return config


def test_an_unknown_plugin_is_an_error(run, scene):
    result = run("place", "-f", "nodes.yaml", "--config", configured(scene, "{enabled: [{name: PodAffinity}]}"))
    assert result.exit_code == 2
    message = 'KubeSchedulerConfiguration: profiles[0].plugins.filter.enabled[0].name: Unsupported value: "PodAffinity"'
    assert f"scheduler.yaml, {message}" in result.stderr


def test_an_unknown_plugin_is_disabled_without_effect_as_in_kube_scheduler(run, scene):
    words = ("place", "-f", ".", "-l", "app=web")
    config = configured(scene, "{disabled: [{name: PodAffinity}]}")
    assert run(*words, "--config", config).stdout == run(*words).stdout


def test_switches_reach_the_engine(run, scene):
    words = ("place", "-f", ".", "-l", "app=web", "--switch", "daemonNamespaces=shop")
    # Pods of a daemon namespace neither block nor are blocked by required anti-affinity.
    assert run(*words).stdout.splitlines()[1].split()[:3] == ["shop", "web-2", "a1"]


INVALID_SPECS = {
    "Pod": "{containers: [{name: c, image: i, resources: {requests: {cpu: -1}}}]}",
    "Deployment": "{template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}",
}


@pytest.mark.parametrize("kind, version, message", [
    ("Pod", "v1", 'spec.containers[0].resources.requests[cpu]: Invalid value: "-1"'),
    ("Deployment", "apps/v1", "spec.selector: Required value"),
])  # fmt: skip
def test_invalid_objects_are_not_placed(kind, version, message, run, scene):
    (scene / "x.yaml").write_text(
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {INVALID_SPECS[kind]}\n"
    )
    result = run("place", "-f", ".")
    assert message in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)


def test_too_many_replicas_are_an_error(run, scene):
    spec = "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}"
    text = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: x}}\nspec: {spec}, replicas: 2000000000}}\n"
    (scene / "x.yaml").write_text(text)
    result = run("place", "-f", ".")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: ./x.yaml:4, Deployment default/x: spec.replicas: expected at most 1,000,000 pods to be made from "
        "controllers in all, got 2,000,000,000\n"
    )


@pytest.mark.parametrize("command", [("place",), ("violations",), ("rebalance",), ("quota",)])
def test_an_unknown_namespace_is_reported(command, run, scene):
    result = run(*command, "-f", ".", "-n", "shp")
    assert "note: nothing in the input is in namespace shp, did you mean shop?" in result.stderr
    assert "nothing in the input" not in run(*command, "-f", ".", "-n", "shop").stderr
    assert "nothing in the input" not in run(*command, "-f", ".").stderr
