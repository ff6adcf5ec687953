"""A real kube-scheduler for tests and benchmarks that compare."""

import pytest

from live.admin import wait_for


async def test_it_places_a_pod(kube_server, admin, namespace):
    await admin.create_nodes(2, labels=lambda number: {"disk": "ssd" if number else "hdd"})
    kube_server.start_scheduler()
    await admin.create_pod("web", namespace, nodeSelector={"disk": "ssd"})
    assert await wait_for(lambda: admin.node_of("web", namespace)) == "node-1"


async def test_it_places_only_the_pods_of_its_name(kube_server, admin, namespace):
    await admin.create_nodes(1)
    kube_server.start_scheduler(
        "left", {"profiles": [{"schedulerName": "left", "plugins": {"score": {"disabled": [{"name": "*"}]}}}]}
    )
    await admin.create_pod("of-the-other", namespace, scheduler="right")
    await admin.create_pod("of-the-one", namespace, scheduler="left")
    await wait_for(lambda: admin.node_of("of-the-one", namespace))
    assert not await admin.node_of("of-the-other", namespace)

    kube_server.start_scheduler("right")

    assert await wait_for(lambda: admin.node_of("of-the-other", namespace)) == "node-0"


@pytest.mark.parametrize("cpu, message", [("5", "1 Insufficient cpu")])
async def test_it_reports_why_a_pod_is_unschedulable(kube_server, admin, namespace, cpu, message):
    await admin.create_nodes(1, cpu="4")
    kube_server.start_scheduler()
    await admin.create_pod("web", namespace, cpu=cpu)

    async def said():
        pod = await admin.get("pods", "web", namespace)
        return [condition["message"] for condition in pod["status"].get("conditions", ()) if "message" in condition]

    assert message in (await wait_for(said))[0]
