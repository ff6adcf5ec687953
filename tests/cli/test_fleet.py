"""`place`, `explain`, `validate` and `bench` for fleets."""

import json

import pytest

CLUSTERS = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: idc, labels: {pool: idc}}
spec: {syncMode: Push}
status:
  apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment, name: deployments}]}]
  resourceSummary: {allocatable: {cpu: "4", pods: "100"}}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: cloud, labels: {pool: cloud}}
spec: {syncMode: Push, taints: [{key: down, effect: NoSchedule}]}
status:
  apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment, name: deployments}]}]
  resourceSummary: {allocatable: {cpu: "40", pods: "100"}}
"""
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: idc-first, namespace: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinities:
    - affinityName: main
      clusterNames: [idc]
      overflowAffinities: [{affinityName: peak, clusterNames: [cloud]}]
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: web, labels: {app: %s}}
spec:
  replicas: %d
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """A folder to run in: a small cluster, a large one that is down, a deployment that fits and one that does not."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    (folder / "clusters.yaml").write_text(CLUSTERS)
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "api.yaml").write_text(DEPLOYMENT % ("api", "api", 3))
    (folder / "web.yaml").write_text(DEPLOYMENT % ("web", "web", 6))
    monkeypatch.chdir(folder)
    return folder


LACKS = "failed to assign replicas: Clusters available replicas are not enough to schedule."


def test_the_table(run, fleet):
    result = run("place", "-f", ".")
    assert result.stdout.splitlines() == [
        "NAMESPACE  KIND/NAME       POLICY     AFFINITY  WAS     WILL BE  MESSAGE",
        "web        deployment/api  idc-first  main      <none>  idc:3    -",
        f"web        deployment/web  idc-first  <none>    <none>  <none>   {LACKS}",
    ]
    assert result.stderr.splitlines() == [
        "note: 2 bindings were created from templates and their policies",
        "note: 1 of 2 placed",
    ]
    assert result.exit_code == 1


def test_everything_placed(run, fleet):
    assert run("place", "-f", ".", "-l", "app=api").exit_code == 0
    assert run("place", "-f", ".", "-n", "other").stderr.count("there is nothing to place") == 1
    assert run("place", "-f", ".", "--exit-zero").exit_code == 0


def test_wide_and_names(run, fleet):
    assert run("place", "-f", ".", "-o", "wide").stdout.splitlines()[1].split() == (
        ["web", "deployment/api", "0", "3", "idc-first", "main", "<none>", "idc:3", "-"]
    )
    assert run("place", "-f", ".", "-o", "name").stdout == "deployment/api\ndeployment/web\n"


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_the_document(output, run, fleet):
    text = run("place", "-f", ".", "-o", output, "--explain").stdout
    if output == "yaml":
        assert "kind: FleetPlacementList" in text
        return
    found = json.loads(text)
    assert (found["kind"], found["summary"]) == ("FleetPlacementList", {"placed": 1, "unplaced": 1, "unchanged": 0})
    api, web = found["items"]
    assert (api["name"], api["kind"], api["binding"], api["affinity"]) == (
        "api",
        "Deployment",
        "api-deployment",
        "main",
    )
    assert api["clusters"] == [{"name": "idc", "replicas": 3, "tier": 0}]
    assert api["policy"] == {"kind": "PropagationPolicy", "namespace": "web", "name": "idc-first"}
    assert (api["previous"], api["unchanged"]) == ([], False)
    assert (web["placed"], web["reason"], web["message"]) == (False, "Unschedulable", LACKS)
    verdicts = web["explanation"]["verdicts"]
    assert (
        verdicts["idc"]["available"] == 1
    )  # three are used by the first placement, which the cluster does not report yet
    assert [failure["rule"] for failure in verdicts["cloud"]["failures"]] == ["cluster-taint"]


def test_the_page_has_bindings_and_explanations(run, fleet):
    text = run("place", "-f", ".", "-o", "html", "--explain").stdout
    assert "<td>deployment/api</td>" in text
    assert "web/web-deployment" in text


@pytest.mark.parametrize("asked", ["deployment/web", "deploy/web", "Deployments/web", "web", "web-deployment",
                                   "rb/web-deployment"])  # fmt: skip
def test_a_template_is_explained_by_any_of_its_names(asked, run, fleet):
    result = run("explain", asked, "-f", ".")
    assert result.stdout.splitlines() == [
        LACKS,
        "  clusters of group main:",
        "  idc  fits  tier 0  score 0  available 1",
        "  cloud  cluster-taint  cluster(s) had untolerated taint {down:NoSchedule}",
        "",
        "What would make it fit:",
        "  1. tolerate down:NoSchedule in placement.clusterTolerations: fits on idc, cloud",
        "  2. lower the replicas from 6 to 1: fits on idc",
        "  3. make room for 5 more replicas on idc: fits on idc",
    ]
    assert result.exit_code == 1


def test_a_placed_binding_is_explained(run, fleet):
    result = run("explain", "deployment/web", "-f", ".", "--alone", "-o", "json")
    found = json.loads(result.stdout)
    assert found["verdicts"]["idc"]["available"] == 4
    result = run("explain", "deployment/api", "-f", ".")
    assert result.stdout.splitlines()[:2] == [
        "web/api-deployment is placed on idc:3 (group main).",
        "  idc  fits  tier 0  score 0  available 4  assigned 3",
    ]
    assert result.exit_code == 0


@pytest.mark.parametrize("asked, message", [
    ("deployment/wbe", "did you mean deployment/web"),
    ("service/web", "no binding of service/web is in the input or would be created from it"),
])  # fmt: skip
def test_an_unknown_binding_is_an_error(asked, message, run, fleet):
    result = run("explain", asked, "-f", ".")
    assert result.exit_code == 2
    assert message in result.stderr


def test_affinity_groups_that_failed_are_shown(run, fleet):
    terms = "    clusterAffinities: [{affinityName: cloud, clusterNames: [cloud]}, {affinityName: own, clusterNames: [idc]}]\n"
    text = POLICY[: POLICY.index("    clusterAffinities")] + terms + POLICY[POLICY.index("    replicaScheduling") :]
    (fleet / "policy.yaml").write_text(text)
    lines = run("explain", "deployment/api", "-f", ".").stdout.splitlines()
    assert lines[0] == "web/api-deployment is placed on idc:3 (group own)."
    assert lines[1].startswith("  group cloud failed: 0/2 clusters are available: 1 cluster(s) did not match")


BAD = {
    "both": ("clusterAffinity: {}\n    clusterAffinities:", "cannot co-exist with clusterAffinity"),
    "misspelt": ("clusterAfinities:", "did you mean clusterAffinities?"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", [("place",), ("explain", "deployment/web"), ("validate",)])
def test_bad_policies_end_with_2_and_nothing_is_placed(name, command, run, fleet):
    written, message = BAD[name]
    (fleet / "policy.yaml").write_text(POLICY.replace("clusterAffinities:", written))
    result = run(*command, "-f", ".")
    assert result.exit_code == (1 if command == ("validate",) else 2)
    assert message in result.output
    assert "deployment/api" not in result.stdout


def test_negative_replicas_are_an_error(run, fleet):
    (fleet / "api.yaml").write_text(DEPLOYMENT % ("api", "api", -1))
    result = run("place", "-f", ".")
    assert result.exit_code == 2
    assert "api.yaml:5, Deployment web/api: spec.replicas: Invalid value: -1" in result.stderr


def test_unknown_clusters_are_a_warning(run, fleet):
    (fleet / "policy.yaml").write_text(POLICY.replace("[idc]", "[idc, new]"))
    result = run("validate", "-f", ".")
    assert result.exit_code == 0
    place = "policy.yaml:9, PropagationPolicy web/idc-first: spec.placement.clusterAffinities[0].clusterNames[1]"
    assert f"{place}: new: no cluster of this name is in the input; it may join later" in result.stderr
    assert "names clusters that are not in the input: new" in run("place", "-f", ".").stderr
    (fleet / "clusters.yaml").unlink()  # without clusters, no name can be checked
    assert "no cluster of this name" not in run("validate", "-f", ".").stderr


def test_bench_places_bindings(run, tmp_path):
    def binding(name, clusters=()):
        return {
            "metadata": {"name": name, "namespace": "web"},
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "web", "name": name},
                "replicas": 1,
                "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
                "placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]},
                "workloadAffinityGroups": {"antiAffinityGroup": "a=b"},
                "clusters": [{"name": target, "replicas": 1} for target in clusters],
            },
        }

    enabled = {"apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}]}
    given = {
        "clusters": [{"metadata": {"name": name}, "status": enabled} for name in ("a", "b")],
        "bindings": [binding("x", ["a"])],
        "pending": [binding("y"), binding("z")],
    }
    (tmp_path / "fleet.json").write_text(json.dumps(given))
    result = run("bench", "fleet", tmp_path / "fleet.json", "--placements", tmp_path / "out")
    found = json.loads(result.stdout.splitlines()[-1])
    assert (found["ok"], found["fail"]) == (1, 1)
    assert set(found) == {"ok", "fail", "seconds", "bindings_per_s"}
    assert [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()] == [
        {"binding": "web/y", "clusters": [{"name": "b", "replicas": 1}]},
        {"binding": "web/z", "clusters": []},
    ]


TERM = """\
    workloadAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {app: api}}}]
"""


def test_a_term_without_an_indexed_label_key_is_rejected(run, fleet):
    (fleet / "policy.yaml").write_text(POLICY + TERM)
    (fleet / "web.yaml").unlink()
    assert run("place", "-f", ".", "--anti-affinity-label-keys", "app,tier").exit_code == 0
    result = run("place", "-f", ".", "--anti-affinity-label-keys", "tier")
    assert result.exit_code == 1
    assert "--anti-affinity-label-keys" in result.stdout


def test_a_workload_of_no_namespace_is_named_without_one(run, fleet):
    policy = POLICY.replace("PropagationPolicy", "ClusterPropagationPolicy").replace(", namespace: web", "")
    policy = policy.replace("apiVersion: apps/v1, kind: Deployment", "apiVersion: v1, kind: Namespace")
    served = "resources: [{kind: Deployment, name: deployments}]}, {groupVersion: v1, resources: [{kind: Namespace}]}]"
    clusters = (fleet / "clusters.yaml").read_text()
    clusters = clusters.replace("resources: [{kind: Deployment, name: deployments}]}]", served)
    (fleet / "clusters.yaml").write_text(clusters)
    (fleet / "policy.yaml").write_text(policy)
    (fleet / "web.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    result = run("explain", "namespace/shop", "-f", ".")
    assert result.stdout.splitlines()[0] == "shop-namespace is placed on idc (group main)."
