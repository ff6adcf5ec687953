"""`bayplan run`: the scheduler, live on an API server."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import signal
import socket
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from bayplan.cli import (
    commands,
    configuration,
    connecting,
    guarding,
    options,
    outcomes,
    run_audit,
    run_webhook,
    value_types,
)
from bayplan.cli.console import Console
from bayplan.cli.run_audit import AUDITING, Auditing
from bayplan.cli.run_enforcing import ENFORCING, Enforcing
from bayplan.cli.run_webhook import WEBHOOK, Hooking

if TYPE_CHECKING:
    from bayplan.kube_api.connection import Connection
    from bayplan.live.assembly import ServerAddress
    from bayplan.live.event_loop import IterationTimer
    from bayplan.live.running import RunningScheduler
    from bayplan.live.scheduler import Profiles
    from bayplan.webhook.running import WebhookSettings

_SCHEDULING, _ELECTION, _SERVING = "Scheduling", "Leader election", "What others can ask"
DEFAULT_NAME = "bayplan"
DEFAULT_ADDRESS = "127.0.0.1:10351"


@commands.command(
    "run",
    summary="Schedule the pods that ask for it, on a live cluster, until stopped.",
    examples=(
        "bayplan run --context prod --dry-run -v",
        "bayplan run --context prod --scheduler-name bayplan",
        "bayplan run --no-leader-elect --metrics-bind-address 0.0.0.0:10351",
        "bayplan run --record decisions.jsonl",
    ),
    details=(
        "Pods choose it by spec.schedulerName; all others are left to whoever schedules them, and counted. It can run "
        "beside kube-scheduler. With --leader-elect, of several replicas one schedules and the others stand by with "
        "everything known. It keeps no state of its own. SIGTERM ends it in good order. Exit code 0 when stopped, 3 if "
        "the API server refuses us or leadership is lost."
    ),
    groups=(
        connecting.CONNECTING,
        options.DECIDING,
        ENFORCING,
        WEBHOOK,
        guarding.RESTRICTING,
        AUDITING,
        options.CONSOLE,
    ),
    params=(
        commands.Option(
            "--scheduler-name",
            multiple=True,
            metavar="NAME",
            type=value_types.Name(),
            heading=_SCHEDULING,
            help=f"Place pods that name this scheduler; {DEFAULT_NAME} if nothing is said. May be repeated. "
            "A profile of that name in the KubeSchedulerConfiguration gives its rules.",
        ),
        commands.Option("--dry-run", is_flag=True, heading=_SCHEDULING, help="Decide and tell, but write nothing."),
        commands.Option(
            "--kube-api-qps",
            type=click.FloatRange(min=0),
            default=0.0,
            metavar="N",
            heading=_SCHEDULING,
            help="Requests a second that we allow ourselves; 0 for no limit of our own.",
        ),
        commands.Option(
            "--kube-api-burst",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            heading=_SCHEDULING,
            help="Requests at once, if --kube-api-qps is set.",
        ),
        commands.Option(
            "--record",
            metavar="FILE",
            type=click.Path(dir_okay=False),
            heading=_SCHEDULING,
            help="Write every decision and what it depended on, for `bayplan replay`.",
        ),
        commands.Option(
            "--leader-elect/--no-leader-elect",
            default=True,
            show_default=True,
            heading=_ELECTION,
            help="Of several replicas, let one schedule.",
        ),
        commands.Option(
            "--leader-elect-resource-namespace",
            metavar="NAME",
            default="kube-system",
            show_default=True,
            heading=_ELECTION,
            help="Namespace of the lease.",
        ),
        commands.Option(
            "--leader-elect-resource-name",
            metavar="NAME",
            default=DEFAULT_NAME,
            show_default=True,
            heading=_ELECTION,
            help="Name of the lease.",
        ),
        commands.Option(
            "--leader-elect-lease-duration",
            metavar="TIME",
            type=value_types.Duration(positive=True),
            default="15s",
            show_default=True,
            heading=_ELECTION,
            help="A standby takes over after this time of silence.",
        ),
        commands.Option(
            "--leader-elect-renew-deadline",
            metavar="TIME",
            type=value_types.Duration(positive=True),
            default="10s",
            show_default=True,
            heading=_ELECTION,
            help="The leader stops if it cannot renew the lease for this time.",
        ),
        commands.Option(
            "--leader-elect-retry-period",
            metavar="TIME",
            type=value_types.Duration(positive=True),
            default="2s",
            show_default=True,
            heading=_ELECTION,
            help="Between two tries.",
        ),
        commands.Option(
            "--metrics-bind-address",
            metavar="HOST:PORT",
            type=value_types.ListenAddress(optional=True),
            default=DEFAULT_ADDRESS,
            show_default=True,
            heading=_SERVING,
            help="Where /metrics is; 0 for nowhere.",
        ),
        commands.Option(
            "--health-probe-bind-address",
            metavar="HOST:PORT",
            type=value_types.ListenAddress(optional=True),
            default=DEFAULT_ADDRESS,
            show_default=True,
            heading=_SERVING,
            help="Where /healthz, /livez and /readyz are; 0 for nowhere.",
        ),
        commands.Option(
            "--explain-bind-address",
            metavar="HOST:PORT",
            type=value_types.ListenAddress(optional=True),
            default="0",
            show_default=True,
            heading=_SERVING,
            help="Address of /explain?pod=NAMESPACE/NAME, which explains a pod as `bayplan explain -o json` does; 0 to "
            "disable it. Responses name pods of all namespaces, and the endpoint keeps a copy of the index while it "
            "is in use.",
        ),
    ),
)
def run(
    *,
    scheduler_name: tuple[str, ...],
    dry_run: bool,
    kube_api_qps: float,
    kube_api_burst: int,
    record: str | None,
    leader_elect: bool,
    leader_elect_resource_namespace: str,
    leader_elect_resource_name: str,
    leader_elect_lease_duration: str,
    leader_elect_renew_deadline: str,
    leader_elect_retry_period: str,
    metrics_bind_address: str,
    health_probe_bind_address: str,
    explain_bind_address: str,
    connecting: connecting.Connecting,
    deciding: options.Deciding,
    enforcing: Enforcing,
    hooking: Hooking,
    restricting: guarding.Restricting,
    auditing: Auditing,
    console: Console,
) -> int:
    """Run until stopped."""
    from bayplan.live import logs
    from bayplan.live.assembly import Election, SchedulerSettings
    from bayplan.live.event_loop import IterationTimer
    from bayplan.live.running import RunningScheduler

    logs.to_standard_error(_level(console), as_json=console.log_format == "json")
    times = (leader_elect_lease_duration, leader_elect_renew_deadline, leader_elect_retry_period)
    lease, deadline, retry = map(value_types.seconds, times)
    election = Election(
        namespace=leader_elect_resource_namespace,
        name=leader_elect_resource_name,
        lease_duration=lease,
        renew_deadline=deadline,
        retry_period=retry,
    )
    settings = SchedulerSettings(
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        semantics=deciding.parsed_semantics(),
        seed=deciding.seed,
        election=election if leader_elect else None,
        addresses=_addresses(metrics_bind_address, health_probe_bind_address, explain_bind_address),
        explain_address=next(iter(_addresses(explain_bind_address)), None),
        dry_run=dry_run,
        record=record or "",
        scheduler=configuration.current().scheduler,
        enforcement=enforcing.settings(),
        enforcement_dry_run=enforcing.is_dry,
        quota=hooking.webhook,
    )
    profiles = _profiles(scheduler_name or (DEFAULT_NAME,))
    connection = connecting.open(qps=kube_api_qps, burst=kube_api_burst)
    webhook = hooking.settings(settings.semantics, restricting.settings())
    audits = functools.partial(run_audit.opened, auditing, connecting)
    loop_timer = IterationTimer()
    begin = functools.partial(RunningScheduler, connection, profiles, settings)
    loop_timer.run(lambda: _run(connection, begin, webhook, audits, loop_timer))
    return outcomes.YES


async def _run(
    connection: Connection,
    begin: Callable[[], RunningScheduler],
    webhook: WebhookSettings | None,
    audits: Callable[[RunningScheduler], contextlib.AbstractAsyncContextManager[None]],
    loop_timer: IterationTimer,
) -> None:
    async with connection:
        running = begin()
        loop_timer.on_iteration = running.observe_loop_iteration
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sign, running.stop)
        loop.add_signal_handler(signal.SIGUSR1, running.toggle_enforcement)
        async with run_webhook.opened(webhook, connection, running), audits(running):
            await running.run()


def _profiles(names: tuple[str, ...]) -> Profiles:
    """Scheduler name → rules: of the configuration's profile of that name, else of its first one, else defaults."""
    from bayplan.errors import Fault, InputError
    from bayplan.reading import scheduler_config
    from bayplan.rules import profiles as profile

    found = configuration.current()
    try:
        return {name: profile.pod_rules(scheduler_config.profile_of(found.scheduler, name)) for name in names}
    except InputError as error:
        faults = [Fault(f.message, file=found.file, subject=f.subject, path=f.path) for f in error.faults]
        raise InputError(faults) from None


def _addresses(*texts: str) -> tuple[ServerAddress, ...]:
    """Each address once; `0` stands for none."""
    from bayplan.live.assembly import ServerAddress

    parts = [value_types.host_and_port(text) for text in texts if not value_types.is_nowhere(text)]
    return tuple(dict.fromkeys(ServerAddress(host or "127.0.0.1", port) for host, port in parts))


def _level(console: Console) -> int:
    if console.verbosity < 0:
        return logging.WARNING
    return logging.DEBUG if console.verbosity > 0 else logging.INFO
