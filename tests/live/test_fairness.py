"""Labels that change all the time, and a large pod among small ones: on kube-scheduler and on Bayplan."""

import time
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from live import bayplan_running
from live.admin import wait_for

N_REPLACED = 40  # small pods that come after the large one


class SmallPods:
    """Four pods of one cpu on a node with four; the oldest is replaced by a new one, again and again."""

    def __init__(self, admin, namespace, scheduler):
        self.admin, self.namespace, self.scheduler = admin, namespace, scheduler
        self.names, self.serial = [], 0

    async def create(self):
        self.serial += 1
        self.names.append(f"small-{self.serial}")
        await self.admin.create_pod(self.names[-1], self.namespace, scheduler=self.scheduler, cpu="1")

    async def fill(self):
        for _ in range(4):
            await self.create()
            await wait_for(lambda: self.admin.node_of(self.names[-1], self.namespace))

    async def replace_oldest(self):
        await self.admin.delete("pods", self.names.pop(0), self.namespace)
        await self.create()

    async def newest_is_bound(self):
        return await self.admin.node_of(self.names[-1], self.namespace)


async def starve(admin, namespace, scheduler):
    """Whether the large pod is placed while every small one is."""
    small = SmallPods(admin, namespace, scheduler)
    await small.fill()
    await admin.create_pod("large", namespace, scheduler=scheduler, cpu="3")
    for _ in range(N_REPLACED):
        await small.replace_oldest()
        await wait_for(small.newest_is_bound)
    return await admin.node_of("large", namespace)


@pytest.mark.timeout(180)
async def test_kube_scheduler_starves_a_large_pod(kube_server, admin, namespace):
    await admin.create_nodes(1, cpu="4")
    kube_server.start_scheduler()
    assert not await starve(admin, namespace, "default-scheduler")


@pytest.mark.timeout(180)
async def test_so_does_bayplan_by_default(kube_server, admin, namespace):
    await admin.create_nodes(1, cpu="4")
    bayplan_running.process(kube_server, "--no-leader-elect")
    assert not await starve(admin, namespace, "bayplan")


@pytest.mark.timeout(180)
async def test_a_reserved_node_ends_the_wait(kube_server, admin, namespace):
    await admin.create_nodes(1, cpu="4")
    bayplan_running.process(kube_server, "--no-leader-elect", "--reserve-after", "1s")
    small = SmallPods(admin, namespace, "bayplan")
    await small.fill()
    await admin.create_pod("large", namespace, scheduler="bayplan", cpu="3")

    async def reserved():
        return (await admin.get("pods", "large", namespace))["status"].get("nominatedNodeName")

    assert await wait_for(reserved) == "node-0"
    for _ in range(3):
        await small.replace_oldest()
    assert await wait_for(lambda: admin.node_of("large", namespace)) == "node-0"

    async def told():
        events = await admin.items("events", namespace)
        return "NodeReserved" in {event["reason"] for event in events if event["involvedObject"]["name"] == "large"}

    assert await wait_for(told)


@pytest.mark.timeout(180)
async def test_a_tenant_who_changes_a_label_all_the_time_has_the_pod_tried_no_more_often(kube_server, admin, namespace):
    await admin.create_nodes(1, cpu="4")
    running = bayplan_running.process(kube_server, "--no-leader-elect")
    await admin.create_pod("large", namespace, scheduler="bayplan", cpu="5")
    await wait_for(lambda: failed_attempts(running))
    began = time.monotonic()
    for turn in range(50):
        await admin.patch("pods", "large", {"metadata": {"labels": {"turn": str(turn)}}}, namespace)
    n_attempts = failed_attempts(running)
    assert n_attempts <= 2 + (time.monotonic() - began), "the backoff is at least a second"


def failed_attempts(running):
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/metrics") as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [sample for family in families for sample in family.samples]
    return sum(
        sample.value
        for sample in samples
        if sample.name == "scheduler_schedule_attempts_total" and sample.labels["result"] == "unschedulable"
    )
