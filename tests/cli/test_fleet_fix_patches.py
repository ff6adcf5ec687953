"""The patches of fixes for bindings: applied to the policy or the template, each of them does what it says."""

import json

import pytest
import yaml

from bayplan.explaining import json_patch

DIVIDED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}


def cluster(name, cpu="10", pool="idc", taint=""):
    key, _, effect = taint.partition(":")
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": {"pool": pool}},
        "spec": {"syncMode": "Push", "taints": [{"key": key, "effect": effect}] if taint else []},
        "status": {
            "apiEnablements": [
                {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}
            ],
            "resourceSummary": {"allocatable": {"cpu": cpu, "pods": "100"}, "allocated": {"cpu": "0", "pods": "0"}},
        },
    }


def policy(placement, annotated=None, name="p", workload="shop"):
    annotations = {"bayplan.io/placement": json.dumps(annotated)} if annotated else {}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "web", "annotations": annotations},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": workload}],
            "placement": {"replicaScheduling": DIVIDED} | placement,
        },
    }


def template(name="shop", replicas=3, app="shop"):
    pod = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
    pod["metadata"] = {"labels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "web", "labels": {"app": app}},
        "spec": spec | {"template": pod},
    }


CLUSTERS = [cluster("idc-1"), cluster("idc-2"), cluster("cloud-1", "100", "cloud", "rented:NoSchedule"),
            cluster("cloud-2", "100", "cloud")]  # fmt: skip
IDC = {"labelSelector": {"matchLabels": {"pool": "idc"}}}
NAMED = {"clusterNames": ["idc-1"]}
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "other"}}},
    {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["pipe"]}]}},
]}  # fmt: skip
PIPE = [policy({"clusterAffinity": NAMED}, name="pipe", workload="pipe"), template("pipe", app="pipe", replicas=1)]
GROUPED = {"workloadAffinity": {"antiAffinity": {"groupByLabelKey": "app"}}}
PIPES = [policy({"clusterAffinity": NAMED} | GROUPED, name="a", workload="a"), template("a", app="x", replicas=1)]

# The fix, the placement, what the annotation adds, the replicas, and what else there is.
CASES = [
    ("tolerate rented:NoSchedule in placement.clusterTolerations", {"clusterAffinity": {"clusterNames": ["cloud-1"]}}, {}, 3, []),
    ("lower minGroups of cluster to 2",
     {"clusterAffinity": IDC, "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 3}]}, {}, 3, []),
    ("raise maxGroups of cluster to 2",
     {"clusterAffinity": IDC, "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}, {}, 15, []),
    ("add idc-2 to clusterNames", {"clusterAffinity": NAMED}, {}, 15, []),
    ("add idc-2 to clusterNames of group g2",
     {"clusterAffinities": [{"affinityName": "g1", "clusterNames": ["cloud-1"]}, {"affinityName": "g2", **NAMED}]}, {}, 15, []),
    ("add cloud-2 as a further tier", {"clusterAffinity": IDC}, {}, 50, []),
    ("add cloud-2 as a further tier of group g", {"clusterAffinities": [{"affinityName": "g", **IDC}]}, {}, 50, []),
    ("add cloud-2 as a further tier of group g",
     {"clusterAffinities": [{"affinityName": "g", **NAMED, "overflowAffinities": [{"affinityName": "h", "clusterNames": ["idc-2"]}]}]},
     {}, 50, []),
    ("add cloud-2 as a further tier", {"clusterAffinity": NAMED}, {"supplements": [{"clusterNames": ["idc-2"]}]}, 50, []),
    ("add cloud-2 as a further tier", {"clusterAffinity": NAMED},
     {"clusterAffinity": {"supplements": [{"clusterNames": ["idc-2"]}]}}, 50, []),
    ("add cloud-2 as a further tier of group g", {"clusterAffinities": [{"affinityName": "g", **NAMED}]},
     {"clusterAffinities": [{"affinityName": "g", "supplements": [{"clusterNames": ["idc-2"]}]}]}, 50, []),
    ("add cloud-2 as a further tier of group g", {"clusterAffinities": [{"affinityName": "g", **NAMED}]},
     {"supplements": {"g": [{"clusterNames": ["idc-2"]}]}}, 50, []),
    ("add cloud-2 as a further tier of group g", {},
     {"preferredClusterAffinities": [{"affinityName": "g", **NAMED}, {"affinityName": "h", "clusterNames": ["idc-2"]}]}, 50, []),
    ("add cloud-2 as a further tier of group g",
     {"clusterAffinities": [{"affinityName": "g", **NAMED}, {"affinityName": "h", "clusterNames": ["idc-2"]}]},
     {"affinityStrategy": {"mode": "Inherited"}}, 50, []),
    ("lower the replicas from 50 to 20", {"clusterAffinity": IDC}, {}, 50, []),
    ("drop the term placement.workloadAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[1]",
     {"clusterAffinity": NAMED}, {"workloadAntiAffinity": APART}, 3, PIPE),
    ("drop placement.workloadAffinity.antiAffinity, which groups it by app=x", {"clusterAffinity": NAMED} | GROUPED, {}, 3, PIPES),
]  # fmt: skip


@pytest.fixture
def explain(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def explained(*objects):
        (tmp_path / "fleet.yaml").write_text(yaml.safe_dump_all(objects))
        result = run("explain", "deployment/shop", "-f", "fleet.yaml", "-o", "json")
        return json.loads(result.stdout), result

    return explained


def named(objects, reference):
    (found,) = (
        one
        for one in objects
        if (one["kind"], one["metadata"]["name"]) == (reference["kind"], reference["name"])
        and one["metadata"].get("namespace", "") == reference.get("namespace", "")
    )
    return found


@pytest.mark.parametrize("change, placement, annotated, replicas, further", CASES)
def test_a_patched_manifest_has_the_effect_of_the_fix(change, placement, annotated, replicas, further, explain):
    app = "x" if further is PIPES else "shop"
    objects = [*CLUSTERS, *further, policy(placement, annotated), template(replicas=replicas, app=app)]
    document, result = explain(*objects)
    assert result.exit_code == 1, result.output
    (fix,) = (one for one in document["fixes"] if one["change"] == change)
    (patch,) = fix["patches"]
    before = named(objects, patch["object"])
    objects[objects.index(before)] = json_patch.applied(patch["patch"], before)
    document, result = explain(*objects)
    assert result.exit_code == 0, result.output
    assert sorted(one["name"] for one in document["clusters"]) == sorted(fix["fitsOn"])


def test_the_manifest_of_a_fix_can_be_applied(explain, run, tmp_path):
    stored = policy({"clusterAffinity": IDC})  # what the fix removes is null, as a server has it
    stored["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    objects = [*CLUSTERS, stored, template(replicas=50)]
    document, _ = explain(*objects)
    number = [one["change"] for one in document["fixes"]].index("add cloud-2 as a further tier") + 1
    result = run("explain", "deployment/shop", "-f", "fleet.yaml", "--apply-fix", str(number))
    assert (result.exit_code, yaml.safe_load(result.stdout)["kind"]) == (0, "PropagationPolicy")
    (tmp_path / "fixed.yaml").write_text(result.stdout)
    result = run("place", "--state", "fleet.yaml", "-f", "fixed.yaml")
    assert result.exit_code == 0
    assert "cloud-2:30 (tier 1)" in result.stdout


def test_what_no_manifest_changes_has_no_patch(explain):
    document, _ = explain(*CLUSTERS, policy({"clusterAffinity": IDC}), template(replicas=50))
    by_change = {one["change"]: one.get("patches") for one in document["fixes"]}
    assert by_change["make room for 30 more replicas on idc-1"] is None


def binding(labels):
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": "shop-deployment", "namespace": "web", "uid": "u", "resourceVersion": "1", "labels": labels},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "web", "name": "shop"},
            "replicas": 15,
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
            "placement": {"clusterAffinity": NAMED, "replicaScheduling": DIVIDED},
        },
    }  # fmt: skip


@pytest.mark.parametrize("labels, kind", [
    ({}, "ResourceBinding"),  # nobody has claimed it, so it has its placement itself
    ({"propagationpolicy.karmada.io/permanent-id": "gone"}, None),  # that of a policy that the input lacks
])  # fmt: skip
def test_a_binding_is_patched_only_if_it_has_no_policy(labels, kind, explain):
    document, _ = explain(*CLUSTERS, binding(labels))
    (fix,) = (one for one in document["fixes"] if one["change"] == "add idc-2 to clusterNames")
    assert [one["object"]["kind"] for one in fix["patches"] or ()] == ([kind] if kind else [])


def test_a_term_of_the_template_is_in_no_policy(explain):
    """It is in the annotation of the template, so the policy cannot be patched."""
    written = template(replicas=1)
    written["metadata"]["annotations"] = {"bayplan.io/placement": json.dumps({"workloadAntiAffinity": APART})}
    document, _ = explain(*CLUSTERS, *PIPE, policy({"clusterAffinity": NAMED}), written)
    (fix,) = (one for one in document["fixes"] if one["change"].startswith("drop the term"))
    assert fix["patches"] is None
