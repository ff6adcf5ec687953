"""`bayplan quota` on a real API server."""

import json

from click.testing import CliRunner

from bayplan.cli import main

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_charges_on_a_live_cluster(kube_server, sync_admin, namespace):
    sync_admin.create_nodes(2, cpu="4", memory="8Gi", labels=lambda n: {HOSTNAME: f"node-{n}"})
    term = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": HOSTNAME}
    for name in ("runs", "waits"):
        sync_admin.create_pod(name, namespace, affinity={"podAntiAffinity": {REQUIRED: [term]}})
    sync_admin.bind(namespace, "runs", "node-0")
    limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits", "namespace": namespace}}
    sync_admin.create({**limits, "data": {namespace: "{cpu: 6}"}})

    words = ["quota", "--kubeconfig", str(kube_server.kubeconfig()), "--limits", f"{namespace}/limits", "-o", "json"]
    result = CliRunner().invoke(main.cli, words)

    assert result.exit_code == 1, result.stderr
    (account,) = json.loads(result.stdout)["accounts"]
    assert (account["charged"]["cpu"], account["limits"], account["exceeded"]) == ("8", {"cpu": "6"}, ["cpu"])
    runs, waits = account["charges"]
    assert (runs["node"], runs["domains"], waits["node"]) == ("node-0", [f"{HOSTNAME}=node-0"], "")


def test_an_unknown_namespace_is_reported(kube_server, namespace):
    words = ["violations", "--kubeconfig", str(kube_server.kubeconfig()), "-n"]
    assert (
        f"nothing in the input is in namespace {namespace}x"
        in CliRunner().invoke(main.cli, [*words, f"{namespace}x"]).stderr
    )
    assert "nothing in the input" not in CliRunner().invoke(main.cli, [*words, namespace]).stderr
