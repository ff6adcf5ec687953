"""`deploy/webhook` and `deploy/webhook-certificates`: two ServiceAccounts, each with the rights that it needs and no other."""

import base64
import os
import subprocess
import sys

import pytest

import threat_model
from bayplan.webhook import in_cluster
from live.admin import ApiError, pod, wait_for
from live.bayplan_running import process
from live.open_webhook import CONFIGURATIONS
from live.processes import free_port

OWN = "bayplan-system"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ALL_PARTS = ("enforcing", "auditing", "webhook", "webhook-certificates")


def exclusive(key):
    return {"podAntiAffinity": {REQUIRED: [{"labelSelector": {}, "namespaceSelector": {}, "topologyKey": key}]}}


async def rejection(admin, obj):
    """Return why an object is rejected; empty if it is admitted. Nothing is stored."""
    try:
        await admin.create(obj, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


@pytest.fixture
def on_this_machine():
    """Return the flags for a local webhook address, and its URL."""
    address = f"127.0.0.1:{free_port()}"
    url = f"https://{address}"
    return ("--webhook-bind-address", address, "--webhook-url", url), url


async def account(kube_server, admin, name):
    """A kubeconfig of a ServiceAccount."""
    return kube_server.kubeconfig(entry={"token": await admin.service_account_token(OWN, name)})


def rotate(kubeconfig, *options):
    """Run `bayplan webhook-certificates --once`; the finished process."""
    words = ["-m", "bayplan", "webhook-certificates", "--once", "--kubeconfig", str(kubeconfig), *options]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True, env=env)


async def mounted(admin, folder, given):
    """The flags of the Deployment, with the files of the Secret in a folder, as the kubelet mounts them."""
    secret = await admin.get("secrets", in_cluster.SECRET, OWN)
    for name in in_cluster.SERVED_FILES:
        (folder / name).write_bytes(base64.b64decode(secret["data"][name]))
    return [flag.replace("/var/run/bayplan-webhook", str(folder)) for flag in given]


async def test_certificates_come_from_another_account_than_the_scheduler(
    kube_server,
    admin,
    namespace,
    apply,
    on_this_machine,
    tmp_path,
):
    await admin.create_nodes(2, cpu="4", labels=lambda n: {HOSTNAME: f"node-{n}"})
    where, url = on_this_machine
    given, kubeconfig = await apply("webhook", "webhook-certificates", url=url)
    assert "--webhook" in given
    done = rotate(await account(kube_server, admin, "bayplan-webhook-certificates"), "--webhook-url", url)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "mounted"
    folder.mkdir()
    running = process(kube_server, *await mounted(admin, folder, given), *where, kubeconfig=kubeconfig)
    cluster_wide = pod("cluster-wide", namespace, affinity=exclusive("topology.kubernetes.io/zone"))
    assert "reaches beyond a node" in await wait_for(lambda: rejection(admin, cluster_wide))
    limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bayplan-quota"}}
    await admin.create({**limits, "data": {namespace: "{cpu: 2}"}}, namespace=OWN)
    alone = pod("alone", namespace, affinity=exclusive(HOSTNAME))
    assert "requested: cpu=4, used: cpu=0, limited: cpu=2" in await wait_for(lambda: rejection(admin, alone))
    await admin.create_pod("web", namespace, scheduler="bayplan")
    await wait_for(lambda: admin.node_of("web", namespace))
    running.stop()
    assert running.child.returncode == 0
    log = running.log.read_text()
    assert "no rights" not in log
    assert (folder / "paths").read_text().strip() not in log + done.stderr


async def test_the_scheduler_starts_before_there_are_certificates(
    kube_server,
    admin,
    namespace,
    apply,
    on_this_machine,
    tmp_path,
):
    await admin.create_nodes(1)
    where, url = on_this_machine
    given, kubeconfig = await apply(*ALL_PARTS, url=url)
    empty = tmp_path / "mounted"
    empty.mkdir()
    given = [flag.replace("/var/run/bayplan-webhook", str(empty)) for flag in given]
    running = process(kube_server, *given, *where, kubeconfig=kubeconfig)
    await admin.create_pod("web", namespace, scheduler="bayplan")
    await wait_for(lambda: admin.node_of("web", namespace))
    running.stop()
    assert running.child.returncode == 0
    assert "no rights" not in running.log.read_text()


@pytest.mark.parametrize("gone", [CONFIGURATIONS, CONFIGURATIONS[1:]])
async def test_missing_webhook_configurations_are_reported_and_end_nothing(gone, kube_server, admin, apply):
    """Operators delete the configurations to disable a webhook in an emergency."""
    await apply("webhook", "webhook-certificates")
    for resource in gone:
        await admin.delete(resource, "bayplan")
    done = rotate(await account(kube_server, admin, "bayplan-webhook-certificates"))
    assert done.returncode == 0, done.stderr
    for resource in CONFIGURATIONS:
        said = f"no {resource.rpartition('/')[2]} bayplan: API servers do not call"
        assert (said in done.stderr) is (resource in gone)


@pytest.mark.parametrize("name", ["bayplan", "bayplan-webhook-certificates"])
async def test_a_token_may_do_exactly_what_the_threat_model_says(name, kube_server, admin, namespace, apply):
    await apply(*ALL_PARTS)
    listed = {one._replace(part="") for one in threat_model.listed() if one.account == name}
    token = await admin.service_account_token(OWN, name)
    everyone = await admin.service_account_token(namespace, "nobody")
    for where in (OWN, "kube-system", namespace):
        found = await rights(admin, token, where) - await rights(admin, everyone, where)
        expected = {(one.verb, one.resource, one.name) for one in listed if one.namespace in ("all", where)}
        assert found == expected


async def rights(admin, token, namespace):
    """What the API server says that a token may do in a namespace: verb, resource and name."""
    question = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    answer = await admin.request("POST", path, question, token=token)
    assert not answer["status"]["incomplete"]
    return {
        (one.verb, one.resource, one.name)
        for rule in answer["status"]["resourceRules"]
        for one in threat_model.rights_of(rule)
    }


async def refused(admin, token, method, path, change, how="application/merge-patch+json"):
    """Why the API server refuses a change with this token; empty if it does not. Nothing is stored."""
    try:
        await admin.request(method, path, change, token=token, media=how, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["validating", "mutating"])
async def test_of_a_webhook_configuration_only_the_bundle_and_the_path_may_change(kind, kube_server, admin, apply):
    await apply("webhook", "webhook-certificates")
    token = await admin.service_account_token(OWN, "bayplan-webhook-certificates")
    path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/bayplan"
    hook = {"validating": "pods", "mutating": "defaults"}[kind] + ".bayplan.io"
    strategic = "application/strategic-merge-patch+json"

    def attempt(**change):
        body = {"webhooks": [{"name": hook, **change}]}
        return refused(admin, token, "PATCH", path, body, strategic)

    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]
    said = "only the CA bundle and the path of a webhook may change"
    assert said in await wait_for(lambda: attempt(rules=everything))
    for change in (
        {"failurePolicy": "Fail"},
        {"namespaceSelector": {"matchExpressions": None}},
        {"clientConfig": {"service": {"namespace": "default", "name": "bayplan-webhook"}}},
        {"clientConfig": {"service": {"namespace": OWN, "name": "other"}}},
        {"clientConfig": {"service": None, "url": "https://thief.example"}},
        {"name": "another.bayplan.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
         "clientConfig": {"url": "https://thief.example"}},
        {"$patch": "delete"},
    ):  # fmt: skip
        assert said in await attempt(**change), change
    done = rotate(await account(kube_server, admin, "bayplan-webhook-certificates"))
    assert done.returncode == 0, done.stderr
    for webhook in (await admin.get(CONFIGURATIONS[kind == "mutating"], "bayplan"))["webhooks"]:
        assert webhook["clientConfig"]["caBundle"]
        assert len(webhook["clientConfig"]["service"]["path"]) > 64


async def test_of_a_volume_only_the_claim_and_of_a_claim_only_the_node_may_change(admin, namespace, apply):
    await apply()
    token = await admin.service_account_token(OWN, "bayplan")
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    for name, more in (("free", {}), ("taken", {"claimRef": {"namespace": "bank", "name": "vault"}})):
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**spec, **more}}
        await admin.create(volume)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    meta = {"name": "data", "namespace": namespace, "labels": {"a": "b"}, "annotations": {"c": "d"}}
    await admin.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim})

    def volume(name, change):
        return refused(admin, token, "PATCH", f"/api/v1/persistentvolumes/{name}", change)

    def of_claim(change):
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/data"
        return refused(admin, token, "PATCH", path, change)

    mine = {"namespace": namespace, "name": "data"}
    only_claim = "only the claim of a volume that has none may change"
    assert only_claim in await wait_for(lambda: volume("taken", {"spec": {"claimRef": mine}}))
    assert not await volume("free", {"spec": {"claimRef": mine}})
    assert not await volume("free", {"metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}})
    for change in ({"claimRef": None}, {"persistentVolumeReclaimPolicy": "Delete"}, {"mountOptions": ["suid"]}):
        assert only_claim in await volume("taken", {"spec": change})
    assert only_claim in await volume("free", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
    only_annotations = "only the annotations for binding may change"
    for meta in ({"labels": {"a": "x"}}, {"annotations": {"c": "x"}}, {"annotations": {"c": None}}, {"finalizers": []}):
        assert only_annotations in await of_claim({"metadata": meta}), meta
    assert not await of_claim({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}})
    grown = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert await of_claim(grown)
