"""
Gangs on a real API server, and rounds with them: two that fit one at a time, and a kill -9 between two binds.

`make group-rounds` plays many and writes what became of each into benchmarks/group-rounds.json.
"""

import asyncio
import collections
import json
import pathlib
import sys
import time

from live import bayplan_running
from live.admin import Admin, wait_for
from live.kube_server import KubeServer, Options
from live.objects import pod

RACK = "example.com/rack"
POD_GROUPS = Options(
    flags=(
        "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
    )
)
RECORD = pathlib.Path(__file__).parents[2] / "benchmarks" / "group-rounds.json"
GONE_AT_ONCE = {"terminationGracePeriodSeconds": 0}  # when deleted: there are no kubelets
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": "none", "controller": True}


class Gangs:
    """Gangs of pods in the namespace `gangs`."""

    def __init__(self, admin, server):
        self.admin, self.server = admin, server

    async def create_racks(self, n, *, nodes, cpu):
        """Nodes in racks; their names say where they are."""
        written = []
        for rack in range(n):
            for number in range(nodes):
                name = f"r{rack}-n{number}"
                labels = {"kubernetes.io/hostname": name, RACK: f"r{rack}"}
                allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
                status = {"allocatable": allocatable, "capacity": allocatable}
                meta = {"name": name, "labels": labels}
                written.append({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status})
        await self.admin.create_all(written)

    async def declare(self, name, least, topology=None):
        constraints = {"schedulingConstraints": {"topology": [{"key": topology}]}} if topology else {}
        await self.admin.create(
            {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": {"name": name, "namespace": "gangs"},
                "spec": {"schedulingPolicy": {"gang": {"minCount": least}}, **constraints},
            }
        )

    async def create_members(self, name, n, *, first=0, owned=False, **spec):
        members = []
        for number in range(first, first + n):
            content = pod(f"{name}-{number}", "gangs", scheduler="bayplan", cpu="1", **GONE_AT_ONCE, **spec)
            content["spec"]["schedulingGroup"] = {"podGroupName": name}
            if owned:
                content["metadata"]["ownerReferences"] = [OWNER]
            members.append(content)
        await self.admin.create_all(members, namespace="gangs")

    async def create(self, name, n, *, topology=None, owned=False, **spec):
        await self.declare(name, n, topology)
        await self.create_members(name, n, owned=owned, **spec)

    async def nodes(self, name):
        """The nodes of the bound members, by pod."""
        items = await self.admin.items("pods", "gangs")
        bound = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in items}
        return {key: node for key, node in bound.items() if node and key.rpartition("-")[0] == name}

    async def all_bound(self, name, n):
        return len(await self.nodes(name)) == n

    async def racks_if_complete(self, name, n):
        """The rack of each member once all are bound, else nothing."""
        found = await self.nodes(name)
        return [node.partition("-")[0] for node in found.values()] if len(found) == n else []

    async def delete(self, name):
        """Delete the members and the PodGroup of a gang, if they exist."""
        for one in await self.admin.items("pods", "gangs"):
            if one["metadata"]["name"].rpartition("-")[0] == name:
                await self.admin.delete("pods", one["metadata"]["name"], "gangs")
        await self.admin.delete("scheduling.k8s.io/v1alpha2/podgroups", name, "gangs")


async def one_at_a_time(gangs, serial):
    """
    Two gangs that need all room each, with members that come in turns: one runs, then the other.

    Returns the seconds until each ran.
    """
    red, blue, n = f"red{serial}", f"blue{serial}", 16
    for name in (red, blue):
        await gangs.declare(name, n)
    began = time.monotonic()
    for number in range(n):
        for name in (red, blue):
            await gangs.create_members(name, 1, first=number)

    async def first_complete():
        counts = {name: len(await gangs.nodes(name)) for name in (red, blue)}
        assert min(counts.values()) == 0, f"both hold room: {counts}"
        return next((name for name, count in counts.items() if count == n), None)

    first = await wait_for(first_complete)
    seconds = [time.monotonic() - began]
    second = blue if first == red else red
    assert not await gangs.nodes(second)
    await gangs.delete(first)
    await wait_for(lambda: gangs.all_bound(second, n))
    seconds.append(time.monotonic() - began)
    await gangs.delete(second)
    return [round(one, 2) for one in seconds]


async def killed_between_binds(gangs, serial, *, take_room=False):
    """
    Kill the scheduler after the first binds of a gang of 24 in one rack; another one completes or releases it.

    With `take_room`, other pods fill the racks while no scheduler runs. Returns what became of the gang.
    """
    name, n = f"gang{serial}", 24
    scheduler = bayplan_running.process(gangs.server, "--no-leader-elect", "--kube-api-qps=5", "--kube-api-burst=1")
    await gangs.create(name, n, topology=RACK, owned=True)

    async def begun():
        return await gangs.nodes(name)

    await wait_for(begun)
    scheduler.kill()
    bound = await gangs.nodes(name)
    assert 0 < len(bound) < n, f"not between two binds: {len(bound)} are bound"
    if take_room:
        await _fill(gangs, serial)
    options = ["--group-timeout", "5s"] if take_room else []
    scheduler = bayplan_running.process(gangs.server, "--no-leader-elect", *options)

    async def outcome():
        now = await gangs.nodes(name)
        return "complete" if len(now) == n else "released" if not now else ""

    found = await wait_for(outcome)
    racks = await gangs.racks_if_complete(name, n)
    assert len(set(racks)) <= 1
    scheduler.kill()
    await gangs.delete(name)
    return found


async def _fill(gangs, serial):
    """Bind a pod of 5 of 8 cpu to every node, so that no gang of 24 fits in a rack."""
    for node in await gangs.admin.items("nodes"):
        name = node["metadata"]["name"]
        await gangs.admin.create(pod(f"filler{serial}-{name}", "gangs", cpu="5", nodeName=name))


async def play(n):
    """Play `n` rounds of each kind on one server; returns what became of each round, and the first failure."""
    found = {"one_at_a_time": [], "killed": [], "killed_and_room_taken": []}
    with KubeServer(POD_GROUPS) as server:
        async with Admin.of(server) as admin:
            await admin.create_namespace("gangs")
            gangs = Gangs(admin, server)
            await gangs.create_racks(1, nodes=4, cpu="4")
            scheduler = bayplan_running.process(server, "--no-leader-elect")
            for number in range(n):
                found["one_at_a_time"].append(await one_at_a_time(gangs, number))
            scheduler.kill()
            await admin.delete_all("nodes")
            await gangs.create_racks(2, nodes=4, cpu="8")
            for number in range(n):
                found["killed"].append(await killed_between_binds(gangs, f"a{number}"))
                found["killed_and_room_taken"].append(await killed_between_binds(gangs, f"b{number}", take_room=True))
                await admin.delete_all("pods", "gangs")
    return found


def main(n):
    found = asyncio.run(play(n))
    counts = {
        kind: dict(collections.Counter(map(str, rounds))) for kind, rounds in found.items() if kind != "one_at_a_time"
    }
    seconds = found["one_at_a_time"]
    counts["one_at_a_time"] = {"rounds": len(seconds), "seconds_until_each_gang_ran": seconds}
    RECORD.write_text(json.dumps({"rounds": n, **counts}, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(RECORD.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(int(sys.argv[1]))
