"""The options of `run` for a periodic audit of the cluster, and the metrics of its result."""

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
from bayplan.cli.connection_options import ConnectionOptions

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from bayplan.live.running import RunningScheduler
    from bayplan.writing.audit_formats import Sample

    Findings = tuple[list[Sample], str]  # every sample, or the error

_HEADING = "Audit"
log = logging.getLogger("bayplan.audit")


class PeriodicAuditOptions(msgspec.Struct, frozen=True):
    """Whether the cluster is audited, against which profile and how often."""

    audit: bool
    audit_profile: str
    audit_interval: str


class LatestAudit:
    """The samples of the last audit; `failed` counts the audits that ended with an error."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.failed = 0
        self.finished_at = 0.0

    def samples_of(self, name: str) -> Iterable[tuple[tuple[str, ...], float]]:
        return [(tuple(labels.values()), float(value)) for found, labels, value in self.samples if found == name]


@contextlib.asynccontextmanager
async def opened(
    options: PeriodicAuditOptions, cluster: ConnectionOptions, running: RunningScheduler
) -> AsyncIterator[None]:
    """Audit the cluster periodically inside the block, if the options ask for it."""
    if not options.audit:
        yield
        return
    latest = LatestAudit()
    add_metrics(running, latest)
    task = asyncio.create_task(_repeat(options, cluster, latest))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def add_metrics(running: RunningScheduler, latest: LatestAudit) -> None:
    """Add the metrics of the last audit to those of the scheduler."""
    from bayplan.writing import audit_formats

    for name, (text, labels) in audit_formats.GAUGES.items():
        running.metrics.gauge(name, text, functools.partial(latest.samples_of, name), labels)
    text = "When the last audit finished."
    running.metrics.gauge("bayplan_audit_finished_timestamp_seconds", text, lambda: [((), latest.finished_at)])
    text = "Number of audits that ended with an error."
    running.metrics.counter("bayplan_audit_failures", text, lambda: [((), float(latest.failed))])


async def _repeat(options: PeriodicAuditOptions, cluster: ConnectionOptions, latest: LatestAudit) -> None:
    pause = value_types.seconds(options.audit_interval)
    while True:
        samples, error = await _in_own_process(cluster, options.audit_profile)
        if error:
            latest.failed += 1
            log.warning("audit failed: %s", error)
        else:
            latest.samples, latest.finished_at = samples, time.time()
        await asyncio.sleep(pause)


async def _in_own_process(cluster: ConnectionOptions, profile: str) -> Findings:
    """The result of an audit in a daemon process of its own, so that it does not delay decisions."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, cluster, profile), daemon=True)
    process.start()
    sender.close()
    try:
        found: Findings = await asyncio.to_thread(receiver.recv)
    except EOFError:
        return [], "its process ended without a result"
    finally:
        process.terminate()
        process.join()
    return found


def _send(sender: Connection, cluster: ConnectionOptions, profile: str) -> None:
    sender.send(audit_once(cluster, profile))


def audit_once(cluster: ConnectionOptions, profile: str) -> Findings:
    """The samples of one audit of the live cluster, or the error. Displaced pods are not rescheduled."""
    from bayplan.errors import BayplanError
    from bayplan.library import fleet
    from bayplan.library.audit_settings import AuditSettings
    from bayplan.library.inputs import InputSpec

    live = fleet.cluster_of(InputSpec(connect=cluster.open, is_asked_once=True))
    try:
        found = live.audit(AuditSettings(profile=profile, reschedule=False))
    except BayplanError as error:
        return [], str(error)
    return found.samples(), ""


PERIODIC_AUDIT = OptionGroup(
    "periodic_audit",
    PeriodicAuditOptions,
    (
        Option(
            "--audit",
            is_flag=True,
            heading=_HEADING,
            help="Audit the cluster periodically and export the result in /metrics.",
        ),
        audit_options.profile_option("--audit-profile", heading=_HEADING),
        Option(
            "--audit-interval",
            metavar="TIME",
            type=value_types.Duration(positive=True),
            default="10m",
            show_default=True,
            heading=_HEADING,
            help="Interval between audits.",
        ),
    ),
)
