"""Every metric that /metrics serves has the type that docs/reference/metrics.md says, and the name that goes with it."""

import pathlib
import re
import time
from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bayplan.cli import run_audit, run_webhook
from bayplan.enforcing.planning import EnforcementSettings
from bayplan.kube_api.access import Access, ConnectOptions
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.credentials import Credential, RereadCredentials
from bayplan.kube_api.tls import Trust
from bayplan.live.assembly import SchedulerSettings
from bayplan.live.metrics import DEPRECATED_NAMES
from bayplan.live.running import RunningScheduler
from bayplan.live.running_fleet import RunningFleetScheduler
from bayplan.rules import profiles

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
TYPES = ("counter", "gauge", "histogram")


@pytest.fixture
async def families():
    """The types by name as they are written, and the metrics as a Prometheus reads them."""
    settings = SchedulerSettings(identity="test", election=None, enforcement=EnforcementSettings())
    anonymous = RereadCredentials(Credential, time.monotonic)
    access = Access(server="https://127.0.0.1:1", credentials=anonymous, trust=Trust())  # never connected
    running = RunningScheduler(Connection(access, ConnectOptions()), {"bayplan": profiles.pod_rules()}, settings)
    latest = run_audit.LatestAudit()
    latest.failed = 2
    for number, reflector in enumerate(running._reflectors):
        reflector.lists, reflector.relists, reflector.restarts, reflector.events = range(number, number + 4)
    run_audit.add_metrics(running, latest)
    counts = Counter(limit=1)
    endpoint, server = SimpleNamespace(shed=counts, refused=counts), SimpleNamespace(closed=counts)
    tls = SimpleNamespace(expires=datetime.now(UTC))
    run_webhook.add_counters(running, SimpleNamespace(endpoint=endpoint, server=server, tls=tls))
    fleet = RunningFleetScheduler(Connection(access, ConnectOptions()), ["bayplan"], settings)
    texts = [one.metrics.text().decode() for one in (running, fleet)]
    lines = [re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE) for text in texts]
    again = {line for line in lines[0] if line in lines[1]}  # what both have is served by each of them
    of_fleet = list(text_string_to_metric_families(texts[1]))
    parsed = [family for family, line in zip(of_fleet, lines[1], strict=True) if line not in again]
    own = [line for line in lines[1] if line not in again]
    return [*lines[0], *own], [*text_string_to_metric_families(texts[0]), *parsed]


def rows():
    """The first two columns of all tables of the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line.strip("| ").split(" | ")[:2] for line in lines if line.startswith("| ")]


def documented():
    return {name: kind for names, kind in rows() if kind in TYPES for name in re.findall(r"`(\w+)`", names)}


def served(families):
    """What is served but for deprecated names and the times when counters were created."""
    lines, _ = families
    return {name: kind for name, kind in lines if name not in DEPRECATED_NAMES and not name.endswith("_created")}


async def test_the_page_has_every_metric_with_its_type(families):
    assert documented() == served(families)


async def test_a_counter_and_nothing_else_ends_in_total(families):
    for name, kind in served(families).items():
        assert name.endswith("_total") == (kind == "counter"), name


async def test_a_prometheus_reads_the_types_as_they_are_written(families):
    lines, parsed = families
    assert [family.type for family in parsed] == [kind for _, kind in lines]
    for family in parsed:
        assert {sample.name for sample in family.samples} <= {
            f"{family.name}{suffix}" for suffix in ("", "_total", "_bucket", "_count", "_sum")
        }


def test_the_page_has_the_deprecated_names():
    assert {old.strip("`"): new.strip("`") for old, new in rows() if new.startswith("`")} == DEPRECATED_NAMES


async def test_a_deprecated_name_has_the_type_that_it_had_and_the_values_of_the_new_one(families):
    lines, parsed = families
    types, values = dict(lines), {}
    for sample in [sample for family in parsed for sample in family.samples]:
        values.setdefault(sample.name, []).append((sample.labels, sample.value))
    for old, new in DEPRECATED_NAMES.items():
        assert types[new] == "counter"
        assert types[old] == ("counter" if old.endswith("_total") else "gauge")
        assert values[old] == values[new]
    assert values["bayplan_audit_failures"] == [({}, 2.0)]
