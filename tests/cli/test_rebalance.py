import json

import pytest
import yaml

NODE = """\
apiVersion: v1
kind: Node
metadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}, topology.kubernetes.io/zone: {0}}}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "110"}}}}
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {0}, namespace: shop, labels: {{app: web}}}}
spec:
  nodeName: {1}
  containers: [{{name: c, image: web, resources: {{requests: {{cpu: 500m, memory: 1Gi}}}}}}]
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector: {{matchLabels: {{app: web}}}}
---
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
status: {disruptionsAllowed: 0}
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = "".join(map(NODE.format, "abc"))  # c was down, and its pods moved to a and b
    crowded = "".join(POD.format(f"web-{i}", "ab"[i % 2]) for i in range(4))
    (tmp_path / "back.yaml").write_text(nodes + crowded)
    (tmp_path / "well.yaml").write_text(nodes + "".join(POD.format(f"web-{i}", "abc"[i]) for i in range(3)))
    (tmp_path / "budget.yaml").write_text(BUDGET)
    (tmp_path / "fleet.yaml").write_text(FLEET)


def test_a_pod_moves_to_the_node_that_recovered(run, files):
    result = run("rebalance", "-f", "back.yaml")
    assert result.exit_code == 1
    header, row = result.stdout.splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "FROM", "TO", "GAIN", "BY", "RULE"]
    # The fourth pod has a peer on every node, so one move gains everything.
    assert row.split() == ["shop", "web-0", "a", "c", "+200", "InterPodAffinity", "+200"]
    assert result.stderr == (
        "note: 1 move gains 200 points; no plan within the limits gains more, or as much with fewer moves\n"
    )


def test_without_a_gain_the_answer_is_empty_and_the_exit_code_0(run, files):
    result = run("rebalance", "-f", "well.yaml")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "note: no moves within the limits would gain anything\n"


@pytest.mark.parametrize("output, read", [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_document_has_every_field(run, files, output, read):
    answer = read(run("rebalance", "-f", "back.yaml", "-o", output).stdout)
    assert (answer["apiVersion"], answer["kind"]) == ("bayplan.io/v1alpha1", "RebalancePlan")
    assert answer["summary"]["gain"] == 200
    assert answer["summary"]["exact"] is True
    (item,) = answer["items"]
    assert (item["workload"], item["from"][0]["name"], item["to"][0]["name"]) == ("shop/web-0", "a", "c")


def test_names_and_wide(run, files):
    assert run("rebalance", "-f", "back.yaml", "-o", "name").stdout == "pod/web-0\n"
    assert "PRIORITY" in run("rebalance", "-f", "back.yaml", "-o", "wide").stdout


def test_a_disruption_budget_is_respected(run, files):
    assert run("rebalance", "-f", "back.yaml", "-f", "budget.yaml").exit_code == 0


def test_only_workloads_in_scope_move(run, files):
    assert run("rebalance", "-f", "back.yaml", "-n", "other").exit_code == 0


@pytest.mark.parametrize("words", [("-f", "nowhere.yaml"), ("-f", "back.yaml", "--max-moves", "0"), ()])
def test_bad_input_has_exit_code_2(run, files, words):
    assert run("rebalance", *words).exit_code == 2


def test_exit_zero(run, files):
    assert run("rebalance", "-f", "back.yaml", "--exit-zero").exit_code == 0


CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {{name: {0}}}
spec: {{syncMode: Push, region: {0}}}
status:
  apiEnablements: [{{groupVersion: apps/v1, resources: [{{kind: Deployment, name: deployments}}]}}]
  resourceSummary: {{allocatable: {{cpu: "{1}", memory: 1000Gi, pods: "1000"}}}}
---
"""
BINDING = """\
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {{name: {0}-deployment, namespace: shop}}
spec:
  resource: {{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: {0}}}
  replicas: 4
  replicaRequirements: {{resourceRequest: {{cpu: "1"}}}}
  placement:
    {1}
    replicaScheduling: {{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}
  clusters: {2}
status: {{schedulerObservingAffinityName: "{3}"}}
---
"""
GROUPS = "clusterAffinities: [{affinityName: home, clusterNames: [home]}, {affinityName: away, clusterNames: [away]}]"
TIERS = (
    "clusterAffinities: [{affinityName: all, clusterNames: [home], "
    "overflowAffinities: [{affinityName: more, clusterNames: [away]}]}]"
)
FLEET = (
    CLUSTER.format("home", 6)
    + CLUSTER.format("away", 100)
    + BINDING.format("grouped", GROUPS, "[{name: away, replicas: 4}]", "away")
    + BINDING.format("tiered", TIERS, "[{name: away, replicas: 4}]", "all")
    + BINDING.format("alone", "clusterAffinity: {clusterNames: [away]}", "[{name: away, replicas: 4}]", "")
)


def test_bindings_move_back_to_a_cluster_that_recovered(run, files):
    """Home fits six of the eight replicas: one binding moves completely, and two replicas of the other stay."""
    answer = json.loads(run("rebalance", "-f", "fleet.yaml", "-o", "json").stdout)
    assert answer["summary"]["exact"] is True
    moved = {item["workload"]: {t["name"]: t["replicas"] for t in item["to"]} for item in answer["items"]}
    assert moved == {
        "shop/grouped-deployment": {"home": 4},
        "shop/tiered-deployment": {"home": 2, "away": 2},
    }
    assert answer["summary"]["gainByRule"]["ClusterAffinity"] == 100 + 50


def test_a_single_move_is_the_one_that_gains_most(run, files):
    answer = json.loads(run("rebalance", "-f", "fleet.yaml", "-o", "json", "--max-moves", "1").stdout)
    assert len(answer["items"]) == 1
    assert answer["summary"]["gain"] == 100


APART = """\
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: {0}-deployment
  namespace: shop
  annotations:
    bayplan.io/workload-labels: '{{"app": "x"}}'
    bayplan.io/placement: |
      workloadAntiAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 60
          workloadAffinityTerm: {{topologyKey: region, labelSelector: {{matchLabels: {{app: x}}}}}}
spec:
  resource: {{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: {0}}}
  replicas: 1
  replicaRequirements: {{resourceRequest: {{cpu: "1"}}}}
  placement:
    spreadConstraints: [{{spreadByField: cluster, minGroups: 1, maxGroups: 1}}]
    replicaScheduling: {{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}
  clusters: [{{name: home, replicas: 1}}]
---
"""


def test_preferred_terms_of_a_fleet_count_too(run, files, tmp_path):
    # The locality score of Karmada equals the preferred terms together; more available replicas decide.
    (tmp_path / "apart.yaml").write_text(
        CLUSTER.format("home", 100) + CLUSTER.format("away", 500) + APART.format("one") + APART.format("two")
    )
    answer = json.loads(run("rebalance", "-f", "apart.yaml", "-o", "json").stdout)
    (item,) = answer["items"]
    assert item["to"] == [{"name": "away", "replicas": 1}]
    assert answer["summary"]["gainByRule"]["WorkloadAffinity"] == 2 * 60  # the preferred terms of both owners are met


@pytest.mark.parametrize(
    "words, message",
    [
        (("-f", "back.yaml", "--apply", "--yes"), "needs a live cluster and no files"),
        (("-f", "fleet.yaml", "--apply", "--yes"), "needs a live cluster and no files"),
        (("-f", "back.yaml", "--context", "prod", "--apply", "--yes"), "needs a live cluster and no files"),
        (("--apply", "--yes"), "use --context without -f"),
        (("--context", "prod", "--apply"), "there is no terminal: use --yes"),
        (("--context", "prod", "--apply", "-o", "json"), "use --yes"),
        (("--context", "prod", "--apply", "--yes", "--timeout", "soon"), "expected a duration"),
        (("--context", "prod", "--apply", "--yes", "--at-once", "0"), "--at-once"),
    ],
)
def test_options_that_cannot_work_are_rejected_before_any_input_is_read(run, files, words, message):
    result = run("rebalance", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


SSD_NODE = """\
apiVersion: v1
kind: Node
metadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}, topology.kubernetes.io/zone: z, disk: {1}}}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "110"}}}}
---
"""
PLAIN_POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {0}, namespace: shop, labels: {{app: {1}}}}}
spec:
  nodeName: {2}
  containers: [{{name: c, image: web, resources: {{requests: {{cpu: {3}}}}}}}]
---
"""
RATHER_SSD = """\
apiVersion: v1
kind: Pod
metadata: {name: mover, namespace: shop, labels: {app: web}}
spec:
  nodeName: a
  containers: [{name: c, image: web}]
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 10
        preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}
---
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}}
"""


@pytest.mark.parametrize("extra, target", [("", "c"), (SERVICE, "b")])
def test_a_pod_that_moves_is_spread_as_a_new_pod_would_be(run, files, tmp_path, extra, target):
    """c has more free resources, but also the other pods of the Service, which the default spread avoids."""
    nodes = SSD_NODE.format("a", "hdd") + SSD_NODE.format("b", "ssd") + SSD_NODE.format("c", "ssd")
    beside = PLAIN_POD.format("big", "big", "b", "1")
    beside += "".join(PLAIN_POD.format(f"web-{i}", "web", "c", "10m") for i in range(3))
    (tmp_path / "spread.yaml").write_text(nodes + RATHER_SSD + beside + extra)
    answer = json.loads(run("rebalance", "-f", "spread.yaml", "-o", "json").stdout)
    assert [(item["workload"], item["to"][0]["name"]) for item in answer["items"]] == [("shop/mover", target)]


RATHER_FAST = """\
apiVersion: v1
kind: Pod
metadata: {{name: {0}, namespace: shop, labels: {{app: {1}}}}}
spec:
  nodeName: a
  containers: [{{name: c, image: web, resources: {{requests: {{cpu: 10m}}}}}}]
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 10
        preference: {{matchExpressions: [{{key: disk, operator: In, values: [nvme]}}]}}
      - weight: 9
        preference: {{matchExpressions: [{{key: disk, operator: In, values: [ssd]}}]}}
---
"""


def test_pods_that_only_a_service_distinguishes_are_tried_one_by_one(run, files, tmp_path):
    """
    The node with the preferred disk is crowded, so the scheduler places the pod without a Service on the other one.

    The pod with a Service goes to the crowded node, because its peers are on the other one: that move gains more.
    """
    nodes = SSD_NODE.format("a", "hdd") + SSD_NODE.format("b", "nvme") + SSD_NODE.format("c", "ssd")
    beside = PLAIN_POD.format("big", "big", "b", "3")
    beside += "".join(PLAIN_POD.format(f"web-{i}", "web", "c", "10m") for i in range(3))
    alike = RATHER_FAST.format("alone", "alone") + RATHER_FAST.format("mover", "web")
    (tmp_path / "alike.yaml").write_text(nodes + beside + alike + SERVICE)
    answer = json.loads(run("rebalance", "-f", "alike.yaml", "--max-moves", "1", "-o", "json").stdout)
    assert [(item["workload"], item["to"][0]["name"]) for item in answer["items"]] == [("shop/mover", "b")]
