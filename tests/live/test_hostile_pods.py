"""A pod of a megabyte, whatever it has too much of, holds up no other pod and costs nobody the leadership."""

import pytest

from live import bayplan_running, hostile_pods
from live.admin import wait_for

N_CONSTRAINTS = 8000


async def lease_of(admin):
    """The lease once it is held: a process is ready before it leads, as a standby is."""

    async def held():
        leases = await admin.items("coordination.k8s.io/v1/leases", "kube-system")
        specs = [one["spec"] for one in leases if one["metadata"]["name"] == "bayplan"]
        return next((spec for spec in specs if spec.get("holderIdentity")), None)

    return await wait_for(held)


async def create_hostile(admin, namespace, kind, n):
    meta = {"labels": {"app": "hostile"}}
    await admin.create_pod(f"hostile-{kind}", namespace, scheduler="bayplan", meta=meta, **hostile_pods.SPECS[kind](n))


async def test_others_are_scheduled_beside_pods_that_are_set_aside(kube_server, admin, namespace):
    await admin.create_nodes(50)
    bayplan_running.process(kube_server)
    before = await lease_of(admin)
    for kind in hostile_pods.SPECS:
        await create_hostile(admin, namespace, kind, N_CONSTRAINTS)
        await admin.create_pod(f"beside-{kind}", namespace, scheduler="bayplan")
        await wait_for(lambda kind=kind: admin.node_of(f"beside-{kind}", namespace))

    async def notes():
        events = await admin.items("events", namespace)
        named = {event["involvedObject"]["name"]: event["message"] for event in events}
        return all(
            "scheduling constraints, more than" in named.get(f"hostile-{kind}", "") for kind in hostile_pods.SPECS
        )

    await wait_for(notes)
    after = await lease_of(admin)
    assert (after["holderIdentity"], after["leaseTransitions"]) == (
        before["holderIdentity"],
        before["leaseTransitions"],
    )


@pytest.mark.parametrize("kind", ["anti-affinity", "node-affinity", "spread"])
async def test_without_a_limit_such_a_pod_is_placed_and_others_too(kube_server, admin, namespace, kind):
    await admin.create_nodes(50)
    bayplan_running.process(kube_server, "--max-pod-constraints", "0")
    await create_hostile(admin, namespace, kind, N_CONSTRAINTS)
    await admin.create_pod("beside", namespace, scheduler="bayplan")
    for name in (f"hostile-{kind}", "beside"):
        await wait_for(lambda name=name: admin.node_of(name, namespace))


async def test_changes_of_a_large_pod_that_runs_are_seen_and_hold_up_nobody(kube_server, admin, namespace):
    await admin.create_nodes(2)
    bayplan_running.process(kube_server)
    before = await lease_of(admin)
    labels = {"labels": {"app": "a"}}
    spec = hostile_pods.SPECS["anti-affinity"](2000)
    await admin.create_pod("large", namespace, scheduler="bayplan", meta=labels, nodeName="node-0", **spec)
    for i in range(20):
        await admin.patch("pods", "large", {"metadata": {"labels": {"round": f"r{i}"}}}, namespace)
    await admin.patch("pods", "large", {"metadata": {"labels": {"app": "b"}}}, namespace)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "b"}}}
    near = {"podAffinity": {hostile_pods.REQUIRED: [term]}}
    await admin.create_pod("beside", namespace, scheduler="bayplan")
    await admin.create_pod("near", namespace, scheduler="bayplan", affinity=near)
    await wait_for(lambda: admin.node_of("beside", namespace))
    assert await wait_for(lambda: admin.node_of("near", namespace)) == "node-0"
    after = await lease_of(admin)
    assert after["leaseTransitions"] == before["leaseTransitions"]
