import json
import re

import pytest
import yaml

SCENE = """\
apiVersion: v1
kind: Node
metadata: {name: a, labels: {kubernetes.io/hostname: a}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
  labels: {app: web}
  annotations:
    bayplan.io/affinity: |
      podAntiAffinity:
        requiredDuringSchedulingRequiredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {app: batch}}
spec: {nodeName: a, priority: 7, containers: [{name: c, image: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: job, namespace: batch, labels: {app: batch}}
spec: {nodeName: a, priority: 7, containers: [{name: c, image: job}]}
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""
IN_ALL = SCENE.replace("          labelSelector", "          namespaceSelector: {}\n          labelSelector")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "well.yaml").write_text(SCENE)  # the term covers its own namespace, which has no such pod
    (tmp_path / "broken.yaml").write_text(IN_ALL)
    (tmp_path / "budget.yaml").write_text(BUDGET)
    (tmp_path / "fleet.yaml").write_text(FLEET)


def test_without_violations_the_answer_is_empty_and_the_exit_code_0(run, files):
    result = run("violations", "-f", "well.yaml")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "note: no violations\n"


def test_the_table_names_owner_rule_peers_and_victim(run, files):
    result = run("violations", "-f", "broken.yaml")
    assert result.exit_code == 1
    header, row = (re.split(r"  +", line) for line in result.stdout.splitlines())
    assert dict(zip(header, row, strict=True)) == {
        "NAMESPACE": "shop",
        "NAME": "web",
        "RULE": "anti-affinity to app=batch in any namespace",
        "DOMAIN": "kubernetes.io/hostname=a",
        "VIOLATED BY": "batch/job",
        "EVICTED": "shop/web",
        "AFTER": "1m",
        "WHY": "owner of the broken rule, at equal priority",
    }
    assert result.stderr == "note: 1 violation; 1 pod would be evicted\n"


def test_wide_adds_priority_node_and_term(run, files):
    header, row = run("violations", "-f", "broken.yaml", "-o", "wide").stdout.splitlines()
    assert header.split()[:5] == ["NAMESPACE", "NAME", "PRIORITY", "NODE", "TERM"]
    assert row.split()[:4] == ["shop", "web", "7", "a"]
    assert "podAntiAffinity.requiredDuringSchedulingRequiredDuringExecution[0]" in row


PRIORITY_CLASS = """\
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: {}}}
value: {}
globalDefault: {}
"""


@pytest.mark.parametrize("job, priorities, victim", [
    ("priorityClassName: low, ", [("low", -1, "false")], "batch/job"),
    ("priorityClassName: high, ", [("high", 9, "false")], "shop/web"),
    ("", [("usual", -1, "true")], "batch/job"),
    ("priority: 9, priorityClassName: low, ", [("low", -1, "false")], "shop/web"),  # as in a dump
])  # fmt: skip
def test_a_running_pod_has_the_priority_of_its_class(job, priorities, victim, run, files, tmp_path):
    written = IN_ALL.replace(
        "priority: 7, containers: [{name: c, image: job}]", job + "containers: [{name: c, image: job}]"
    )
    written = written.replace("priority: 7, ", "priority: 0, ")
    (tmp_path / "broken.yaml").write_text(written + "".join(PRIORITY_CLASS.format(*one) for one in priorities))
    (item,) = json.loads(run("violations", "-f", "broken.yaml", "-o", "json").stdout)["items"]
    assert [one["name"] for one in item["victims"]] == [victim]


@pytest.mark.parametrize("output, read", [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_document_has_every_field(run, files, output, read):
    answer = read(run("violations", "-f", "broken.yaml", "-o", output, "--anti-affinity-grace", "90s").stdout)
    assert (answer["apiVersion"], answer["kind"]) == ("bayplan.io/v1alpha1", "ViolationList")
    assert answer["summary"] == {"violations": 1, "wouldGo": 1, "spared": 0, "exact": True}
    (item,) = answer["items"]
    assert item["owner"] == "shop/web"
    assert item["peers"] == ["batch/job"]
    assert item["rule"] == "anti-affinity"
    assert item["graceSeconds"] == 90
    assert item["victims"] == [{"name": "shop/web", "why": "owner of the broken rule, at equal priority", "spared": ""}]


def test_names_are_those_of_the_owners(run, files):
    assert run("violations", "-f", "broken.yaml", "-o", "name").stdout == "pod/web\n"


def test_a_disruption_budget_prevents_the_eviction(run, files):
    result = run("violations", "-f", "broken.yaml", "-f", "budget.yaml")
    assert result.exit_code == 1
    row = result.stdout.splitlines()[1]
    assert "  none  " in row
    assert row.endswith("shop/web is not evicted: PodDisruptionBudget web allows no disruption")
    assert result.stderr == "note: 1 violation; 0 pods would be evicted\n"


def test_a_pod_that_fits_nowhere_else_can_be_kept(run, files):
    row = run("violations", "-f", "broken.yaml", "--only-if-placeable").stdout.splitlines()[1]
    assert row.endswith("shop/web is not evicted: no other place for it")


@pytest.mark.parametrize(
    "scope, shown",
    [(("-n", "shop"), True), (("-n", "batch"), True), (("-n", "other"), False), (("-l", "app=web"), True)],
)
def test_a_violation_is_in_scope_if_its_owner_or_a_peer_is(run, files, scope, shown):
    assert run("violations", "-f", "broken.yaml", *scope).exit_code == int(shown)


def test_exit_zero_overrides_the_answer(run, files):
    assert run("violations", "-f", "broken.yaml", "--exit-zero").exit_code == 0


@pytest.mark.parametrize(
    "words, message",
    [
        (("-f", "nowhere.yaml"), "nowhere.yaml"),
        (("-f", "broken.yaml", "--affinity-grace", "soon"), "expected a duration"),
        ((), "nothing to read"),
    ],
)
def test_bad_input_has_exit_code_2(run, files, words, message):
    result = run("violations", *words)
    assert result.exit_code == 2
    assert message in result.stderr


FLEET = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu}
spec: {syncMode: Push}
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: one-deployment, namespace: shop}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: one}
  workloadAffinityGroups: {antiAffinityGroup: app=x}
  clusters: [{name: eu, replicas: 1}]
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: two-deployment, namespace: shop}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: two}
  workloadAffinityGroups: {antiAffinityGroup: app=x}
  clusters: [{name: eu, replicas: 1}]
"""


def test_bindings_of_a_fleet_are_checked_against_their_clusters(run, files):
    result = run("violations", "-f", "fleet.yaml", "-o", "json")
    assert result.exit_code == 1
    items = json.loads(result.stdout)["items"]
    assert [(item["owner"], item["peers"], item["domain"]) for item in items] == [
        ("shop/one-deployment", ["shop/two-deployment"], "cluster=eu"),
        ("shop/two-deployment", ["shop/one-deployment"], "cluster=eu"),
    ]
    assert {item["graceSeconds"] for item in items} == {None}
    assert {victim["name"] for item in items for victim in item["victims"]} == {"shop/two-deployment"}
    assert run("violations", "-f", "fleet.yaml", "-o", "name").stdout == "deployment/one\ndeployment/two\n"


ENFORCED = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: us}
spec: {syncMode: Push}
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: quiet-deployment
  namespace: shop
  annotations:
    bayplan.io/workload-labels: '{"app": "quiet"}'
    bayplan.io/placement: |
      workloadAntiAffinity:
        requiredDuringSchedulingRequiredDuringExecution:
        - labelSelector: {matchLabels: {app: loud}}
        requiredDuringSchedulingIgnoredDuringExecution:
        - labelSelector: {matchLabels: {app: near}}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: quiet}
  schedulePriority: {priority: 5}
  clusters: [{name: eu, replicas: 1}, {name: us, replicas: 1}]
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: loud-deployment
  namespace: shop
  annotations: {bayplan.io/workload-labels: '{"app": "loud"}'}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: loud}
  clusters: [{name: us, replicas: 1}]
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: near-deployment
  namespace: shop
  annotations: {bayplan.io/workload-labels: '{"app": "near"}'}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: near}
  clusters: [{name: eu, replicas: 1}]
"""


def test_in_a_fleet_only_rules_of_execution_evict_and_only_from_the_cluster_where_they_are_broken(run, files, tmp_path):
    (tmp_path / "enforced.yaml").write_text(ENFORCED)
    result = run("violations", "-f", "enforced.yaml")
    assert result.exit_code == 1
    _, reported, enforced = (re.split(r"  +", line) for line in result.stdout.splitlines())
    assert enforced == [
        "shop",
        "quiet-deployment",
        "anti-affinity to app=loud",
        "cluster=us",
        "shop/loud-deployment",
        "shop/loud-deployment from us",
        "1m",
        "lower priority than a workload that it conflicts with",
    ]
    assert reported[-3:] == [
        "none",
        "-",
        "not required during execution; without shop/near-deployment it would be met",
    ]
    assert result.stderr.endswith("note: 2 violations; 1 binding would be evicted\n")
    items = json.loads(run("violations", "-f", "enforced.yaml", "-o", "json", "--anti-affinity-grace", "5s").stdout)
    by_term = {item["selector"]: item for item in items["items"]}
    assert by_term["app=loud"]["graceSeconds"] == 5
    assert [(victim["name"], victim["cluster"]) for victim in by_term["app=loud"]["victims"]] == [
        ("shop/loud-deployment", "us")
    ]
    assert by_term["app=near"]["graceSeconds"] is None
    assert items["summary"]["wouldGo"] == 1
