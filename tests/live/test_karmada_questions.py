"""Recorded questions about fleets, each alone on a real API server: the answers of Bayplan and of karmada-scheduler."""

import copy
import gzip
import json
import pathlib

import msgspec

from bayplan.mapping import targets
from bayplan.watching.fleet_state import key_of
from bayplan.wire.fleets import Cluster, ResourceBinding
from live import bayplan_running, kube_binaries
from live.admin import Admin, wait_for
from live.fleet_user import scheduled, shares_of
from live.karmada_control_plane import BINDINGS, CLUSTERS
from live.processes import Process, answers, free_port

RECORDED = pathlib.Path(__file__).parents[1] / "upstream" / "fleet.jsonl.gz"
EVERY, N_QUESTIONS = 9, 200
PATIENCE = 30
FINALIZER = "bayplan.io/test"
LABELS = {"propagationpolicy.karmada.io/permanent-id": "b6a1c1de-2b0a-4f0e-9d5e-1f0f5d3f8a11"}


def questions():
    with gzip.open(RECORDED, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for number, line in enumerate(file) if number % EVERY == 0]
    return found[:N_QUESTIONS]


def start_karmada_scheduler(server, qps=1000, burst=1000):
    """A real karmada-scheduler on a server with nothing but Karmada's kinds."""
    port = free_port()
    scheduler = Process(
        [
            kube_binaries.find_karmada("karmada-scheduler"),
            f"--kubeconfig={server.kubeconfig()}",
            "--leader-elect=false",
            "--feature-gates=WorkloadAffinity=true",
            f"--kube-api-qps={qps}",
            f"--kube-api-burst={burst}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{port}",
        ],
        log=server.folder / f"karmada-scheduler-{port}.log",
        ready=lambda: answers(f"http://127.0.0.1:{port}/healthz"),
    )
    server.schedulers.append(scheduler)
    scheduler.start()


class Asking:
    """Puts a question on the server, as it is for one scheduler, and reads its answer."""

    def __init__(self, admin):
        self._admin = admin

    async def answer(self, question, scheduler, until_known):
        """Clusters with replicas, observed group and reason; `until_known` waits until the scheduler knows the clusters."""
        await self._admin.create_all([_cluster(one) for one in question["clusters"]])
        for one in question["clusters"]:
            if one["metadata"].get("deletionTimestamp"):
                await self._admin.delete(CLUSTERS, one["metadata"]["name"], grace=None)
        for one in question["bindings"]:
            await self._create(_binding(one, "nobody"))
        await until_known(question)
        pending = _binding(question["binding"], scheduler)
        found = await self._create(pending)
        where = found["metadata"]["name"], found["metadata"]["namespace"]
        await self._admin.patch(BINDINGS, where[0], {"spec": {"suspension": None}}, where[1])
        found = await wait_for(lambda: self._decided(*where), PATIENCE)
        condition = scheduled(found)
        reason = "" if condition["status"] == "True" else condition["reason"]
        observed = found["status"].get("schedulerObservingAffinityName", "") if not reason else ""
        clusters = shares_of(found) if not reason else {}
        await self._clear()
        return clusters, observed, reason

    async def _create(self, content):
        status = content.pop("status", None)
        made = await self._admin.create(content)
        if status:
            name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
            await self._admin.patch(BINDINGS, name, {"status": status}, namespace, subresource="status")
        return made

    async def _decided(self, name, namespace):
        found = await self._admin.get(BINDINGS, name, namespace)
        return found if scheduled(found) else None

    async def _clear(self):
        for resource in (BINDINGS, CLUSTERS):
            await self._admin.delete_all(resource)


def _cluster(written):
    made = copy.deepcopy(written)
    if made["metadata"].pop("deletionTimestamp", None):
        made["metadata"]["finalizers"] = [FINALIZER]
    return made


def _binding(written, scheduler):
    made = copy.deepcopy(written)
    meta = {key: made["metadata"][key] for key in ("name", "namespace") if key in made["metadata"]}
    made["metadata"] = {**meta, "labels": LABELS}
    made["spec"] |= {"schedulerName": scheduler, "suspension": {"scheduling": True}}
    return made


def expected(question):
    found = question["expect"]
    clusters = {one["name"]: one.get("replicas", 0) for one in found.get("clusters") or ()}
    return clusters, found.get("observedAffinityName", ""), found.get("reason", "")


async def test_recorded_questions_have_the_same_answers_live(karmada_server):
    async with Admin.of(karmada_server) as admin:
        namespaces = {one["binding"]["metadata"]["namespace"] for one in questions()}
        for question in questions():
            namespaces |= {one["metadata"]["namespace"] for one in question["bindings"]}
        for name in sorted(namespaces - {"default"}):
            await admin.create_namespace(name)
        start_karmada_scheduler(karmada_server)
        async with bayplan_running.fleet_in_process(karmada_server) as running:
            asking, differ = Asking(admin), []

            async def known(question):
                await wait_for(lambda: _knows(running.state, question))

            for question in questions():
                ours = await asking.answer(question, "bayplan", known)
                theirs = await asking.answer(question, "default-scheduler", known)
                if theirs != ours:  # nobody can see whether its caches still had the last question
                    theirs = await asking.answer(question, "default-scheduler", known)
                is_same = ours == expected(question) and (theirs == ours or _is_decided_twice(question))
                if not is_same:
                    differ.append((question["name"], ours, theirs, expected(question)))
    assert not differ, "\n".join(map(str, differ))


def _is_decided_twice(question):
    """
    Whether karmada-scheduler changes its own answer at once.

    It decides about a duplicated binding again after each of its own writes. With overflow tiers the answer does not
    have all replicas everywhere, which counts as a change of the replicas, and the second answer is another one.
    """
    placement = question["binding"]["spec"]["placement"]
    kind = (placement.get("replicaScheduling") or {}).get("replicaSchedulingType", "Duplicated")
    return kind == "Duplicated" and any(
        one.get("overflowAffinities") for one in placement.get("clusterAffinities") or ()
    )


def _knows(state, question):
    """Whether a scheduler in this process has the clusters and bindings of this question, and none of the last one."""
    clusters = [targets.target_of_cluster(msgspec.convert(one, Cluster)) for one in question["clusters"]]
    bindings = [msgspec.convert(one, ResourceBinding) for one in question["bindings"]]
    slots, known = state.index.slots, state.bindings
    return (
        slots.by_name.keys() == {one.name for one in clusters}
        and all(slots.at(slots.by_name[one.name]) == one for one in clusters)
        and known.keys() == {key_of(one) for one in bindings}
        and all(known[key_of(one)].spec.clusters == one.spec.clusters for one in bindings)
    )
