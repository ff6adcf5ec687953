"""Rules that hold while pods run, on a real API server: evictions are real, and budgets are the API server's."""

import json

import pytest

from bayplan.enforcing.planning import Settings
from live.admin import wait_for
from live.bayplan_running import in_process

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
QUICK = Settings(affinity_grace=2, anti_affinity_grace=1, retry_after=1)


def rule(side, key, **labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"bayplan.io/affinity": json.dumps({side: {EXECUTION: [term]}})}


def apart(**labels):
    return rule("podAntiAffinity", HOST, **labels)


def near(**labels):
    return rule("podAffinity", ZONE, **labels)


@pytest.fixture
async def cluster(admin, namespace):
    await admin.create_nodes(3, zones=1)
    for name, value in (("low", 1), ("high", 1000)):
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        await admin.create(body)
    return Cluster(admin, namespace)


class Cluster:
    def __init__(self, admin, namespace):
        self.admin, self.namespace = admin, namespace

    async def run(self, name, node="node-0", *, labels=None, annotations=None, priority="low"):
        meta = {"labels": labels or {}, "annotations": annotations or {}}
        await self.admin.create_pod(
            name,
            self.namespace,
            meta=meta,
            nodeName=node,
            priorityClassName=priority,
            terminationGracePeriodSeconds=0,
        )
        # As its kubelet would say: budgets do not protect what does not run.
        await self.admin.patch("pods", name, {"status": {"phase": "Running"}}, self.namespace, subresource="status")

    async def names(self):
        return sorted(pod["metadata"]["name"] for pod in await self.admin.items("pods", self.namespace))

    async def gone(self, name):
        return name not in await self.names()

    async def notes(self, reason):
        found = await self.admin.items("events.k8s.io/v1/events", self.namespace)
        return [event["note"] for event in found if event["reason"] == reason]


async def test_a_pod_relabelled_into_a_conflict_is_evicted(kube_server, cluster):
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("other")
    async with in_process(kube_server, enforcement=QUICK):
        await cluster.admin.patch("pods", "other", {"metadata": {"labels": {"app": "loud"}}}, cluster.namespace)
        await wait_for(lambda: cluster.gone("other"))
        assert await cluster.names() == ["quiet"]
        (note,) = await wait_for(lambda: cluster.notes("RuleBroken"))
        assert "quiet demands" in note


async def test_at_equal_priority_the_owner_goes(kube_server, cluster):
    await cluster.run("quiet", annotations=apart(app="loud"))
    await cluster.run("loud", labels={"app": "loud"})
    async with in_process(kube_server, enforcement=QUICK):
        await wait_for(lambda: cluster.gone("quiet"))
        assert await cluster.names() == ["loud"]


async def test_a_follower_goes_with_its_partner_but_not_at_once(kube_server, cluster):
    await cluster.run("s2", labels={"app": "s2"})
    await cluster.run("s1", "node-1", annotations=near(app="s2"))
    async with in_process(kube_server, enforcement=QUICK) as running:
        await cluster.admin.delete("pods", "s2", cluster.namespace)
        await wait_for(running.enforcement._tracker.violations)
        await cluster.run("s2", labels={"app": "s2"})  # back within the grace time
        await wait_for(lambda: not running.enforcement._tracker.violations())
        assert await cluster.names() == ["s1", "s2"]
        await cluster.admin.delete("pods", "s2", cluster.namespace)
        await wait_for(lambda: cluster.gone("s1"))


async def test_a_budget_forbids_it(kube_server, cluster):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    budget["metadata"] = {"name": "keep", "namespace": cluster.namespace}
    budget["spec"] = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "loud"}}}
    await cluster.admin.create(budget)
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("loud", labels={"app": "loud"})
    async with in_process(kube_server, enforcement=QUICK):
        assert await wait_for(lambda: cluster.notes("EvictionRefused"))
        assert await cluster.names() == ["loud", "quiet"]
        await cluster.admin.delete("policy/v1/poddisruptionbudgets", "keep", cluster.namespace)
        await wait_for(lambda: cluster.gone("loud"))


async def test_a_dry_run_changes_nothing_and_switching_off_stops_it(kube_server, cluster):
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("loud", labels={"app": "loud"})
    async with in_process(kube_server, enforcement=QUICK, enforcement_dry_run=True) as running:
        await wait_for(lambda: "loud" in str(running.enforcement._told))
        assert await cluster.names() == ["loud", "quiet"]
    async with in_process(kube_server, enforcement=Settings(anti_affinity_grace=1)) as running:
        running.toggle_enforcement()
        await cluster.run("witness", "node-1", labels={"app": "loud"})
        await wait_for(lambda: f"{cluster.namespace}/witness" in running.state.index.records)
        assert running.enforcement.look().evict == ()
        running.toggle_enforcement()
        await wait_for(lambda: cluster.gone("loud"))
        assert await cluster.names() == ["quiet", "witness"]
