"""A cluster on a real API server whose pods have execution-time rules, for tests that violate them."""

import json

from bayplan.enforcing.planning import EnforcementSettings
from live.objects import pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
QUICK = EnforcementSettings(affinity_grace=2, anti_affinity_grace=1, retry_after=1)
PRIORITIES = {"low": 1, "high": 1000}


def rule(side, key, namespaces=None, **labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    if namespaces:
        term["namespaceSelector"] = {"matchLabels": namespaces}
    return {"bayplan.io/affinity": json.dumps({side: {EXECUTION: [term]}})}


def apart(key=HOST, **labels):
    return rule("podAntiAffinity", key, **labels)


def near(**labels):
    return rule("podAffinity", ZONE, **labels)


class Cluster:
    """One namespace, in which the test marks pods as running: there is no kubelet."""

    def __init__(self, admin, namespace):
        self.admin, self.namespace = admin, namespace

    async def set_up(self):
        for name, value in PRIORITIES.items():
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            await self.admin.create({**body, "value": value})
        return self

    async def run(self, name, node="node-0", **options):
        """Create a running pod on a node."""
        await self.make(name, nodeName=node, **options)
        # The status that a kubelet would write: budgets protect only running pods.
        await self.admin.patch("pods", name, {"status": {"phase": "Running"}}, self.namespace, subresource="status")

    async def make(self, name, **options):
        await self.admin.create(self.manifest(name, **options))

    def manifest(self, name, *, labels=None, annotations=None, finalizers=(), priority="low", **options):
        meta = {"labels": labels or {}, "annotations": annotations or {}, "finalizers": list(finalizers)}
        spec = {"priorityClassName": priority, "terminationGracePeriodSeconds": 0}
        return pod(name, self.namespace, meta=meta, **spec, **options)

    async def end(self, name):
        await self.admin.delete("pods", name, self.namespace)

    async def relabel(self, name, **labels):
        await self.admin.patch("pods", name, {"metadata": {"labels": labels}}, self.namespace)

    def key(self, name):
        return f"{self.namespace}/{name}"

    async def names(self):
        return sorted(pod["metadata"]["name"] for pod in await self.admin.items("pods", self.namespace))

    async def gone(self, name):
        return name not in await self.names()

    async def terminating(self):
        """Return the terminating pods."""
        found = await self.admin.items("pods", self.namespace)
        return [pod["metadata"]["name"] for pod in found if "deletionTimestamp" in pod["metadata"]]

    async def notes(self, reason):
        found = await self.admin.items("events.k8s.io/v1/events", self.namespace)
        return [event["note"] for event in found if event["reason"] == reason]
