import csv
import json

import pytest
import yaml

from bayplan.library import workload_names

TEXT = """\
0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) had untolerated taint(s).
  a1  pod-affinity  shop/web-1 in kubernetes.io/hostname=a1 matches app=web
                    by spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]
  b1  taint         dedicated=db:NoSchedule is not tolerated

What would make it fit:
"""


def test_an_unschedulable_pod_is_explained(run, scene):
    result = run("explain", "pod/web-2", "-f", ".")
    assert result.stdout.startswith(TEXT)
    assert "  2. tolerate dedicated=db:NoSchedule: fits on b1\n" in result.stdout
    assert result.exit_code == 1


def test_a_pod_that_fits_is_explained(run, scene):
    result = run("explain", "pod/db-0", "-f", ".")
    first, *targets = result.stdout.splitlines()
    assert first.startswith("store/db-0 is placed on b1 with a score of ")
    assert targets[0].startswith("  b1  fits  ")
    assert targets[1].startswith("  a1  node-affinity  ")
    assert result.exit_code == 0


def test_a_running_pod_is_explained_as_if_scheduled_again(run, scene):
    result = run("explain", "web-1", "-f", ".")
    assert result.stdout.startswith("shop/web-1 runs on a1. If it were scheduled again:\nshop/web-1 is placed on a1")


def test_the_document_has_verdicts_and_fixes(run, scene):
    found = json.loads(run("explain", "pod/web-2", "-f", ".", "-o", "json").stdout)
    assert (found["apiVersion"], found["kind"], found["workload"]) == (
        "bayplan.io/v1alpha1",
        "Explanation",
        "shop/web-2",
    )
    verdict = found["verdicts"]["a1"]
    assert set(verdict) >= {"fits", "tier", "score", "available", "failures"}
    assert set(verdict["failures"][0]) >= {"rule", "reason", "term", "domain", "peers"}
    toleration = {"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}
    assert {
        "change": "tolerate dedicated=db:NoSchedule",
        "fitsOn": ["b1"],
        "patches": [
            {
                "object": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-2"},
                "patch": [{"op": "add", "path": "/spec/tolerations", "value": [toleration]}],
            }
        ],
    } in found["fixes"]


def test_for_a_controller_its_first_unschedulable_pod_is_explained(run, scene):
    (scene / "api.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api, namespace: shop}\n"
        "spec: {replicas: 3, selector: {matchLabels: {app: api}}, template: {metadata: {labels: {app: api}},"
        " spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}}}\n"
    )
    result = run("explain", "deploy/api", "-f", ".")
    assert result.stdout.startswith("0/2 nodes are available: 1 Insufficient cpu, ")
    assert run("explain", "deploy/api", "-f", ".", "--alone").exit_code == 1


def test_a_controller_whose_pods_all_fit_is_explained_like_its_first_pod(run, tmp_path):
    apart = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
    }
    template = {"metadata": {"labels": {"app": "db"}}, "spec": spec}
    database = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": template},
    }
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
        }
        for name in ("a1", "b1", "c1")
    ]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([*nodes, database]))
    of_controller, of_pod = (run("explain", name, "-f", tmp_path).stdout for name in ("sts/db", "pod/db-0"))
    assert of_controller == of_pod
    assert of_controller.count("fits") == 3


def test_pods_earlier_in_the_queue_are_placed_first(run, scene):
    (scene / "first.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: big, namespace: store}\n"
        "spec: {priority: 5, tolerations: [{operator: Exists}], nodeSelector: {zone: b},"
        " containers: [{name: c, image: i, resources: {requests: {cpu: 3500m}}}]}\n"
    )
    assert run("explain", "pod/db-0", "-f", ".").exit_code == 1
    assert run("explain", "pod/db-0", "-f", ".", "--alone").exit_code == 0


def test_a_gated_pod_is_not_scheduled(run, scene):
    gated = (scene / "db.yaml").read_text() + "  schedulingGates: [{name: quota}]\n"
    (scene / "db.yaml").write_text(gated)
    result = run("explain", "pod/db-0", "-f", ".")
    assert result.stdout.startswith("Scheduling is blocked due to non-empty scheduling gates: quota\n")
    assert result.exit_code == 1


def test_an_unknown_pod_is_an_error_with_advice(run, scene):
    result = run("explain", "pod/web2", "-f", ".")
    assert result.exit_code == 2
    assert "did you mean web-2" in result.stderr


def test_a_pod_can_be_named_by_namespace_and_name(run, scene):
    assert run("explain", "shop/web-2", "-f", ".").stdout == run("explain", "pod/web-2", "-f", ".").stdout
    result = run("explain", "store/web-2", "-f", ".")
    assert "no pod of store/web-2 is in the input in the requested scope; there is shop/web-2" in result.stderr
    assert result.exit_code == 2


def test_a_pod_in_another_namespace_is_named(run, scene):
    result = run("explain", "web-2", "-n", "nosuch", "-f", ".")
    assert "; there is shop/web-2" in result.stderr
    assert "did you mean web-2" not in result.stderr


def test_another_kind_with_that_name_is_suggested(run, scene):
    result = run("explain", "deploy/web", "-f", ".")
    assert "no pod of deployment/web is in the input, did you mean statefulset/web?" in result.stderr


def test_a_name_in_two_namespaces_is_an_error(run, scene):
    (scene / "other.yaml").write_text((scene / "db.yaml").read_text().replace("store", "other"))
    result = run("explain", "pod/db-0", "-f", ".")
    assert result.exit_code == 2
    assert "several namespaces (other, store): choose one with -n" in result.stderr
    assert run("explain", "pod/db-0", "-f", ".", "-n", "store").exit_code == 0


@pytest.mark.parametrize("text, kind, name", [
    ("web-1", "pod", "web-1"),
    ("po/web-1", "pod", "web-1"),
    ("Pods/web-1", "pod", "web-1"),
    ("deploy/web", "deployment", "web"),
    ("sts/db", "statefulset", "db"),
    ("ds/agent", "daemonset", "agent"),
    ("rs/web", "replicaset", "web"),
    ("jobs/once", "job", "once"),
])  # fmt: skip
def test_kinds_are_spelt_as_kubectl_spells_them(text, kind, name):
    assert workload_names.parse(text) == workload_names.WorkloadName(kind, name)


def test_a_kind_without_pods_is_an_error(run, scene):
    result = run("explain", "svc/web", "-f", ".")
    assert result.exit_code == 2
    assert "expected KIND/NAME with a kind of pod, deployment" in result.stderr


@pytest.mark.parametrize("asked, pod, matches", [
    ("pod/web", "web", True),
    ("pod/web", "web-1", False),
    ("deploy/web", "web-6d9f-abcde", True),
    ("deploy/web", "web-front-6d9f-abcde", False),
    ("sts/db", "db-12", True),
    ("sts/db", "db-x", False),
    ("job/once", "once-abcde", True),
    ("job/once", "once-3-abcde", True),
    ("ds/agent", "agent-abcde", True),
])  # fmt: skip
def test_the_pods_of_a_controller_are_matched_by_name(asked, pod, matches):
    assert workload_names.parse(asked).matches_name(pod) is matches


SPREAD_NODE = """\
apiVersion: v1
kind: Node
metadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}, topology.kubernetes.io/zone: z-{0}}}}}
status: {{allocatable: {{cpu: "{1}", memory: 8Gi, pods: "110"}}}}
---
"""
SPREAD_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {0}
  namespace: shop
  labels: {{app: web, pod-template-hash: abc}}
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, uid: "1", controller: true}}]
spec: {{{1}containers: [{{name: c, image: web, resources: {{requests: {{cpu: 100m, memory: 1Mi}}}}}}]}}
---
"""
SPREAD_BY = {
    "Service": "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}}\n",
    "Deployment": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"
        "spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},"
        " spec: {containers: [{name: c, image: web}]}}}\n"
    ),
    "nothing": "",
}


@pytest.mark.parametrize("by, target", [("Service", "c"), ("Deployment", "c"), ("nothing", "b")])
def test_a_running_pod_is_explained_where_place_would_place_it(by, target, run, tmp_path):
    """b has more free resources, but also the other replicas, which the default spread constraints avoid."""
    around = SPREAD_NODE.format("a", "0.1") + SPREAD_NODE.format("b", "8") + SPREAD_NODE.format("c", "2")
    around += "".join(SPREAD_POD.format(f"web-abc-{i}", "nodeName: b, ") for i in range(2))
    (tmp_path / "running.yaml").write_text(around + SPREAD_POD.format("web-abc-x", "nodeName: a, ") + SPREAD_BY[by])
    (tmp_path / "pending.yaml").write_text(around + SPREAD_POD.format("web-abc-x", "") + SPREAD_BY[by])
    explained = json.loads(run("explain", "web-abc-x", "-f", tmp_path / "running.yaml", "-o", "json").stdout)
    (placed,) = json.loads(run("place", "-f", tmp_path / "pending.yaml", "-o", "json").stdout)["items"]
    assert (explained["current"], explained["target"], placed["target"]) == ("a", target, target)


@pytest.mark.parametrize("words", [["po", "web-2"], ["pods", "web-2"], ["pod/web-2"], ["Pod", "web-2"]])
def test_kind_and_name_may_be_two_words(words, run, scene):
    assert run("explain", *words, "-f", ".").stdout == run("explain", "web-2", "-f", ".").stdout


@pytest.mark.parametrize(
    "written", ["deployment.apps/web", "deployments.apps/web", "deploy.apps/web", "deployment.v1.apps/web"]
)
def test_a_kind_may_have_its_group(written):
    assert workload_names.parse(written) == workload_names.parse("deployment/web")


@pytest.mark.parametrize("words", [["po", "web-1", "web-2"], ["pod/web-1", "web-2"], ["/web"], ["pod/"]])
def test_only_one_workload_can_be_explained(words, run, scene):
    result = run("explain", *words, "-f", ".")
    assert (result.exit_code, result.stdout) == (2, "")


def test_another_group_is_not_taken_for_a_kind(run, scene):
    result = run("explain", "deployment.example.com/web", "-f", ".")
    assert result.exit_code == 2


# Fixes that are applied

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers: [{name: c, image: i, resources: {requests: {cpu: "5"}}}]
"""


def test_a_fix_is_applied_to_the_manifest_of_the_controller(run, scene):
    (scene / "api.yaml").write_text(DEPLOYMENT)
    result = run("explain", "deploy/api", "-f", ".", "--apply-fix", "1", "-o", "yaml")
    assert result.exit_code == 0
    assert "note: fix 1: request 3 cpu instead of 5: fits on a1\n" in result.stderr
    changed = yaml.safe_load(result.stdout)
    assert changed["kind"] == "Deployment"
    assert changed["spec"]["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "3"}}
    (scene / "api.yaml").write_text(result.stdout)
    assert run("explain", "deploy/api", "-f", ".").exit_code == 0


SERVED = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: cache
  namespace: shop
  uid: 1-2-3
  resourceVersion: "77"
  generation: 4
  creationTimestamp: "2026-01-01T00:00:00Z"
  managedFields: [{manager: helm}]
  annotations: {meta.helm.sh/release-name: cache}
spec:
  replicas: 1
  selector: {matchLabels: {app: cache}}
  template:
    metadata: {labels: {app: cache}}
    spec:
      containers: [{name: c, image: i}]
      affinity:
        podAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: zone, labelSelector: {matchLabels: {app: nowhere}}}
status: {replicas: 1, observedGeneration: 4}
"""


def test_a_fix_of_an_object_of_a_server_is_a_manifest_that_can_be_applied(run, scene):
    """Without what only the server sets; what is removed is null, or an object of Helm would keep it."""
    (scene / "cache.yaml").write_text(SERVED)
    state = ("--state", "nodes.yaml", "--state", "cache.yaml")
    text = run("explain", "deploy/cache", *state, "--apply-fix", "1").stdout
    changed = yaml.safe_load(text)
    assert set(changed["metadata"]) == {"name", "namespace", "annotations"}
    assert "status" not in changed
    side = changed["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    assert side["requiredDuringSchedulingIgnoredDuringExecution"] is None
    (scene / "fix.yaml").write_text(text)
    placed = run("place", *state, "-f", "fix.yaml")
    assert placed.exit_code == 0, placed.output
    assert "keeps what its manifest lacks" not in placed.stderr


def test_a_fix_of_a_node_of_a_server_keeps_what_it_offers(run, scene):
    served = (scene / "nodes.yaml").read_text().replace("{name: b1,", "{name: b1, uid: 1-2, resourceVersion: '7',")
    (scene / "nodes.yaml").write_text(served)
    fixes = json.loads(run("explain", "web-2", "--state", ".", "-o", "json").stdout)["fixes"]
    number = 1 + next(n for n, fix in enumerate(fixes) if fix["change"].startswith("remove taint"))
    text = run("explain", "web-2", "--state", ".", "--apply-fix", number).stdout
    changed = yaml.safe_load(text)
    assert "uid" not in changed["metadata"]
    assert changed["status"]["allocatable"]["cpu"] == "4"
    (scene.parent / "fix.yaml").write_text(text)
    assert run("place", "--state", ".", "-f", scene.parent / "fix.yaml", "--gate=all").exit_code == 0


def test_a_fix_is_applied_to_standard_input(run, scene):
    text = "---\n".join((scene / name).read_text() for name in ("nodes.yaml", "web.yaml"))
    result = run("explain", "pod/web-2", "-f", "-", "--apply-fix", "1", "-o", "json", given=text)
    (changed,) = json.loads(result.stdout)["items"]
    side = changed["spec"]["affinity"]["podAntiAffinity"]
    assert list(side) == ["preferredDuringSchedulingIgnoredDuringExecution"]


def test_a_fix_that_adds_a_node_is_its_manifest(run, scene):
    fixes = [one["change"] for one in json.loads(run("explain", "web-2", "-f", ".", "-o", "json").stdout)["fixes"]]
    number = str(fixes.index("add a node like a1") + 1)
    added = run("explain", "web-2", "-f", ".", "--apply-fix", number, "-o", "yaml").stdout
    (scene / "more.yaml").write_text(added)
    assert run("explain", "web-2", "-f", ".").stdout.startswith("shop/web-2 is placed on a1-more")


def test_a_fix_that_does_not_exist_is_bad_usage(run, scene):
    result = run("explain", "pod/web-2", "-f", ".", "--apply-fix", "99")
    assert result.exit_code == 2
    assert "there is no fix 99 of shop/web-2: it has 4" in result.stderr


def test_a_pod_without_a_fix_is_told_so(run, scene):
    (scene / "lost.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: lost, namespace: shop}\n"
        "spec: {containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: none}}]}\n"
    )
    result = run("explain", "pod/lost", "-f", ".")
    assert result.stdout.endswith("No change of the pod, of other pods or of nodes was found that makes it fit.\n")


def test_csv_has_a_row_for_each_failure_and_custom_columns_one_for_the_answer(run, scene):
    rows = list(csv.reader(run("explain", "web-2", "-f", ".", "-o", "csv").stdout.splitlines()))
    assert rows[0] == ["TARGET", "FITS", "SCORE", "RULE", "DETAIL", "TERM", "DOMAIN", "PEERS"]
    assert [(row[0], row[1], row[3], row[7]) for row in rows[1:]] == [
        ("a1", "no", "pod-affinity", "shop/web-1"),
        ("b1", "no", "taint", ""),
    ]
    columns = run("explain", "web-2", "-f", ".", "-o", "custom-columns=POD:.workload,FIRST:.fixes[0].change").stdout
    assert columns.splitlines()[0].split() == ["POD", "FIRST"]
    assert columns.splitlines()[1].startswith("shop/web-2  ")
