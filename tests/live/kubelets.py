"""
Kubelets, played by a script: pods with a node become ready, deleted ones leave.

A real kubelet takes seconds for either, in which controllers and schedulers have long acted. So the script waits until
nothing has changed for a while, then lets all deleted pods leave, and once that has settled too, makes the pods that
started ready.
"""

import asyncio
import datetime as dt
import itertools

KINDS = ("pods", "apps/v1/deployments", "apps/v1/replicasets", "apps/v1/statefulsets", "apps/v1/daemonsets")
QUIET, TICK = 0.8, 0.1  # seconds
MAX_ROUNDS = 200
# Pods of a real cluster became ready at different times, long ago. Times of pods that became ready in the same second are
# equal, and then it is left to chance which of them a ReplicaSet deletes first.
AGE = dt.timedelta(hours=1)


class Kubelets:
    """The kubelets of all nodes of one API server."""

    def __init__(self, admin):
        self.admin = admin
        self.lost = set()  # the nodes whose kubelets do nothing any more
        self.quiet = QUIET
        self.seconds = itertools.count()

    async def settle(self):
        """Play the kubelets until nothing moves any more."""
        for _ in range(MAX_ROUNDS):
            pods = [pod for pod in await self._quiet_pods() if pod["spec"].get("nodeName", self) not in self.lost]
            leaving = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
            starting = [pod for pod in pods if pod["spec"].get("nodeName") and not is_ready(pod)]
            if leaving:
                await asyncio.gather(*(self._remove(pod) for pod in leaving))
            elif starting:
                for pod in starting:
                    await self._make_ready(pod)
            else:
                return
        raise AssertionError(f"pods still move after {MAX_ROUNDS} rounds")

    async def lose(self, node, taints):
        """The node is unreachable from now on; its pods are not ready, as the node controller says of them."""
        self.lost.add(node)
        await self.admin.patch("nodes", node, {"spec": {"taints": taints}})
        for pod in await self.admin.items("pods"):
            if pod["spec"].get("nodeName") == node:
                lost = [{**one, **({"status": "False"} if one["type"] == "Ready" else {})}
                        for one in pod["status"].get("conditions", ())]  # fmt: skip
                meta, status = pod["metadata"], {"status": {"conditions": lost}}
                await self.admin.patch("pods", meta["name"], status, meta["namespace"], subresource="status")
        await self.settle()

    async def _quiet_pods(self):
        """The pods, once nothing has changed for a while."""
        seen, since = None, 0.0
        while True:
            lists = [await self.admin.items(kind) for kind in KINDS]
            versions = [
                (one["metadata"]["uid"], one["metadata"]["resourceVersion"]) for found in lists for one in found
            ]
            now = asyncio.get_running_loop().time()
            if versions != seen:
                seen, since = versions, now
            elif now - since >= self.quiet:
                return lists[0]
            await asyncio.sleep(TICK)

    async def _remove(self, pod):
        await self.admin.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"], grace=0)

    async def _make_ready(self, pod):
        since = dt.datetime.now(dt.UTC) - AGE + dt.timedelta(seconds=next(self.seconds))
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": since.strftime("%Y-%m-%dT%H:%M:%SZ")}
            for kind in ("ContainersReady", "Ready")
        ]
        status = {"phase": "Running", "conditions": [*pod["status"].get("conditions", ()), *conditions]}
        meta = pod["metadata"]
        await self.admin.patch("pods", meta["name"], {"status": status}, meta["namespace"], subresource="status")


def is_ready(pod):
    conditions = pod["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
