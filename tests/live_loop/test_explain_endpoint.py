"""The explain endpoint answers from a copy of the index while the scheduler goes on placing pods."""

import asyncio
import json

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine.engine import Engine
from bayplan.explaining import explanation
from bayplan.explaining.peer_names import PeerNames
from bayplan.live import explain_endpoint
from bayplan.live.cluster_writer import RejectedError
from bayplan.live.explain_endpoint import BindingExplainEndpoint, PodExplainEndpoint
from bayplan.mapping import pods
from bayplan.placing import fleet_fixes
from bayplan.rules import fleet_profile, profiles
from bayplan.wire.controllers import Service
from bayplan.wire.pods import Pod
from bayplan.writing import explanations
from live import fleets
from live_loop.fleet_simulated import FleetSimulation
from live_loop.simulated import Simulation, apart, convert


@pytest.fixture
def cluster():
    simulation = Simulation()
    for i in range(3):
        simulation.add_node(f"n{i}")
    return simulation


def endpoint_of(cluster, *, show_all=True):
    rules = profiles.pod_rules()

    async def find_pod(namespace, name):
        record = cluster.state.index.records.get(f"{namespace}/{name}")
        if record is not None:
            return record.workload
        written = cluster.pods.get(f"{namespace}/{name}")
        return pods.workload_of(convert(written, Pod)) if written is not None else None

    state = cluster.state
    return PodExplainEndpoint(
        state.index,
        {"bayplan": rules},
        find_pod,
        state.spread_context.current,
        state.queue.nominations.competing_with,
        names=PeerNames(show_all=show_all),
        group_of=cluster.parts.groups.of_pending,
    )


async def asked(client, pod):
    response = await client.get("/explain", params={"pod": pod} if pod else {})
    text = await response.text()
    return json.loads(text) if response.status == 200 else (response.status, text)


def client_of(endpoint):
    app = web.Application()
    app.router.add_get(explain_endpoint.PATH, endpoint.respond)
    return TestClient(TestServer(app))


async def test_a_pending_pod_is_explained_as_by_the_command(cluster):
    for i in range(4):
        cluster.add_pod(f"web-{i}", labels={"app": "web"}, affinity=apart(app="web"))
    await cluster.settle()
    endpoint = endpoint_of(cluster)
    async with client_of(endpoint) as client:
        found = await asked(client, "web/web-3")
        running = await asked(client, "web/web-0")
    assert found["message"].startswith("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.")
    workload = pods.workload_of(convert(cluster.pods["web/web-3"], Pod))
    same = explanations.document(explanation.explain(workload, Engine(cluster.state.index, profiles.pod_rules())))
    assert found == json.loads(json.dumps(same))
    assert running["current"] == cluster.pods["web/web-0"]["spec"]["nodeName"]


async def test_a_bound_pod_is_explained_as_its_controller_would_recreate_it(cluster):
    """The large node has more free resources, but also the other pods of the Service."""
    cluster.add_node("large", cpu="16")
    for i in range(2):
        cluster.add_pod(f"web-{i}", labels={"app": "web"}, cpu="100m", node="large")
    cluster.add_pod("web-9", labels={"app": "web"}, cpu="100m", node="n0")
    await cluster.settle()
    async with client_of(endpoint_of(cluster)) as client:
        alone = await asked(client, "web/web-9")
        written = {"metadata": {"name": "web", "namespace": "web"}, "spec": {"selector": {"app": "web"}}}
        cluster.state.spread_context.put_service(convert(written, Service))
        spread = await asked(client, "web/web-9")
    assert (alone["current"], alone["target"]) == ("n0", "large")
    assert spread["current"] == "n0"
    assert spread["target"] in ("n0", "n1", "n2")


async def test_pods_of_other_namespaces_are_named_only_if_configured(cluster):
    for i in range(3):
        cluster.add_pod(f"vault-{i}", namespace="bank", labels={"app": "web"}, node=f"n{i}")
    term = {"labelSelector": {}, "namespaces": ["bank"], "topologyKey": "kubernetes.io/hostname"}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.add_pod("new", affinity=alone)
    await cluster.settle()
    async with client_of(endpoint_of(cluster, show_all=False)) as client:
        hidden = await asked(client, "web/new")
    async with client_of(endpoint_of(cluster)) as client:
        shown = await asked(client, "web/new")
    assert "vault" not in json.dumps(hidden)
    assert hidden["verdicts"]["n0"]["failures"][0]["peers"] == ["a pod of another namespace"]
    assert "move a pod of another namespace away" in [fix["change"] for fix in hidden["fixes"]]
    assert shown["verdicts"]["n0"]["failures"][0]["peers"] == ["bank/vault-0"]
    assert hidden["message"] == shown["message"]


async def test_the_copy_follows_the_cluster(cluster):
    cluster.add_pod("big", cpu="8")
    await cluster.settle()
    async with client_of(endpoint_of(cluster)) as client:
        before = await asked(client, "web/big")
        cluster.add_node("large", cpu="16")
        await cluster.settle()
        after = await asked(client, "web/big")
    assert (before["target"], after["target"]) == ("", "large")


async def test_explaining_and_placing_go_on_side_by_side(cluster):
    """Each answer counts a whole number of placements: those that the index once had together."""
    for i in range(60):
        cluster.add_node(f"m{i:02}")
    cluster.add_pod("lone", labels={"app": "web"}, cpu="100", affinity=apart(app="web"))
    async with client_of(endpoint_of(cluster)) as client:
        counts = []
        for i in range(60):
            cluster.add_pod(f"web-{i}", labels={"app": "web"}, affinity=apart(app="web"))
            request = asyncio.create_task(asked(client, "web/lone"))
            while not request.done():
                cluster.scheduler.step()
                await asyncio.sleep(0)
            verdicts = request.result()["verdicts"]
            counts.append(sum(any(f["rule"] == "pod-affinity" for f in v["failures"]) for v in verdicts.values()))
        await cluster.settle()
        last = await asked(client, "web/lone")
    assert counts == sorted(counts)
    assert counts[-1] > 0
    assert sum(any(f["rule"] == "pod-affinity" for f in v["failures"]) for v in last["verdicts"].values()) == 60


async def test_capacity_for_nominated_pods_is_not_offered(cluster):
    """`vip` is nominated to the only large node: what is free there after its victim is gone belongs to `vip`."""
    cluster.add_node("large", cpu="10")
    cluster.add_pod("victim", cpu="10", node="large")

    async def never_bound(pod, node):
        raise RejectedError("no")

    cluster.bind = never_bound
    cluster.add_pod("vip", cpu="9", priority=100)
    await cluster.settle()
    assert cluster.deleted == ["victim"]
    cluster.add_pod("low", cpu="9")
    async with client_of(endpoint_of(cluster)) as client:
        low, vip = await asked(client, "web/low"), await asked(client, "web/vip")
    assert low["target"] == ""
    assert "Insufficient cpu" in low["message"]
    assert vip["target"] == "large"


async def test_a_pod_with_scheduling_gates_is_not_placed(cluster):
    cluster.add_pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    await cluster.settle()
    async with client_of(endpoint_of(cluster)) as client:
        found = await asked(client, "web/gated")
    assert found["target"] == ""
    assert found["message"] == "Scheduling is blocked due to non-empty scheduling gates: example.com/wait"


async def test_bad_requests(cluster):
    async with client_of(endpoint_of(cluster)) as client:
        assert await asked(client, "") == (400, "expected /explain?pod=NAMESPACE/NAME\n")
        assert await asked(client, "web") == (400, "expected /explain?pod=NAMESPACE/NAME\n")
        assert await asked(client, "web/none") == (404, "there is no pod web/none\n")


async def test_the_copy_is_released_when_idle_and_after_an_error(cluster, monkeypatch):
    cluster.add_pod("a")
    await cluster.settle()
    endpoint = endpoint_of(cluster)
    async with client_of(endpoint) as client:
        assert not endpoint.holds_copy
        await asked(client, "web/a")
        assert endpoint.holds_copy
        endpoint.release()
        assert not endpoint.holds_copy
        await asked(client, "web/a")
        monkeypatch.setattr(explain_endpoint.explanation, "explain", lambda *_: 1 / 0)
        assert (await asked(client, "web/a"))[0] == 500
        assert not endpoint.holds_copy


# Bindings


@pytest.fixture
def fleet():
    simulation = FleetSimulation()
    simulation.cluster("one", cpu="2")
    for name in ("shop", "bank"):
        simulation.state.index.set_namespace(name, {})
    return simulation


def fleet_client(fleet, *, show_all=False):
    state = fleet.state
    known = state.index.peer_index.namespaces
    names = PeerNames(show_all, "workload")
    return client_of(
        BindingExplainEndpoint(state.index, state.workloads.get, lambda key: key.partition("/")[0] in known, names)
    )


async def explained(client, binding):
    response = await client.get("/explain", params={"binding": binding})
    text = await response.text()
    return json.loads(text) if response.status == 200 else (response.status, text)


APART = {"clusterAffinity": {}, "workloadAffinity": {"antiAffinity": {"groupByLabelKey": "set"}}}
DIVIDED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}


async def test_a_binding_is_explained_as_by_the_command(fleet):
    for name in ("first", "second"):
        fleet.bind(name, APART, workloadAffinityGroups={"antiAffinityGroup": "set=a"})
        await fleet.settle()
    async with fleet_client(fleet) as client:
        refused, placed = [await explained(client, f"shop/{name}-deployment") for name in ("second", "first")]
    assert (placed["current"], placed["target"]) == ("one:2", "one:2")
    assert refused["message"] == fleet.condition("second")["message"]
    assert refused["verdicts"]["one"]["failures"][0]["peers"] == ["shop/first-deployment"]
    workload = fleet.state.workloads["shop/second-deployment"]
    engine = FleetEngine(fleet.state.index, fleet_profile.fleet_rules())
    same = explanation.explain_binding(workload, engine)
    same = msgspec.structs.replace(same, fixes=fleet_fixes.find(workload, engine))
    assert refused == json.loads(json.dumps(explanations.document(same)))
    assert refused["fixes"]


async def test_a_fix_of_a_binding_is_searched_for_without_changing_the_fleet(fleet):
    fleet.bind("web", {"clusterAffinity": {}, "replicaScheduling": DIVIDED}, replicas=5)
    await fleet.settle()
    async with fleet_client(fleet) as client:
        before = await explained(client, "shop/web-deployment")
        fleet.cluster("one", cpu="9")
        after = await explained(client, "shop/web-deployment")
    assert (before["target"], after["target"]) == ("", "one:5")
    assert fleet.counted("web") == {}


@pytest.mark.parametrize("show_all", [False, True])
async def test_workloads_of_other_namespaces_are_named_to_the_owners_of_a_binding_only_if_configured(fleet, show_all):
    term = {"labelSelector": {"matchLabels": {"app": "flink"}}, "namespaceSelector": {}}
    text = json.dumps({"workloadAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    fleet.server.put(fleets.binding("vault", "bank", {"one": 1}, {"clusterAffinity": {}}))
    fleet.report()
    fleet.template("web", {"app": "web"})
    fleet.bind("web", {"clusterAffinity": {}}, annotations={"bayplan.io/placement": text})
    async with fleet_client(fleet, show_all=show_all) as client:
        found = json.dumps(await explained(client, "shop/web-deployment"))
        labels = json.dumps({"app": "flink"})
        theirs = fleets.binding("vault", "bank", {"one": 1}, {"clusterAffinity": {}}, annotations={"bayplan.io/workload-labels": labels})  # fmt: skip
        fleet.server.put(theirs)
        fleet.report()
        later = json.dumps(await explained(client, "shop/web-deployment"))
    assert "are not known" in found
    for one in (found, later):
        assert ("vault" in one) is show_all


async def test_a_binding_that_cannot_be_read_is_explained_too_and_one_that_is_not_there_is_not_found(fleet):
    fleet.bind("web", {"clusterAffinity": {}}, annotations={"bayplan.io/placement": "{"})
    async with fleet_client(fleet) as client:
        found = await explained(client, "shop/web-deployment")
        assert await explained(client, "viewer") == (404, "there is no binding viewer\n")
        for asked in ("", "/", "shop/", "/web"):
            assert await explained(client, asked) == (400, "expected /explain?binding=NAMESPACE/NAME\n")
    assert "bayplan.io/placement" in found["message"]


async def test_a_member_is_explained_with_its_group(cluster):
    member = {"bayplan.io/group": "gang", "bayplan.io/group-min": "4"}
    for number in range(4):
        cluster.add_pod(f"gang-{number}", cpu="3", annotations=member)
    await cluster.settle(5)
    async with client_of(endpoint_of(cluster)) as client:
        waits = await asked(client, "web/gang-0")
        cluster.add_node("n3")
        would_fit = await asked(client, "web/gang-0")
    assert waits["message"].startswith("group web/gang waits: 4 members must run; 3 fit")
    assert waits["groupWait"]["domains"][0]["fitting"] == 3
    assert would_fit["target"]
