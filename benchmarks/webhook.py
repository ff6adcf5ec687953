"""
Measure how many admission reviews per second the webhook answers on one core.

`python benchmarks/webhook.py [--quick] [--json]`; `--json` prints one line of JSON about all kinds at the end.

The webhook runs in a process of its own, over TLS, with an index of 5,000 nodes. Reviews of 8 kB are sent over a few
persistent connections, as by API servers. The rate is computed from the processor time of the webhook's process, so it
does not depend on the load of the machine.
"""

import argparse
import asyncio
import json
import multiprocessing
import ssl
import time
from datetime import UTC, datetime, timedelta

import aiohttp
import msgspec

from bayplan.enforcing.quota import QuotaLimits
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import targets
from bayplan.webhook import certificates, serving
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from bayplan.webhook.secret_paths import AcceptedPaths
from bayplan.wire.nodes import Node

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RUNNING = "requiredDuringSchedulingRequiredDuringExecution"
SIZE = 8000
CONNECTIONS = 8
SEGMENT = "segment-of-the-benchmark"
LIFETIME = timedelta(days=1)  # of the certificates


class View:
    """A large cluster without pending pods."""

    synced = True
    limits = QuotaLimits({"shop": (("cpu", 10**9),)})

    def __init__(self, n_nodes):
        self.index = PlacementIndex()
        for n in range(n_nodes):
            labels = {HOSTNAME: f"n{n}", ZONE: f"z{n % 10}"}
            written = {"metadata": {"name": f"n{n}", "labels": labels}, "status": {"allocatable": {"cpu": "32"}}}
            self.index.add_target(targets.target_of_node(msgspec.convert(written, Node)))

    async def pending(self, _namespace):
        return ()

    async def pod(self, _namespace, _name):
        return None


def anti(key, app=None, when=REQUIRED):
    who = {"labelSelector": {"matchLabels": {"app": app}}} if app else {"labelSelector": {}, "namespaceSelector": {}}
    return {"podAntiAffinity": {when: [{**who, "topologyKey": key}]}}


def pod(affinity=None, rule=None):
    annotations = {} if rule is None else {"bayplan.io/affinity": json.dumps(rule)}
    container = {
        "name": "main",
        "image": "registry.example/shop/web:1.2.3",
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}},
        "env": [{"name": f"SETTING_{n}", "value": "x" * 40} for n in range(20)],
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    spec = {"containers": [container], "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}
    if affinity:
        spec["affinity"] = affinity
    meta = {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def review(obj, group="", resource="pods"):
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": group, "version": "v1", "kind": obj["kind"]},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "operation": "CREATE",
        "namespace": "shop",
        "userInfo": {"username": "alice", "groups": ["dev", "system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
    }
    asked = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    request["options"] = {"padding": "x" * max(0, SIZE - len(json.dumps(asked)))}
    return json.dumps(asked).encode()


def deployment(affinity):
    spec = pod(affinity)["spec"]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    meta = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"template": template}}


CASES = {
    "pod with anti-affinity to its own": review(pod(anti(HOSTNAME, "web"))),
    "rejected pod": review(pod(anti(ZONE))),
    "exclusive pod, charged": review(pod(anti(HOSTNAME))),
    "pod with a rule by annotation": review(pod(rule=anti(HOSTNAME, "web", RUNNING))),
    "Deployment": review(deployment(anti(HOSTNAME, "web")), "apps", "deployments"),
}


def serve(pipe, n_nodes):
    asyncio.run(_serve(pipe, n_nodes))


async def _serve(pipe, n_nodes):
    now, tls = datetime.now(UTC), certificates.ServerTls()
    authority = certificates.create_authority(now, LIFETIME)
    tls.load(certificates.create_serving_pair(authority, ["127.0.0.1"], now, LIFETIME))
    handler = AdmissionHandler(AdmissionSettings(), View(n_nodes))
    endpoint = serving.ReviewEndpoint(handler, AcceptedPaths([SEGMENT]))
    async with serving.WebhookServer(endpoint, tls, "127.0.0.1", 0) as server:
        pipe.send((server.port, authority.certificate))
        loop = asyncio.get_running_loop()
        while True:  # every input line requests the processor time so far; end of input ends the process
            if not await loop.run_in_executor(None, pipe.recv):
                return
            pipe.send(time.process_time())


async def ask(port, bundle, body, count):
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=bundle.decode()), limit=CONNECTIONS)
    headers = {"Content-Type": "application/json"}
    url = f"https://127.0.0.1:{port}/{SEGMENT}{serving.PODS}"
    async with aiohttp.ClientSession(connector=connector) as session:

        async def some(n):
            for _ in range(n):
                async with session.post(url, data=body, headers=headers) as answer:
                    assert answer.status == 200, await answer.text()
                    await answer.read()

        await asyncio.gather(*(some(count // CONNECTIONS) for _ in range(CONNECTIONS)))
    return count // CONNECTIONS * CONNECTIONS


class Row(msgspec.Struct):
    """One kind of review: the number of reviews, their processor time and their elapsed time in seconds."""

    name: str
    asked: int
    busy: float
    elapsed: float

    @property
    def per_second(self):
        return self.asked / self.busy


def measure(count, n_nodes):
    """A row for each kind of review, as soon as it is measured."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, n_nodes), daemon=True)
    process.start()
    port, bundle = here.recv()
    for name, body in CASES.items():
        asyncio.run(ask(port, bundle, body, CONNECTIONS * 4))  # one-time work is not counted
        here.send(True)
        before, started = here.recv(), time.perf_counter()
        asked = asyncio.run(ask(port, bundle, body, count))
        elapsed = time.perf_counter() - started
        here.send(True)
        yield Row(name, asked, here.recv() - before, elapsed)
    here.send(False)
    process.join(5)


def together(rows):
    return Row("all kinds", *(sum(getattr(row, field) for row in rows) for field in ("asked", "busy", "elapsed")))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    arguments.add_argument("--quick", action="store_true", help="fewer reviews, to check that everything runs")
    arguments.add_argument("--json", action="store_true", help="print one line of JSON at the end")
    chosen = arguments.parse_args()
    count, n_nodes = (80, 50) if chosen.quick else (4000, 5000)
    print("| review of 8 kB | reviews/s on one core | µs of processor time | reviews/s by the clock |")
    print("|---|---|---|---|")
    rows = []
    for row in measure(count, n_nodes):
        rows.append(row)
        each, clock = 1e6 * row.busy / row.asked, row.asked / row.elapsed
        print(f"| {row.name} | {row.per_second:,.0f} | {each:,.0f} | {clock:,.0f} |", flush=True)
    if chosen.json:
        asked = f"{len(rows)} kinds of AdmissionReview of 8 kB over TLS, {n_nodes:,} nodes"
        print(json.dumps({"input": asked, "reviews_per_s": round(together(rows).per_second)}))


if __name__ == "__main__":
    main()
