"""
Each alert of deploy/monitoring fires on the metrics of a Bayplan in that condition, and only then.

Prometheus' promtool evaluates the rules on what Bayplan serves at /metrics: a scrape for each time of `Scrapes.add`,
repeated every minute until the next one.
"""

import ast
import asyncio
import datetime as dt
import json
import math
import pathlib
import subprocess
import time
import urllib.request

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from bayplan.cli import run_webhook
from bayplan.kube_api.decoding import Key
from bayplan.live.event_loop import IterationTimer
from bayplan.live.loop import SWEEP_INTERVAL_SECONDS
from bayplan.webhook.admission_handler import AdmissionSettings
from live import bayplan_running
from live.admin import ApiError, pod, wait_for
from live.fleets import binding, cluster
from live.open_webhook import serving_webhook
from live.processes import free_port
from live.test_webhook_clients import PROBE

ROOT = pathlib.Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
RULES = yaml.safe_load((MONITORING / "rules.yaml").read_text(encoding="utf-8"))["spec"]
NAMES = {alert["alert"] for group in RULES["groups"] for alert in group["rules"]}
N_MINUTES = 40


class Scrapes:
    """What Prometheus has stored: the samples of a replica of Bayplan by the minute of their scrape."""

    def __init__(self):
        self.by_series = {}

    def add(self, minute, text, pod="bayplan-1", job="bayplan"):
        own = {"job": job, "namespace": "bayplan-system", "pod": pod}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = ",".join(f"{name}={json.dumps(value)}" for name, value in {**sample.labels, **own}.items())
                self.by_series.setdefault(f"{sample.name}{{{labels}}}", {})[minute] = sample.value
        return self

    def series(self):
        for series, values in self.by_series.items():
            written, last = [], "_"
            for minute in range(N_MINUTES + 1):
                last = values.get(minute, last)
                written.append(str(last) if last == "_" or not math.isinf(last) else "+Inf")
            yield {"series": series, "values": " ".join(written)}


class Rules:
    """The rules as promtool evaluates them; coroutine tests call it in a thread, so that their connections stay alive."""

    def __init__(self, promtool, folder):
        self._promtool, self._folder = promtool, folder
        (folder / "rules.yaml").write_text(yaml.safe_dump(RULES))

    def firing(self, scrapes, minute=N_MINUTES, started=None):
        """The names of the alerts that fire at a minute after `started`, by default now."""
        begun = dt.datetime.fromtimestamp(started or time.time(), dt.UTC).isoformat()
        if not self._any(scrapes, minute, begun):
            return set()
        return {name for name in NAMES if self._fires(scrapes, name, minute, begun)}

    def _any(self, scrapes, minute, begun):
        return not self._holds(scrapes, 'ALERTS{alertstate="firing"}', minute, begun, [])

    def _fires(self, scrapes, name, minute, begun):
        expected = [{"labels": "{}", "value": 1}]
        return self._holds(
            scrapes, f'group(ALERTS{{alertstate="firing", alertname="{name}"}})', minute, begun, expected
        )

    def _holds(self, scrapes, query, minute, begun, expected):
        test = {
            "interval": "1m",
            "start_timestamp": begun,
            "input_series": list(scrapes.series()),
            "promql_expr_test": [{"expr": query, "eval_time": f"{minute}m", "exp_samples": expected}],
        }
        content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
        (self._folder / "test.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
        command = [self._promtool, "test", "rules", self._folder / "test.yaml"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or "exp:" in done.stdout + done.stderr, done.stdout + done.stderr
        return done.returncode == 0


@pytest.fixture
def rules(promtool, tmp_path):
    return Rules(promtool, tmp_path)


def text_of(running):
    return running.metrics.text().decode()


def scraped(process):
    with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def value(text, name):
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def test_promtool_accepts_the_rules_and_reads_every_query_of_the_dashboard(promtool, rules, tmp_path):
    checked = subprocess.run(
        [promtool, "check", "rules", "--lint=all", "--lint-fatal", tmp_path / "rules.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    panels = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    for query in (target["expr"] for panel in panels for target in panel["targets"]):
        done = subprocess.run(
            [promtool, "--experimental", "promql", "format", query], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (query, done.stderr)


async def test_nothing_fires_for_a_healthy_scheduler(kube_server, admin, namespace, rules):
    await admin.create_nodes(2)
    async with bayplan_running.in_process(kube_server) as running:
        scrapes = Scrapes().add(0, text_of(running))
        await admin.create(pod("one", namespace, scheduler="bayplan"))
        await wait_for(lambda: admin.node_of("one", namespace))
        scrapes.add(5, text_of(running))
    assert await asyncio.to_thread(rules.firing, scrapes) == set()


def test_no_replica_is_scraped(rules):
    assert rules.firing(Scrapes()) == {"BayplanNotLeading"}


async def test_no_replica_leads(kube_server, admin, rules):
    now = dt.datetime.now(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "bayplan", "namespace": "kube-system"},
    }
    await admin.create({**lease, "spec": spec})
    standby = bayplan_running.process(kube_server)
    scrapes = Scrapes().add(0, scraped(standby))
    assert await asyncio.to_thread(rules.firing, scrapes, 1) == set()  # two minutes are given to a change of the leader
    assert await asyncio.to_thread(rules.firing, scrapes) == {"BayplanNotLeading"}


async def test_many_pods_are_unschedulable(kube_server, admin, namespace, rules):
    await admin.create_nodes(1, cpu="1")
    await admin.create_all([pod(f"huge-{n}", namespace, scheduler="bayplan", cpu="100") for n in range(21)])
    async with bayplan_running.in_process(kube_server) as running:
        waiting = 'scheduler_pending_pods{queue="unschedulable"}'
        await wait_for(lambda: value(text_of(running), waiting) == 21)
        scrapes = Scrapes().add(0, text_of(running))
    assert await asyncio.to_thread(rules.firing, scrapes, 10) == set()
    assert await asyncio.to_thread(rules.firing, scrapes) == {"BayplanPodsPending"}


async def test_many_bindings_are_unschedulable(karmada_server, admin, namespace, rules):
    await admin.create(cluster("member"))
    placement = {"clusterAffinity": {"clusterNames": ["elsewhere"]}}
    waiting = [binding(f"lost-{n}", namespace, {}, placement, schedulerName="bayplan") for n in range(21)]
    await admin.create_all(waiting)
    async with bayplan_running.fleet_in_process(karmada_server) as running:
        await wait_for(lambda: value(text_of(running), 'scheduler_pending_bindings{queue="unschedulable"}') == 21)
        scrapes = Scrapes().add(0, text_of(running), job="bayplan-fleet")
    assert await asyncio.to_thread(rules.firing, scrapes) == {"BayplanBindingsPending"}


async def test_the_sweep_finds_a_pod_that_no_change_had_activated(kube_server, admin, namespace, rules, monkeypatch):
    await admin.create(pod("alone", namespace, scheduler="bayplan"))
    async with bayplan_running.in_process(kube_server) as running:
        await wait_for(lambda: value(text_of(running), 'scheduler_pending_pods{queue="unschedulable"}') == 1)
        scrapes = Scrapes().add(0, text_of(running))
        monkeypatch.setattr(running._parts.evaluator, "fits", lambda _workload, _nominations: True)  # the bug
        running._parts.scheduler._last_sweep -= SWEEP_INTERVAL_SECONDS
        await admin.create_nodes(0)
        await wait_for(
            lambda: (running._parts.scheduler.step(), value(text_of(running), "bayplan_missed_requeues_total"))[1]
        )
        scrapes.add(20, text_of(running))
    assert await asyncio.to_thread(rules.firing, scrapes, 19) == set()
    assert await asyncio.to_thread(rules.firing, scrapes, 25) == {"BayplanMissedRequeues"}


def test_the_event_loop_is_held(kube_server, rules):
    timer, scrapes = IterationTimer(), Scrapes()

    async def held():
        async with bayplan_running.in_process(kube_server) as running:
            timer.on_iteration = running.observe_loop_iteration
            scrapes.add(0, text_of(running))
            for _ in range(4):
                asyncio.get_running_loop().call_soon(time.sleep, 1.1)
                await asyncio.sleep(0.01)
            scrapes.add(20, text_of(running))

    timer.run(held)
    assert rules.firing(scrapes, 19) == set()
    assert rules.firing(scrapes, 21) == {"BayplanEventLoopHeld"}
    assert rules.firing(scrapes, 30) == set()


async def test_a_node_is_set_aside(kube_server, admin, rules):
    await admin.create_nodes(1)
    async with bayplan_running.in_process(kube_server) as running:
        running.state.nodes_set_aside.close_for(Key("shop", "unreadable"), "node-0")
        scrapes = Scrapes().add(0, text_of(running))
    assert await asyncio.to_thread(rules.firing, scrapes) == {"BayplanObjectsSetAside"}


async def test_the_webhook_sheds_reviews(kube_server, admin, rules):

    async with (
        bayplan_running.in_process(kube_server) as running,
        serving_webhook(admin, AdmissionSettings(), failure_policy="Fail") as webhook,
    ):
        run_webhook.add_counters(running, webhook.server)
        endpoint = webhook.server.endpoint
        endpoint._at_once = endpoint._limits.at_once  # as many reviews as there may be
        scrapes = Scrapes()
        for minute in range(0, N_MINUTES + 1, 2):
            with pytest.raises(ApiError, match="unable to handle the request"):
                await admin.create(PROBE, dryRun="All")
            scrapes.add(minute, text_of(running))
        endpoint._at_once = 0
    assert await asyncio.to_thread(rules.firing, scrapes) == {"BayplanWebhookShedsReviews"}


async def test_the_certificate_of_the_webhook_expires(kube_server, admin, credentials, tmp_path, rules):
    (tmp_path / "paths").write_text("s" * 32 + "\n")
    for days, expected in ((3, {"BayplanWebhookCertificateExpires"}), (20, set())):
        files = credentials.issue("127.0.0.1", common_name="webhook", lifetime=days * 24 * 3600)
        words = [
            word
            for pair in zip(("cert", "key", "path"), (*files, tmp_path / "paths"), strict=True)
            for word in (f"--webhook-{pair[0]}-file", str(pair[1]))
        ]
        address = ("--webhook-bind-address", f"127.0.0.1:{free_port()}", "--webhook-url", "https://127.0.0.1:1")
        running = bayplan_running.process(kube_server, "--no-leader-elect", "--webhook", *address, *words)
        await wait_for(lambda running=running: value(scraped(running), "bayplan_webhook_certificate_expiry"))
        assert await asyncio.to_thread(rules.firing, Scrapes().add(0, scraped(running))) == expected
        running.stop()


async def test_the_audit_does_not_pass_and_ends(kube_server, admin, rules):
    await admin.create_nodes(1, labels=lambda _: {"node-role.kubernetes.io/control-plane": ""})
    running = bayplan_running.process(kube_server, "--no-leader-elect", "--audit")
    await wait_for(lambda: value(scraped(running), "bayplan_audit_finished_timestamp_seconds"))
    scrapes = Scrapes().add(0, scraped(running))
    assert await asyncio.to_thread(rules.firing, scrapes) == {"BayplanAuditNotPassed"}
    two_hours_later = time.time() + 2 * 3600
    assert await asyncio.to_thread(rules.firing, scrapes, started=two_hours_later) == {
        "BayplanAuditNotPassed",
        "BayplanAuditStale",
    }


def test_every_alert_is_caused_by_a_test():
    expected = ast.walk(ast.parse(pathlib.Path(__file__).read_text(encoding="utf-8")))
    names = {
        one.value
        for found in expected
        if isinstance(found, ast.Set)
        for one in found.elts
        if isinstance(one, ast.Constant)
    }
    assert names == NAMES
