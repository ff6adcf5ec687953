"""`bayplan run --webhook` as a child process: scheduler and webhook in one, on a real API server."""

import functools
import json

import pytest

from bayplan.webhook.manifests import WebhookAddress
from bayplan.webhook.running import WebhookSettings
from live import bayplan_running
from live.admin import ApiError, path_to, pod, wait_for
from live.open_webhook import CONFIGURATIONS
from live.processes import free_port

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RUNNING = "requiredDuringSchedulingRequiredDuringExecution"


def exclusive(key):
    term = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": key}
    return {"podAntiAffinity": {REQUIRED: [term]}}


@pytest.fixture
async def webhook(kube_server, admin, request):
    """The process; a parameter has additional flags."""
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    await admin.create_namespace("bayplan-system")
    for configuration in WebhookSettings(address=WebhookAddress(url=url), failure_policy="Fail").manifests():
        await admin.create(configuration)
    where = ("--webhook-bind-address", f"127.0.0.1:{port}", "--webhook-url", url)
    more = getattr(request, "param", ())
    yield bayplan_running.process(kube_server, "--webhook", *where, "--no-leader-elect", *more)
    for resource in CONFIGURATIONS:
        await admin.delete(resource, "bayplan")
    await admin.delete_all("secrets", "bayplan-system")


async def rejection(admin, path, obj):
    """Return why the API server rejects the object; empty if it does not, or fails. Nothing is stored."""
    try:
        await admin.request("POST", path, obj, dryRun="All")
    except ApiError as error:
        return "" if "failed calling webhook" in str(error) else str(error)
    return ""


def binding(name, node):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}


async def test_the_webhook_of_the_scheduler_reviews_requests(webhook, admin, namespace):
    await admin.create_nodes(2, cpu="4", labels=lambda n: {HOSTNAME: f"node-{n}"})
    pods = path_to("pods", namespace=namespace)
    cluster_wide = pod("cluster-wide", namespace, affinity=exclusive("topology.kubernetes.io/zone"))
    assert "reaches beyond a node" in await wait_for(lambda: rejection(admin, pods, cluster_wide))

    # Admitted pods are scheduled.
    await admin.create(pod("alone", namespace, scheduler="bayplan", affinity=exclusive(HOSTNAME)))
    node = await wait_for(lambda: admin.node_of("alone", namespace))

    # The limits apply, and pending pods of other schedulers count too.
    await admin.create(pod("other", namespace, scheduler="another", affinity=exclusive(HOSTNAME)))
    limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bayplan-quota"}}
    await admin.create({**limits, "data": {namespace: "{cpu: 8}"}}, namespace="bayplan-system")
    third = pod("third", namespace, scheduler="another", affinity=exclusive(HOSTNAME))
    said = await wait_for(lambda: rejection(admin, pods, third))
    assert "exceeded quota: bayplan-quota, requested: cpu=4, used: cpu=8, limited: cpu=8" in said

    # A bind of another scheduler that violates an execution-time rule is rejected.
    free = {"node-0": "node-1", "node-1": "node-0"}[node]
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}
    rule = json.dumps({"podAntiAffinity": {RUNNING: [term]}})
    await admin.create(pod("web", namespace, scheduler="another", meta={"annotations": {"bayplan.io/affinity": rule}}))
    await admin.create(pod("db", namespace, scheduler="another", meta={"labels": {"app": "db"}}))
    await admin.bind(namespace, "web", free)
    asked = path_to("pods", "db", namespace, "binding")
    said = await wait_for(lambda: rejection(admin, asked, binding("db", free)))
    assert f"of {namespace}/web rejects app=db on its node" in said
    assert not await rejection(admin, asked, binding("db", node))


async def test_with_an_overcommitted_quota_priority_decides(webhook, admin, namespace):
    """An overcommitted quota: three pods may request an exclusive node where there are two."""
    await admin.create_nodes(2, cpu="4", labels=lambda n: {HOSTNAME: f"node-{n}"})
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    await admin.create({**kind, "metadata": {"name": "important"}})
    limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bayplan-quota"}}
    await admin.create({**limits, "data": {namespace: "{cpu: 12}"}}, namespace="bayplan-system")
    ours = {"scheduler": "bayplan", "affinity": exclusive(HOSTNAME), "terminationGracePeriodSeconds": 0}
    pods = path_to("pods", namespace=namespace)

    def fourth():
        return rejection(admin, pods, pod("fourth", namespace, **ours))

    cluster_wide = pod("cluster-wide", namespace, affinity=exclusive("topology.kubernetes.io/zone"))
    await wait_for(lambda: rejection(admin, pods, cluster_wide))  # the webhook is called
    for name in ("first", "second"):
        await admin.create(pod(name, namespace, **ours))
        await wait_for(functools.partial(admin.node_of, name, namespace))
    await admin.create(pod("third", namespace, priorityClassName="important", **ours))
    assert await wait_for(lambda: admin.node_of("third", namespace))
    left = [found["metadata"]["name"] for found in await admin.items("pods", namespace)]
    assert sorted(left) in (["first", "third"], ["second", "third"])

    # A preempted pod no longer counts, so one more is admitted, and then none.
    await admin.create(pod("again", namespace, **ours))
    assert "requested: cpu=4, used: cpu=12, limited: cpu=12" in await wait_for(fourth)


@pytest.mark.parametrize("webhook, charged", [((), 6), (("--quota-charge", "average"), 4)], indirect=["webhook"])
async def test_a_pending_pod_is_charged_as_configured(webhook, charged, admin, namespace):
    await admin.create_nodes(1, cpu="2", prefix="small-")
    await admin.create_nodes(1, cpu="6", prefix="large-")
    limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bayplan-quota"}}
    await admin.create({**limits, "data": {namespace: "{cpu: 1}"}}, namespace="bayplan-system")
    pods, alone = path_to("pods", namespace=namespace), pod("alone", namespace, affinity=exclusive(HOSTNAME))

    async def is_charged():
        return f"requested: cpu={charged}, used: cpu=0, limited: cpu=1" in await rejection(admin, pods, alone)

    assert await wait_for(is_charged)
