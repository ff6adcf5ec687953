"""ReplicaSets without a controller manager: their pods, and a reconciler that recreates missing ones."""

import asyncio
import contextlib
import itertools

from live.objects import pod

HOST = "kubernetes.io/hostname"
NUMBERS = itertools.count(1)


class ReplicaSet:
    """A real ReplicaSet whose pods a test places; `reconciled` does what its controller would."""

    def __init__(self, admin, made, spec):
        self.admin, self.spec = admin, spec
        self.namespace, self.name, self.uid = (made["metadata"][field] for field in ("namespace", "name", "uid"))
        self.replicas = made["spec"]["replicas"]

    @classmethod
    async def create(cls, admin, name, namespace, replicas, **spec):
        """`spec` has fields of its pods. Their grace period is 0, as there is no kubelet to end them."""
        labels, spec = {"app": name}, {"terminationGracePeriodSeconds": 0, "scheduler": "bayplan", **spec}
        template = pod(name, namespace, meta={"labels": labels}, **spec)
        content = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
            },
        }
        return cls(admin, await admin.create(content), spec)

    async def make_pod(self, node=None):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": self.name, "uid": self.uid, "controller": True}
        meta = {"labels": {"app": self.name}, "ownerReferences": [owner]}
        name, where = f"{self.name}-{next(NUMBERS)}", {"nodeName": node} if node else {}
        await self.admin.create_pod(name, self.namespace, meta=meta, **self.spec, **where)
        if node:  # the status that a kubelet would write: budgets protect running, ready pods
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self.admin.patch("pods", name, {"status": status}, self.namespace, subresource="status")
        return name

    async def pods(self):
        """Return name → node of the pods that are not terminating; the node is empty if unbound."""
        return {
            one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in await self._found(terminating=False)
        }

    async def terminating(self):
        """Return the names of the terminating pods."""
        return [one["metadata"]["name"] for one in await self._found(terminating=True)]

    async def _found(self, *, terminating):
        found = await self.admin.items("pods", self.namespace, labelSelector=f"app={self.name}")
        return [one for one in found if ("deletionTimestamp" in one["metadata"]) is terminating]

    @contextlib.asynccontextmanager
    async def reconciled(self):
        """Recreate missing pods during the block."""
        task = asyncio.create_task(self._reconcile())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _reconcile(self):
        while True:
            for _ in range(self.replicas - len(await self.pods())):
                await self.make_pod()
            await asyncio.sleep(0.1)


def preferred_anti_affinity(app):
    """Preferred anti-affinity between the pods of an application, by node."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    weighted = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


async def crowded(admin, namespace):
    """Create three pods with preferred anti-affinity, all on one node of three."""
    await admin.create_nodes(3)
    web = await ReplicaSet.create(admin, "web", namespace, 3, affinity=preferred_anti_affinity("web"))
    for _ in range(3):
        await web.make_pod("node-0")
    return web
