"""ReplicaSets without a controller manager: pods that belong to one, and a keeper that makes missing ones again."""

import asyncio
import contextlib
import itertools

from live.objects import pod

HOST = "kubernetes.io/hostname"
NUMBERS = itertools.count(1)


class ReplicaSet:
    """A real ReplicaSet whose pods a test places by hand; `keep` does what its controller would."""

    def __init__(self, admin, made, spec):
        self.admin, self.spec = admin, spec
        self.namespace, self.name, self.uid = (made["metadata"][field] for field in ("namespace", "name", "uid"))
        self.replicas = made["spec"]["replicas"]

    @classmethod
    async def create(cls, admin, name, namespace, replicas, **spec):
        """`spec` are fields of its pods. They end at once when told to: nobody here would end them later."""
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
        if node:  # as its kubelet would say: budgets protect what runs and is ready
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self.admin.patch("pods", name, {"status": status}, self.namespace, subresource="status")
        return name

    async def pods(self):
        """Name → node, of those that are not told to end; empty while it has none."""
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in await self._found(ending=False)}

    async def ending(self):
        """The names of those that are told to end and have not."""
        return [one["metadata"]["name"] for one in await self._found(ending=True)]

    async def _found(self, *, ending):
        found = await self.admin.items("pods", self.namespace, labelSelector=f"app={self.name}")
        return [one for one in found if ("deletionTimestamp" in one["metadata"]) is ending]

    @contextlib.asynccontextmanager
    async def kept(self):
        """While the block lasts, there are soon as many pods as there should be."""
        task = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _keep(self):
        while True:
            for _ in range(self.replicas - len(await self.pods())):
                await self.make_pod()
            await asyncio.sleep(0.1)


def rather_apart(app):
    """A wish that no two pods of the application share a node."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    wish = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


async def crowded(admin, namespace):
    """Three pods that would rather stand apart, all on one node of three."""
    await admin.create_nodes(3)
    web = await ReplicaSet.create(admin, "web", namespace, 3, affinity=rather_apart("web"))
    for _ in range(3):
        await web.make_pod("node-0")
    return web
