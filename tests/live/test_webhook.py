"""The webhook, called by a real API server: one test for each rule, and operation of the webhook."""

import asyncio
import base64
import itertools
import json
import pathlib
import socket
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import yaml

from bayplan.enforcing.quota import QuotaLimits
from bayplan.errors import ClusterError
from bayplan.kube_api import connect
from bayplan.kube_api.access import ConnectOptions
from bayplan.validating.guard import Exempt, GuardSettings
from bayplan.webhook import certificates, in_cluster, running, serving
from bayplan.webhook.admission_handler import AdmissionSettings
from bayplan.webhook.certificates import CertificateLifetimes, KeyPair
from bayplan.webhook.manifests import WebhookAddress
from bayplan.webhook.running import WebhookSettings
from live.admin import ApiError, path_to, wait_for
from live.open_webhook import CONFIGURATIONS, ObservedView, serving_webhook

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RUNNING = "requiredDuringSchedulingRequiredDuringExecution"
NAMES = (f"w{n}" for n in itertools.count())
RIGHTS = pathlib.Path(__file__).parents[2] / "deploy" / "webhook-certificates" / "rbac.yaml"
ACCOUNT = "bayplan-webhook-certificates"
OWN = "bayplan-system"


def anti(key, when=REQUIRED, app=None, **more):
    term = {"labelSelector": {"matchLabels": {"app": app}} if app else {}, "topologyKey": key, **more}
    return {"podAntiAffinity": {when: [term if app else {**term, "namespaceSelector": {}}]}}


def pod(*, affinity=None, rule=None, node="", namespace="default", name=None, **metadata):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    if affinity:
        spec["affinity"] = affinity
    if node:
        spec["nodeName"] = node
    annotations = {} if rule is None else {"bayplan.io/affinity": rule if isinstance(rule, str) else json.dumps(rule)}
    meta = {"name": name or next(NAMES), "namespace": namespace, "annotations": annotations, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def deployment(affinity, **metadata):
    labels, spec = {"app": "web"}, pod(affinity=affinity)["spec"]
    made = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}
    meta = {"name": next(NAMES), "namespace": "default", **metadata}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": made}


async def rejection(admin, obj, **how):
    """Return code and message of a rejection; None if the object is admitted."""
    try:
        await admin.create(obj, **how)
    except ApiError as error:
        return error.status, error.body["message"]
    return None


CLUSTER_WIDE = anti(ZONE)
BEYOND = f'"{ZONE}" reaches beyond a node, and hard anti-affinity across all namespaces may only use {HOSTNAME}'


# The rules


async def test_cluster_wide_anti_affinity_is_rejected_in_pods_and_templates(admin):
    async with serving_webhook(admin):
        code, said = await rejection(admin, pod(affinity=CLUSTER_WIDE))
        assert code == 403
        assert said.startswith('admission webhook "pods.bayplan.io" denied the request: spec.affinity.podAntiAffinity')
        assert BEYOND in said
        for when in (REQUIRED, RUNNING):
            assert BEYOND in (await rejection(admin, pod(rule=anti(ZONE, when))))[1]
        code, said = await rejection(admin, deployment(CLUSTER_WIDE))
        assert "spec.template.spec.affinity" in said
        assert await rejection(admin, pod(affinity=anti(HOSTNAME))) is None
        assert await rejection(admin, pod(affinity=anti(ZONE, app="web"))) is None
        assert await rejection(admin, pod()) is None


async def test_causes_reach_the_client(admin):
    async with serving_webhook(admin):
        with pytest.raises(ApiError) as rejected:
            await admin.create(pod(affinity=CLUSTER_WIDE))
    (cause,) = rejected.value.body["details"]["causes"]
    assert (cause["reason"], cause["field"]) == (
        "FieldValueForbidden",
        f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey",
    )


@pytest.mark.parametrize("exempt", [Exempt(groups=("system:masters",)), Exempt(namespaces=("default",))])
async def test_exempt_requesters_are_admitted(admin, exempt):
    async with serving_webhook(admin, AdmissionSettings(guard=GuardSettings(exempt=exempt))):
        assert await rejection(admin, pod(affinity=CLUSTER_WIDE)) is None


async def test_system_namespaces_are_exempt(admin):
    await admin.create_namespace("bayplan-system")
    async with serving_webhook(admin):
        for namespace in ("kube-system", "bayplan-system"):
            assert await rejection(admin, pod(affinity=CLUSTER_WIDE, namespace=namespace)) is None
        for namespace in ("kube-system", "bayplan-system"):
            await admin.delete_all("pods", namespace)


async def test_malformed_annotations_are_rejected(admin):
    async with serving_webhook(admin):
        code, said = await rejection(admin, pod(rule="{"))
        assert code == 422
        assert "metadata.annotations[bayplan.io/affinity]: Invalid value: neither YAML nor JSON" in said
        for wrong in (deployment, pod):  # both may be templates that Karmada places
            bad = wrong(affinity=None, annotations={"bayplan.io/placement": "supplement: []"})
            assert "metadata.annotations[bayplan.io/placement]" in (await rejection(admin, bad))[1]


def policy(placement, **metadata):
    spec = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": placement}
    meta = {"name": next(NAMES), "namespace": "default", **metadata}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": meta, "spec": spec}


async def test_policies_are_reviewed_by_the_placement_rules(karmada_server, admin):
    async with serving_webhook(admin) as webhook:
        both = {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}
        code, said = await rejection(admin, policy(both))
        assert code == 422
        assert "clusterAffinities cannot co-exist with clusterAffinity" in said
        assert (
            "bayplan.io/placement" in (await rejection(admin, policy({}, annotations={"bayplan.io/placement": "["})))[1]
        )
        assert await rejection(admin, policy({"clusterAffinity": {"clusterNames": ["m"]}})) is None
        whole = policy(both)
        whole["kind"] = "ClusterPropagationPolicy"
        del whole["metadata"]["namespace"]
        assert "clusterAffinities cannot co-exist" in (await rejection(admin, whole))[1]
        assert {path for path, _ in webhook.reviews} >= {serving.POLICIES}


async def test_ineffective_fields_are_warnings(admin):
    async with serving_webhook(admin):
        url, body = admin.url + path_to("pods", namespace="default"), json.dumps(pod(affinity=anti(HOSTNAME)))
        async with admin._session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
            assert answer.status == 201
            assert "this means daemons too" in " ".join(answer.headers.getall("Warning", []))


async def test_terms_are_made_to_tolerate_daemon_namespaces(admin):
    async with serving_webhook(admin):
        made = await admin.create(pod(rule=anti(HOSTNAME, RUNNING, app="db")))
        bare = {"metadata": {"annotations": {"bayplan.io/affinity": json.dumps(anti(HOSTNAME, RUNNING, app="cache"))}}}
        changed = await admin.patch("pods", made["metadata"]["name"], bare, "default")
    for found, app in ((made, "db"), (changed, "cache")):
        rule = json.loads(found["metadata"]["annotations"]["bayplan.io/affinity"])
        assert rule == anti(HOSTNAME, RUNNING, app=app, tolerateNamespaces=["kube-system"])


async def test_existing_violations_may_stay(admin):
    name = (await admin.create(deployment(CLUSTER_WIDE)))["metadata"]["name"]
    async with serving_webhook(admin):
        changed = await admin.patch("apps/v1/deployments", name, {"spec": {"replicas": 3}}, "default")
        assert changed["spec"]["replicas"] == 3
    await admin.delete("apps/v1/deployments", name, "default")


NO_DB = anti(HOSTNAME, RUNNING, app="db")


async def test_a_bind_that_violates_a_rule_is_rejected_in_both_directions(admin):
    await admin.create_nodes(2, labels=lambda n: {HOSTNAME: f"node-{n}"})
    for name, node, labels, rule in (
        ("db-0", "node-0", {"app": "db"}, None),
        ("web-1", "node-1", {"app": "web"}, NO_DB),
        ("web", "", {"app": "web"}, NO_DB),
        ("db", "", {"app": "db"}, None),
    ):
        await admin.create(pod(name=name, node=node, labels=labels, rule=rule))
    view = ObservedView()
    await view.read(admin)
    async with serving_webhook(admin, view=view) as webhook:
        with pytest.raises(ApiError, match="of default/web rejects app=db on its node") as rejected:
            await admin.bind("default", "web", "node-0")
        assert rejected.value.status == 409
        with pytest.raises(ApiError, match="of default/web-1 rejects app=db on its node"):
            await admin.bind("default", "db", "node-1")
        assert await admin.node_of("db") == ""
        await admin.bind("default", "db", "node-0")
        assert await admin.node_of("db") == "node-0"
        await admin.bind("default", "web", "node-1")
        assert (serving.BINDINGS, False) in webhook.reviews


async def test_of_two_conflicting_binds_one_is_rejected(kube_server, admin, namespace):
    """Even concurrent ones: an admitted bind counts before it is seen in the cluster."""
    await admin.create_nodes(1)
    for name, labels, rule in (("web", {"app": "web"}, NO_DB), ("db", {"app": "db"}, None)):
        await admin.create(pod(name=name, namespace=namespace, labels=labels, rule=rule))
    view = ObservedView()
    await view.read(admin)
    async with serving_webhook(admin, view=view):
        binds = (admin.bind(namespace, name, "node-0") for name in ("web", "db"))
        answers = await asyncio.gather(*binds, return_exceptions=True)
    (rejected,) = [answer for answer in answers if isinstance(answer, ApiError)]
    assert rejected.status == 409
    assert "rejects app=db on its node" in str(rejected)


async def test_a_pod_created_with_a_node_name_is_reviewed_as_a_bind(admin):
    await admin.create_nodes(1, labels=lambda n: {HOSTNAME: f"node-{n}"})
    await admin.create(pod(name="web", node="node-0", rule=NO_DB))
    view = ObservedView()
    await view.read(admin)
    async with serving_webhook(admin, view=view):
        code, said = await rejection(admin, pod(name="db", node="node-0", labels={"app": "db"}))
        assert (code, "of default/web rejects app=db" in said) == (409, True)
        assert await rejection(admin, pod(name="db", labels={"app": "db"})) is None


async def test_a_pod_that_exceeds_the_quota_is_rejected(admin):
    await admin.create_nodes(2, cpu="4", memory="8Gi", labels=lambda n: {HOSTNAME: f"node-{n}"})
    view = ObservedView(QuotaLimits({"default": (("cpu", 8000),)}))
    await view.read(admin)
    async with serving_webhook(admin, view=view):
        exclusive = [pod(affinity=anti(HOSTNAME)) for _ in range(6)]
        answers = await asyncio.gather(*(rejection(admin, one) for one in exclusive))
        refused = [answer for answer in answers if answer is not None]
        assert len(refused) == 4  # the quota covers two nodes, even for concurrent requests
        said = "exceeded quota: bayplan-quota, requested: cpu=4, used: cpu=8, limited: cpu=8"
        assert all(code == 403 and said in message for code, message in refused)


async def test_pending_pods_of_all_schedulers_are_listed(kube_server, admin, namespace):
    await admin.create_nodes(1)
    for name, node, scheduler in (("a", "", "one"), ("b", "", "two"), ("c", "node-0", "one")):
        made = pod(name=name, node=node, namespace=namespace)
        made["spec"]["schedulerName"] = scheduler
        await admin.create(made)
    await admin.create(pod(name="elsewhere"))
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        waiting = await in_cluster.pending_pods(connection, namespace)
    assert sorted(workload.key for workload in waiting) == [f"{namespace}/a", f"{namespace}/b"]


# Operation


async def test_no_request_is_rejected_while_certificates_rotate(admin):
    """Steps of hours in seconds: the API server sees a new authority as fast as any other change."""
    start, minute = datetime.now(UTC), timedelta(minutes=1)
    lives = CertificateLifetimes(authority=30 * minute, serving=10 * minute, settling=minute)
    async with serving_webhook(
        admin, failure_policy="Fail", lifetimes=lives, now=start, new_connections=True
    ) as webhook:
        asked, failures, done = 0, [], asyncio.Event()

        async def hammer():
            nonlocal asked
            while not done.is_set():
                answer = await rejection(admin, pod(affinity=anti(HOSTNAME)), dryRun="All")
                asked += 1
                failures.extend([] if answer is None else [answer])

        hammers = [asyncio.create_task(hammer()) for _ in range(8)]
        shown, bundles = [], []
        for after in (7, 14, 20, 21.5, 22.5, 29, 40, 41.5, 42.5):
            await webhook.rotator.rotate(start + after * minute)
            shown.append(webhook.rotator._loaded)
            bundles.append((await webhook.rotator._store.load()).bundle)
            await asyncio.sleep(1.5)
        done.set()
        await asyncio.gather(*hammers)
    assert failures == []
    assert asked > 100
    assert len(set(shown)) >= 4
    assert len(set(bundles)) == 5


@pytest.mark.parametrize("failure_policy", ["Ignore", "Fail"])
async def test_a_webhook_that_is_down(admin, failure_policy):
    async with serving_webhook(admin, failure_policy=failure_policy) as webhook:
        await webhook.close()
        answer = await rejection(admin, pod(affinity=CLUSTER_WIDE))
        if failure_policy == "Ignore":
            assert answer is None
        else:
            assert answer[0] == 500
            assert 'failed calling webhook "pods.bayplan.io"' in answer[1]
        assert await rejection(admin, pod(affinity=CLUSTER_WIDE, namespace="kube-system")) is None
        assert await rejection(admin, pod()) is None  # for which it is never called
        await admin.delete_all("pods", "kube-system")


async def test_the_webhook_is_not_called_for_plain_pods(admin):
    async with serving_webhook(admin) as webhook:
        before = len(webhook.reviews)
        assert await rejection(admin, pod()) is None
        assert len(webhook.reviews) == before


# The shipped manifests


@pytest.fixture
async def shipped(admin):
    """Apply the shipped manifests, with a local port instead of the Service."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    webhook = WebhookSettings(
        address=WebhookAddress(url=f"https://127.0.0.1:{port}"), host="127.0.0.1", port=port, failure_policy="Fail"
    )
    await admin.create_namespace(OWN)
    for document in (*yaml.safe_load_all(RIGHTS.read_text()), *webhook.manifests()):
        await admin.create(document)
    yield webhook
    for resource in (*CONFIGURATIONS, *("rbac.authorization.k8s.io/v1/clusterrole" + s for s in ("s", "bindings"))):
        await admin.delete(resource, "bayplan" if resource in CONFIGURATIONS else ACCOUNT)
    for resource in ("rolebindings", "roles"):
        await admin.delete(f"rbac.authorization.k8s.io/v1/{resource}", ACCOUNT, OWN)
    await admin.delete_all("secrets", OWN)
    await wait_for(lambda: _let_in(admin))


async def _let_in(admin):
    return await rejection(admin, pod(affinity=anti(HOSTNAME)), dryRun="All") is None


async def test_the_webhook_works_with_its_shipped_rights(kube_server, admin, shipped):
    token = await admin.service_account_token(OWN, ACCOUNT)
    options = ConnectOptions(token=token)
    errors_reported = []
    async with connect.from_kubeconfig(kube_server.kubeconfig(), options=options) as connection:
        async with running.serve(shipped, connection, errors_reported.append):
            await wait_for(lambda: _let_in(admin))
            assert BEYOND in (await rejection(admin, pod(affinity=CLUSTER_WIDE)))[1]
        first = await in_cluster.SecretStore(connection, OWN).load()
        async with running.serve(shipped, connection, errors_reported.append):  # a restart serves the same certificate
            assert await _let_in(admin)
        assert await in_cluster.SecretStore(connection, OWN).load() == first
    assert errors_reported == []


async def test_replicas_that_start_together_share_one_certificate(kube_server, admin, shipped):
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        stores = [in_cluster.SecretStore(connection, OWN) for _ in range(5)]
        assert [await store.load() for store in stores] == [None] * 5
        first, second = ([_new_chain() for _ in stores] for _ in range(2))
        saved = await asyncio.gather(*(store.save(chain, None) for store, chain in zip(stores, first, strict=True)))
        assert sum(saved) == 1
        kept = await stores[0].load()
        assert kept == first[saved.index(True)]
        assert [await store.load() for store in stores] == [kept] * 5
        saved = await asyncio.gather(*(store.save(chain, kept) for store, chain in zip(stores, second, strict=True)))
        assert sum(saved) == 1


@pytest.mark.parametrize("spoilt", [
    b"{}",
    msgspec.json.encode(certificates.CertificateChain((), KeyPair(b"x", b"y"))),
    msgspec.json.encode(certificates.CertificateChain((KeyPair(b"x", b"y"),), certificates.create_authority(datetime.now(UTC), timedelta(1)))),
])  # fmt: skip
async def test_a_foreign_secret_is_reported(spoilt, kube_server, admin):
    await admin.create_namespace(OWN)
    encoded = {"chain.json": base64.b64encode(spoilt).decode()}
    meta = {"name": in_cluster.SECRET, "namespace": OWN}
    await admin.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded})
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        with pytest.raises(ClusterError, match="holds no certificates of this webhook; remove its data"):
            await in_cluster.SecretStore(connection, OWN).load()


def _new_chain():
    return certificates.renewed(None, ["a"], datetime.now(UTC), CertificateLifetimes())
