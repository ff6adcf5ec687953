"""Plays the steps of a timeline on a real API server: as kubectl would, and as machines that fail."""

import asyncio
import datetime as dt

from live.admin import ApiError
from live.kubelets import Kubelets

NAMESPACE = "shop"
RESOURCES = {
    "Deployment": "apps/v1/deployments", "StatefulSet": "apps/v1/statefulsets", "DaemonSet": "apps/v1/daemonsets",
    "PodDisruptionBudget": "policy/v1/poddisruptionbudgets", "PriorityClass": "scheduling.k8s.io/v1/priorityclasses",
    "Node": "nodes", "Pod": "pods",
}  # fmt: skip
UNREACHABLE = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
MAX_DRAIN_ROUNDS = 10


class TimelinePlayer:
    """One cluster, on which one timeline after another is played."""

    def __init__(self, admin, quiet=None):
        self.admin, self.kubelets = admin, Kubelets(admin)
        self.kubelets.quiet = quiet or self.kubelets.quiet

    async def begin(self, objects):
        for one in objects:
            await self.admin.create(one)
        await self.kubelets.settle()

    async def play(self, step):
        """Carry out one step, and wait until nothing moves any more."""
        for verb, what in step.items():
            await getattr(self, f"_{verb}")(what)
            await self.kubelets.settle()

    async def where(self):
        """How many pods of each workload are on each node; on "" those that wait. Terminating ones are counted too."""
        found = {}
        for pod in await self.admin.items("pods", NAMESPACE):
            place = (workload_of(pod["metadata"]["name"]), pod["spec"].get("nodeName", ""))
            found[place] = found.get(place, 0) + 1
        return found

    async def clear(self):
        """Delete everything, what controllers would recreate after its controller."""
        self.kubelets.lost.clear()
        for kinds in (("Deployment", "StatefulSet", "DaemonSet", "PodDisruptionBudget"), ()):
            for kind in kinds:
                await self.admin.delete_all(RESOURCES[kind], NAMESPACE)
            if not kinds:
                await self.admin.delete_all("apps/v1/replicasets", NAMESPACE)
            await self.kubelets.settle()
        await self.admin.delete_all("pods", NAMESPACE)
        await self.admin.delete_all("apps/v1/controllerrevisions", NAMESPACE)
        await self.admin.delete_all("nodes")
        for one in await self.admin.items(RESOURCES["PriorityClass"]):
            if not one["metadata"]["name"].startswith("system-"):
                await self.admin.delete(RESOURCES["PriorityClass"], one["metadata"]["name"])
        await self.kubelets.settle()

    # Verbs

    async def _scale(self, replicas):
        for name, n in replicas.items():
            await self._patch(name, {"spec": {"replicas": n}})

    async def _restart(self, name):
        stamp = dt.datetime.now(dt.UTC).isoformat()
        meta = {"annotations": {"kubectl.kubernetes.io/restartedAt": stamp}}
        await self._patch(name, {"spec": {"template": {"metadata": meta}}})

    async def _apply(self, written):
        try:
            await self.admin.create(written)
        except ApiError as error:
            if error.status != 409:
                raise
            kind, name = written["kind"], written["metadata"]["name"]
            await self.admin.patch(RESOURCES[kind], name, {"spec": written["spec"]}, NAMESPACE, how="strategic")

    async def _delete(self, named):
        kind, name = named.split("/")
        await self.admin.delete(RESOURCES[kind], name, NAMESPACE, propagationPolicy="Background")

    async def _relabel(self, labels):
        for named, changed in labels.items():
            kind, name = named.split("/")
            await self.admin.patch(
                f"{kind}s", name, {"metadata": {"labels": changed}}, NAMESPACE if kind == "pod" else None
            )

    async def _cordon(self, named):
        taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
        await self._patch_node(named, {"unschedulable": True, "taints": taints})

    async def _uncordon(self, named):
        await self._patch_node(named, {"unschedulable": None, "taints": None})

    async def _taint(self, taints):
        for named, text in taints.items():
            key, _, rest = text.removesuffix("-").partition("=")
            value, _, effect = rest.partition(":")
            added = None if text.endswith("-") else [{"key": key, "value": value, "effect": effect}]
            await self._patch_node(named, {"taints": added})

    async def _drain(self, named):
        await self._cordon(named)
        for _ in range(MAX_DRAIN_ROUNDS):
            pods = [
                pod
                for pod in await self.admin.items("pods", NAMESPACE)
                if pod["spec"].get("nodeName") == named.split("/")[1]
            ]
            refused = [await self._evict(pod["metadata"]["name"]) for pod in pods]
            await self.kubelets.settle()
            if not any(refused):
                return

    async def _evict(self, name):
        """Whether the eviction is refused."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
        try:
            await self.admin.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction", body)
        except ApiError as error:
            if error.status != 429:
                raise
            return True
        return False

    async def _lose(self, named):
        for name in await self._chosen(named):
            await self.kubelets.lose(name, UNREACHABLE)

    async def _recover(self, named):
        for name in await self._chosen(named):
            self.kubelets.lost.discard(name)
            await self._patch_node(f"node/{name}", {"taints": None})

    async def _chosen(self, named):
        if named.startswith("node/"):
            return [named.removeprefix("node/")]
        key, _, value = named.partition("=")
        return [
            one["metadata"]["name"]
            for one in await self.admin.items("nodes")
            if one["metadata"]["labels"].get(key) == value
        ]

    async def _patch_node(self, named, spec):
        await self.admin.patch("nodes", named.removeprefix("node/"), {"spec": spec})

    async def _patch(self, named, change):
        kind, _, name = named.rpartition("/")
        await self.admin.patch(RESOURCES[kind or "Deployment"], name, change, NAMESPACE)


def workload_of(pod_name):
    """The first word of the name of a pod."""
    return pod_name.partition("-")[0]


async def quickly(player, objects, steps):
    """Play a whole timeline; where the pods are in the end."""
    await player.begin(objects)
    for step in steps:
        await player.play(step)
    found = await player.where()
    await player.clear()
    await asyncio.sleep(0)
    return found
