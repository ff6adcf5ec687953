"""Writes on a real API server have the observed uid or version as a precondition."""

import contextlib

import pytest

from bayplan.kube_api import connect
from bayplan.live.cluster_writer import ApiServerWriter, ClaimRef, PodGoneError, PodRef, RejectedError
from live.test_running import claim, selected_node, volume


@contextlib.asynccontextmanager
async def writer(kube_server):
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        yield ApiServerWriter(connection)


async def test_a_changed_volume_is_not_bound_to_another_claim(kube_server, admin, namespace):
    await admin.create(volume("disk", "local", node="node-1"))
    seen = (await admin.get("persistentvolumes", "disk"))["metadata"]["resourceVersion"]
    theirs = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": "theirs", "uid": "u-1"}
    await admin.patch("persistentvolumes", "disk", {"spec": {"claimRef": theirs}})
    async with writer(kube_server) as api:
        ours = ClaimRef(namespace, "ours", "u-2")
        with pytest.raises(RejectedError):
            await api.reserve_volume("disk", seen, ours)
        assert (await admin.get("persistentvolumes", "disk"))["spec"]["claimRef"]["name"] == "theirs"
        now = (await admin.get("persistentvolumes", "disk"))["metadata"]["resourceVersion"]
        await api.reserve_volume("disk", now, ours)
        with pytest.raises(PodGoneError):
            await api.reserve_volume("no-disk", now, ours)
    assert (await admin.get("persistentvolumes", "disk"))["spec"]["claimRef"]["name"] == "ours"


async def test_a_recreated_claim_is_another_claim(kube_server, admin, namespace):
    await admin.create(claim("data", namespace, "late"))
    uid = (await admin.get("persistentvolumeclaims", "data", namespace))["metadata"]["uid"]
    async with writer(kube_server) as api:
        with pytest.raises(RejectedError):
            await api.select_node(ClaimRef(namespace, "data", "11111111-1111-1111-1111-111111111111"), "node-1")
        assert not await selected_node(admin, "data", namespace)
        await api.select_node(ClaimRef(namespace, "data", uid), "node-1")
    assert await selected_node(admin, "data", namespace) == "node-1"


async def test_a_recreated_pod_is_another_pod(kube_server, admin, namespace):
    """Everything that was decided about a pod is refused for the next pod of its name."""
    await admin.create_nodes(1)
    await admin.create_pod("web", namespace)
    before = PodRef(namespace, "web", (await admin.get("pods", "web", namespace))["metadata"]["uid"])
    await admin.delete("pods", "web", namespace)
    await admin.create_pod("web", namespace)
    async with writer(kube_server) as api:
        for write in (api.bind(before, "node-0"), api.delete(before), api.evict(before), api.patch_status(before, {})):
            with pytest.raises(RejectedError):
                await write
        after = await admin.get("pods", "web", namespace)
        assert "nodeName" not in after["spec"]
        await api.bind(PodRef(namespace, "web", after["metadata"]["uid"]), "node-0")
    assert await admin.node_of("web", namespace) == "node-0"
