"""Accurate estimators of real members: their answers count, and one that hangs or talks nonsense spoils no other."""

import asyncio
import contextlib
import json
import os
import signal

import grpc
import grpc.aio
import pytest

from bayplan.live import estimator_messages
from bayplan.live.assembly import EstimatorSettings
from bayplan.live.estimators import _credentials, _options
from live import bayplan_running, estimator
from live.admin import Admin
from live.fleet_rounds import recorded, rounds
from live.fleet_user import DYNAMIC, deployment

MEMBERS = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}, "replicaScheduling": DYNAMIC}
METHOD = "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas"

pytestmark = pytest.mark.skipif(
    not estimator.is_possible(),
    reason="karmada-scheduler-estimator needs a network namespace, which is not allowed here",
)


@pytest.fixture
async def estimators(karmada, tmp_path):
    """The real estimators of both members, and the settings to reach them. A node of member1 has a label."""
    credentials = karmada.server.credentials
    async with Admin.of(karmada.members["member1"]) as admin:
        (first, *_others) = await admin.items("nodes")
        name = first["metadata"]["name"]
        await admin.patch("nodes", name, {"metadata": {"labels": {"disk": "ssd"}}})
        with contextlib.ExitStack() as stack:
            found = {}
            for cluster, member in karmada.members.items():
                started = estimator.running(tmp_path, cluster, member, credentials)
                found[cluster] = await asyncio.to_thread(stack.enter_context, started)
            yield found, settings(karmada, tmp_path)
        await admin.patch("nodes", name, {"metadata": {"labels": {"disk": None}}})


def settings(karmada, folder, timeout=2.0):
    certificate, key = karmada.server.credentials.issue("bayplan", common_name="bayplan")
    authority = str(karmada.server.ca_file)
    return EstimatorSettings(f"unix:{folder}/{{cluster}}.sock", authority, str(certificate), str(key), timeout)


async def deploy_on(disk, fleet, name, replicas):
    made = deployment(name, replicas, cpu="1")
    made["spec"]["template"]["spec"]["nodeSelector"] = {"disk": disk}
    await fleet.create(made)
    await fleet.propagate(name, placement=MEMBERS)


async def test_replicas_go_where_the_estimators_know_of_nodes_for_them(karmada, fleet, estimators):
    _, reached = estimators
    async with bayplan_running.fleet_in_process(karmada.server, estimator=reached) as running:
        await deploy_on("ssd", fleet, "web", 20)  # 16 fit on the node of member1; each member reports room for 16
        message = await fleet.until_refused("web", "Unschedulable")
        await fleet.scale("web", 10)
        await fleet.until_placed("web", {"member1": 10})
        requests = running.metrics.estimator_requests.labels("answered")._value.get()

    assert "Clusters available replicas 16 are not enough to schedule." in message
    assert requests >= 2


async def test_everything_that_is_required_of_nodes_is_asked(karmada, estimators):
    """Each node of a member has 16 cores and room for 110 pods; the first one has the label."""
    _, reached = estimators
    hosts = [{"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}]
    field = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["no-such-node"]}]}]
    asked = {
        '{"resourceRequest":{"cpu":"1"}}': 32,
        '{"resourceRequest":{"cpu":"1500m","memory":"1Gi"},"namespace":"shop","priorityClassName":"high"}': 20,
        '{"resourceRequest":{"example.com/none":"1"}}': 0,
        '{"resourceRequest":{"cpu":"1"},"nodeClaim":{"nodeSelector":{"disk":"ssd"}}}': 16,
        json.dumps(_with_affinity(hosts)): 16,
        json.dumps(_with_affinity(field)): 0,
        json.dumps(_with_affinity([*hosts, *field])): 16,
    }
    address = reached.address.replace("{cluster}", "member1")
    async with grpc.aio.secure_channel(address, _credentials(reached), _options(address)) as channel:
        call = channel.unary_unary(estimator_messages.METHOD)
        found = {
            claim: estimator_messages.replicas(await call(estimator_messages.request("member1", claim), timeout=10))
            for claim in asked
        }
    assert found == asked


def _with_affinity(terms):
    tolerated = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    claim = {"hardNodeAffinity": {"nodeSelectorTerms": terms}, "tolerations": [tolerated]}
    return {"resourceRequest": {"cpu": "1"}, "nodeClaim": claim}


@rounds
async def test_an_estimator_that_hangs_costs_a_time_limit_and_the_others_count(karmada, fleet, estimators, round_):
    processes, reached = estimators
    with recorded("estimator hanging"):
        await _with_a_hanging_estimator(karmada, fleet, processes, reached)


async def _with_a_hanging_estimator(karmada, fleet, processes, reached):
    async with bayplan_running.fleet_in_process(karmada.server, estimator=reached) as running:
        os.kill(processes["member2"].pid, signal.SIGSTOP)
        await deploy_on("nvme", fleet, "web", 20)  # no node of member1 has it; the report of member2 has room for 16
        message = await fleet.until_refused("web", "Unschedulable")
        await fleet.scale("web", 10)
        await fleet.until_placed("web", {"member2": 10})
        assert running.metrics.estimator_requests.labels("timed_out")._value.get() >= 1

    assert "Clusters available replicas 16 are not enough to schedule." in message


async def test_an_estimator_that_is_gone_or_talks_nonsense_is_passed_over(karmada, fleet, estimators, tmp_path):
    processes, reached = estimators
    processes["member2"].kill()
    (tmp_path / "member2.sock").unlink()
    async with (
        _talking_nonsense(karmada, tmp_path / "member2.sock"),
        bayplan_running.fleet_in_process(karmada.server, estimator=reached) as running,
    ):
        await deploy_on("nvme", fleet, "web", 10)
        await fleet.until_placed("web", {"member2": 10})
        assert running.metrics.estimator_requests.labels("failed")._value.get() >= 1


@contextlib.asynccontextmanager
async def _talking_nonsense(karmada, socket):
    """A server that answers with bytes that are no message."""

    async def answer(_request, _context):
        return b"\xff\xff\xff nonsense"

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(answer) if details.method == METHOD else None

    certificate, key = karmada.server.credentials.issue("localhost", common_name="nonsense")
    chain = [(key.read_bytes(), certificate.read_bytes())]
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([Handler()])
    server.add_secure_port(f"unix:{socket}", grpc.ssl_server_credentials(chain))
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)
