"""The options of `run` that audit the cluster now and then, and the gauges that tell what was found."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import multiprocessing
import time
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

import msgspec

from bayplan.cli import audit_options, value_types
from bayplan.cli.commands import Option, OptionGroup
from bayplan.cli.connecting import Connecting

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from bayplan.live.running import RunningScheduler
    from bayplan.writing.audit_metrics import Sample

    Findings = tuple[list[Sample], str]  # every gauge, or what went wrong

_HEADING = "Audit"
log = logging.getLogger("bayplan.audit")


class Auditing(msgspec.Struct, frozen=True):
    """Whether the cluster is audited, by what and how often."""

    audit: bool
    audit_profile: str
    audit_interval: str


class Latest:
    """What the last audit found, as gauges read it; `failed` counts those that came to nothing."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.failed = 0
        self.finished_at = 0.0

    def of(self, name: str) -> Iterable[tuple[tuple[str, ...], float]]:
        return [(tuple(labels.values()), float(value)) for found, labels, value in self.samples if found == name]


@contextlib.asynccontextmanager
async def opened(auditing: Auditing, connecting: Connecting, running: RunningScheduler) -> AsyncIterator[None]:
    """Audit the cluster again and again inside the block, if that is wanted."""
    if not auditing.audit:
        yield
        return
    latest = Latest()
    _add_gauges(latest, running)
    task = asyncio.create_task(_repeat(auditing, connecting, latest))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _add_gauges(latest: Latest, running: RunningScheduler) -> None:
    from bayplan.writing import audit_metrics

    for name, (text, labels) in audit_metrics.GAUGES.items():
        running.add_gauge(name, text, functools.partial(latest.of, name), labels)
    running.add_gauge("bayplan_audit_failures", "Audits that came to nothing.", lambda: [((), float(latest.failed))])
    text = "When the last audit was finished."
    running.add_gauge("bayplan_audit_finished_timestamp_seconds", text, lambda: [((), latest.finished_at)])


async def _repeat(auditing: Auditing, connecting: Connecting, latest: Latest) -> None:
    """One audit after another."""
    pause = value_types.seconds(auditing.audit_interval)
    while True:
        samples, error = await _apart(connecting, auditing.audit_profile)
        if error:
            latest.failed += 1
            log.warning("audit failed: %s", error)
        else:
            latest.samples, latest.finished_at = samples, time.time()
        await asyncio.sleep(pause)


async def _apart(connecting: Connecting, profile: str) -> Findings:
    """An audit in a process of its own, which ends with us: nothing here may hold up decisions."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, connecting, profile), daemon=True)
    process.start()
    sender.close()
    try:
        found: Findings = await asyncio.to_thread(receiver.recv)
    except EOFError:
        return [], "its process ended early"
    finally:
        process.terminate()
        process.join()
    return found


def _send(sender: Connection, connecting: Connecting, profile: str) -> None:
    sender.send(once(connecting, profile))


def once(connecting: Connecting, profile: str) -> Findings:
    """What one audit of the live cluster finds, without placing anything again; or why there is none."""
    from bayplan.auditing import audit, profiles, surveying, survival, workload_groups
    from bayplan.cli.audit_live import AuditFetching
    from bayplan.errors import BayplanError
    from bayplan.reading import audit_files
    from bayplan.reading.files import ReadOptions
    from bayplan.writing import audit_metrics

    try:
        fetching = AuditFetching(connecting.open())
        given = audit_files.load(ReadOptions(live=fetching.sources()), unlisted=fetching.unlisted)
    except BayplanError as error:
        return [], str(error)
    layout = surveying.layout_of(given)
    workloads = workload_groups.workloads_of(given, layout)
    levels = survival.survey(layout, workloads.all if workloads else None)
    counted = survival.Survival(asked=survival.ALL_LEVELS, levels=tuple(levels), note="placing again was not asked for")
    found = audit.audit(layout, profiles.PROFILES[profile], workloads=workloads, survival=counted)
    return list(audit_metrics.samples(found, passed=found.passed())), ""


AUDITING = OptionGroup(
    "auditing",
    Auditing,
    (
        Option("--audit", is_flag=True, heading=_HEADING, help="Audit the cluster now and then: gauges in /metrics."),
        audit_options.profile_option("--audit-profile", heading=_HEADING),
        Option(
            "--audit-interval",
            metavar="TIME",
            type=value_types.Duration(positive=True),
            default="10m",
            show_default=True,
            heading=_HEADING,
            help="Between two audits.",
        ),
    ),
)
