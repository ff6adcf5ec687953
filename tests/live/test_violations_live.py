"""`bayplan violations` on a real API server: of a cluster's pods, and of a fleet's bindings."""

import json

from click.testing import CliRunner

from bayplan.cli import main
from live.fleets import binding, cluster

HOST = "kubernetes.io/hostname"
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
BINDINGS = "work.karmada.io/v1alpha2/resourcebindings"


def violations(server, *words):
    """Return exit code, standard output and standard error."""
    line = ["violations", "--kubeconfig", str(server.kubeconfig()), *words]
    result = CliRunner().invoke(main.cli, line)
    return result.exit_code, result.stdout, result.stderr


def apart(**labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
    return {"bayplan.io/affinity": json.dumps({"podAntiAffinity": {EXECUTION: [term]}})}


def test_a_violation_is_listed_until_it_is_resolved(kube_server, sync_admin, namespace):
    sync_admin.create_nodes(2)
    sync_admin.create_pod("quiet", namespace, meta={"annotations": apart(app="loud")}, nodeName="node-0")
    sync_admin.create_pod("other", namespace, nodeName="node-0")
    assert violations(kube_server)[:2] == (0, "")

    sync_admin.patch("pods", "other", {"metadata": {"labels": {"app": "loud"}}}, namespace)
    code, answer, said = violations(kube_server, "-o", "json")
    assert code == 1, said
    (item,) = json.loads(answer)["items"]
    assert (item["owner"], item["peers"], item["domain"]) == (
        f"{namespace}/quiet",
        [f"{namespace}/other"],
        f"{HOST}=node-0",
    )
    assert [victim["name"] for victim in item["victims"]] == [f"{namespace}/quiet"]  # equal priority: the owner

    sync_admin.delete("pods", "other", namespace)
    assert violations(kube_server)[0] == 0


def test_a_disruption_budget_protects_the_victim(kube_server, sync_admin, namespace):
    sync_admin.create_nodes(1)
    meta = {"labels": {"app": "quiet"}, "annotations": apart(app="loud")}
    sync_admin.create_pod("quiet", namespace, meta=meta, nodeName="node-0")
    sync_admin.create_pod("other", namespace, meta={"labels": {"app": "loud"}}, nodeName="node-0")
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"}}
    budget["spec"] = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "quiet"}}}
    sync_admin.create(budget, namespace=namespace)
    code, answer, _ = violations(kube_server, "-o", "json")
    assert code == 1
    victims = json.loads(answer)["items"][0]["victims"]
    spared = "PodDisruptionBudget keep allows no disruption"
    assert [(victim["name"], victim["spared"]) for victim in victims] == [(f"{namespace}/quiet", spared)]


def test_bindings_of_a_live_fleet_get_their_verdicts(karmada_server, sync_admin, namespace):
    sync_admin.create_all([cluster("eu"), cluster("us")])
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": namespace},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {"clusterAffinity": {"clusterNames": ["eu", "us"]}},
        },
    }
    sync_admin.create(policy)
    anywhere = policy["spec"]["placement"]
    grouped = {"workloadAffinityGroups": {"antiAffinityGroup": "app=x"}}
    for name, where in (("one", "eu"), ("two", "eu"), ("three", "us")):
        sync_admin.create(binding(name, namespace, {where: 1}, anywhere, **grouped))
    code, answer, said = violations(karmada_server, "-o", "json")
    assert code == 1, said
    items = json.loads(answer)["items"]
    assert [(item["owner"], item["peers"], item["domain"]) for item in items] == [
        (f"{namespace}/one-deployment", [f"{namespace}/two-deployment"], "cluster=eu"),
        (f"{namespace}/two-deployment", [f"{namespace}/one-deployment"], "cluster=eu"),
    ]
    assert {victim["name"] for item in items for victim in item["victims"]} == {f"{namespace}/two-deployment"}

    moved = {"spec": {"clusters": [{"name": "us", "replicas": 1}]}}
    sync_admin.delete(BINDINGS, "three-deployment", namespace)
    sync_admin.patch(BINDINGS, "two-deployment", moved, namespace)
    assert violations(karmada_server)[:2] == (0, "")


def test_terms_in_the_annotation_of_a_live_binding_count(karmada_server, sync_admin, namespace):
    sync_admin.create_all([cluster("eu"), cluster("us")])
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "region"}
    annotations = {
        "bayplan.io/workload-labels": json.dumps({"app": "x"}),
        "bayplan.io/placement": json.dumps({"workloadAntiAffinity": {REQUIRED: [term]}}),
    }
    anywhere = {"clusterAffinity": {"clusterNames": ["eu", "us"]}}
    for name in ("one", "two"):
        sync_admin.create(binding(name, namespace, {"eu": 1}, anywhere, annotations=annotations))
    code, answer, said = violations(karmada_server)
    assert code == 1, said
    assert "region=eu" in answer
    assert len(answer.splitlines()) == 3
