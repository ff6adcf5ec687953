"""`bayplan run`: the live scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import signal
import socket
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli import (
    commands,
    configuration,
    connection_options,
    guard_options,
    options,
    run_audit,
    run_webhook,
    value_types,
)
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.cli.enforcement_options import ENFORCEMENT, EnforcementOptions
from bayplan.cli.run_audit import PERIODIC_AUDIT, PeriodicAuditOptions
from bayplan.cli.run_webhook import WEBHOOK, WebhookOptions

if TYPE_CHECKING:
    from bayplan.kube_api.connection import Connection
    from bayplan.live.assembly import ServerAddress
    from bayplan.live.event_loop import IterationTimer
    from bayplan.live.process import SchedulerProcess
    from bayplan.live.running import RunningScheduler
    from bayplan.live.running_fleet import RunningFleetScheduler
    from bayplan.webhook.running import WebhookSettings

_SCHEDULER, _ELECTION, _SERVING = "Scheduler", "Leader election", "Metrics, health and explanations"
DEFAULT_SCHEDULER_NAME = "bayplan"
DEFAULT_ADDRESS = "127.0.0.1:10351"


@commands.command(
    "run",
    summary=SUMMARIES["run"],
    examples=(
        "bayplan run --context prod --dry-run -v",
        "bayplan run --context prod --scheduler-name bayplan",
        "bayplan run --no-leader-elect --metrics-bind-address 0.0.0.0:10351",
        "bayplan run --record decisions.jsonl",
    ),
    details=(
        "Schedules the pods whose spec.schedulerName is one of --scheduler-name. Other pods are left to their own "
        "scheduler and only counted, so it can run beside kube-scheduler. On a Karmada control plane it schedules "
        "bindings on clusters in the same way, beside karmada-scheduler. With --leader-elect, one of several replicas "
        "schedules, and the others watch the cluster to take over at once. It keeps no state outside the API server. "
        "SIGTERM stops it gracefully. Exit code 0 when stopped, 3 if the API server denies access or leadership is "
        "lost."
    ),
    groups=(
        connection_options.CONNECTION,
        options.DECISIONS,
        ENFORCEMENT,
        WEBHOOK,
        guard_options.GUARD,
        PERIODIC_AUDIT,
        options.CONSOLE,
    ),
    params=(
        commands.Option(
            "--scheduler-name",
            multiple=True,
            metavar="NAME",
            type=value_types.Name(),
            heading=_SCHEDULER,
            help="Schedule pods with this spec.schedulerName. The rules are those of the profile of that name in the "
            f"KubeSchedulerConfiguration. May be repeated. By default {DEFAULT_SCHEDULER_NAME}.",
        ),
        commands.Option(
            "--name-other-namespaces",
            is_flag=True,
            heading=_SCHEDULER,
            help="Name pods of other namespaces in events, in answers of the webhook and of /explain. By default these "
            "say that a pod of another namespace is involved, because the owners of a pod can read them.",
        ),
        commands.Option(
            "--fleet/--no-fleet",
            default=None,
            heading=_SCHEDULER,
            help="Schedule the bindings of a Karmada control plane on its clusters, or pods on nodes. By default "
            "bindings if the API server serves clusters.karmada.io, else pods.",
        ),
        commands.Option("--dry-run", is_flag=True, heading=_SCHEDULER, help="Log decisions, but write nothing."),
        commands.Option(
            "--kube-api-qps",
            type=click.FloatRange(min=0),
            default=0.0,
            metavar="N",
            heading=_SCHEDULER,
            help="Maximum number of requests per second to the API server; 0 for no limit.",
        ),
        commands.Option(
            "--kube-api-burst",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            heading=_SCHEDULER,
            help="Maximum burst of requests, if --kube-api-qps is set.",
        ),
        commands.Option(
            "--max-pod-constraints",
            type=click.IntRange(min=0),
            default=1000,
            show_default=True,
            metavar="N",
            heading=_SCHEDULER,
            help="Do not schedule pods with more scheduling constraints than this: terms and their requirements, "
            "spread constraints, tolerations, volumes, ports, resources and labels. Such a pod gets an event. 0 for "
            "no limit.",
        ),
        commands.Option(
            "--reserve-after",
            metavar="TIME",
            type=value_types.Duration(),
            default="0s",
            show_default=True,
            heading=_SCHEDULER,
            help="Reserve a node for a pod that has been unschedulable for nothing but resources for this long: "
            "pods of lower or equal priority leave the node's resources to it. Nothing is evicted for it. The "
            "reservation ends after ten times as long. 0s for no reservations.",
        ),
        commands.Option(
            "--max-reservations",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            metavar="N",
            heading=_SCHEDULER,
            help="Maximum number of nodes reserved at once, if --reserve-after is set.",
        ),
        commands.Option(
            "--record",
            metavar="FILE",
            type=click.Path(dir_okay=False),
            heading=_SCHEDULER,
            help="Record every decision and the state that it depends on in this file, for `bayplan replay`.",
        ),
        commands.Option(
            "--leader-elect/--no-leader-elect",
            default=True,
            show_default=True,
            heading=_ELECTION,
            help="Elect a leader, so that only one of several replicas schedules.",
        ),
        commands.Option(
            "--leader-elect-resource-namespace",
            metavar="NAME",
            default="kube-system",
            show_default=True,
            heading=_ELECTION,
            help="Namespace of the Lease.",
        ),
        commands.Option(
            "--leader-elect-resource-name",
            metavar="NAME",
            default=DEFAULT_SCHEDULER_NAME,
            show_default=True,
            heading=_ELECTION,
            help="Name of the Lease.",
        ),
        commands.Option(
            "--leader-elect-lease-duration",
            metavar="TIME",
            type=value_types.Duration(positive=True),
            default="15s",
            show_default=True,
            heading=_ELECTION,
            help="Time after the last renewal when another replica may acquire the lease.",
        ),
        commands.Option(
            "--leader-elect-renew-deadline",
            metavar="TIME",
            type=value_types.Duration(positive=True),
            default="10s",
            show_default=True,
            heading=_ELECTION,
            help="Time after which the leader stops if it cannot renew the lease.",
        ),
        commands.Option(
            "--leader-elect-retry-period",
            metavar="TIME",
            type=value_types.Duration(positive=True),
            default="2s",
            show_default=True,
            heading=_ELECTION,
            help="Interval between attempts to acquire or renew the lease.",
        ),
        commands.Option(
            "--metrics-bind-address",
            metavar="HOST:PORT",
            type=value_types.ListenAddress(optional=True),
            default=DEFAULT_ADDRESS,
            show_default=True,
            heading=_SERVING,
            help="Listen address of /metrics; 0 to disable it.",
        ),
        commands.Option(
            "--health-probe-bind-address",
            metavar="HOST:PORT",
            type=value_types.ListenAddress(optional=True),
            default=DEFAULT_ADDRESS,
            show_default=True,
            heading=_SERVING,
            help="Listen address of /healthz, /livez and /readyz; 0 to disable them.",
        ),
        commands.Option(
            "--explain-bind-address",
            metavar="HOST:PORT",
            type=value_types.ListenAddress(optional=True),
            default="0",
            show_default=True,
            heading=_SERVING,
            help="Listen address of /explain?pod=NAMESPACE/NAME, which explains a pod as `bayplan explain -o json` "
            "does; 0 to disable it. Responses describe pods of all namespaces, and the endpoint keeps a copy of the "
            "index while it is in use.",
        ),
    ),
)
def run(
    *,
    scheduler_name: tuple[str, ...],
    name_other_namespaces: bool,
    fleet: bool | None,
    dry_run: bool,
    kube_api_qps: float,
    kube_api_burst: int,
    max_pod_constraints: int,
    reserve_after: str,
    max_reservations: int,
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
    cluster: connection_options.ConnectionOptions,
    decisions: options.DecisionOptions,
    enforcement: EnforcementOptions,
    webhook_options: WebhookOptions,
    guard: guard_options.GuardOptions,
    periodic_audit: PeriodicAuditOptions,
    console: Console,
) -> int:
    """Run until stopped."""
    from bayplan.explaining.peer_names import PeerNames
    from bayplan.live import logs
    from bayplan.live.assembly import Election, SchedulerSettings
    from bayplan.live.event_loop import IterationTimer
    from bayplan.live.running import RunningScheduler
    from bayplan.live.running_fleet import RunningFleetScheduler

    level = logging.WARNING if console.verbosity < 0 else logging.DEBUG if console.verbosity else logging.INFO
    logs.to_standard_error(level, as_json=console.log_format == "json")
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
        semantics=value_types.semantics_with(decisions.semantics, decisions.switch, decisions.kubernetes_version),
        seed=decisions.seed,
        election=election if leader_elect else None,
        addresses=_addresses(metrics_bind_address, health_probe_bind_address, explain_bind_address),
        explain_address=next(iter(_addresses(explain_bind_address)), None),
        dry_run=dry_run,
        record=record or "",
        scheduler=configuration.current().scheduler,
        enforcement=enforcement.settings(),
        enforcement_dry_run=enforcement.is_dry,
        quota=webhook_options.webhook,
        max_pod_constraints=max_pod_constraints,
        names_other_namespaces=name_other_namespaces,
        reserve_after=value_types.seconds(reserve_after),
        max_reservations=max_reservations,
    )
    profiles = {name: options.configured_rules(name) for name in scheduler_name or (DEFAULT_SCHEDULER_NAME,)}
    connection = cluster.open(qps=kube_api_qps, burst=kube_api_burst)
    webhook = webhook_options.settings(settings.semantics, guard.settings(), PeerNames(name_other_namespaces))
    audits = functools.partial(run_audit.opened, periodic_audit, cluster)
    loop_timer = IterationTimer()
    given = {
        "--enforcement": settings.enforcement is not None,
        "--webhook": webhook is not None,
        "--audit": periodic_audit.audit,
        "--explain-bind-address": settings.explain_address is not None,
        "--reserve-after": settings.reserve_after > 0,
    }
    names, keys = list(profiles), decisions.label_keys()
    choice = SchedulerChoice(
        fleet,
        functools.partial(RunningFleetScheduler, connection, names, settings, keys),
        functools.partial(RunningScheduler, connection, profiles, settings),
        [name for name, is_given in given.items() if is_given],
    )
    loop_timer.run(lambda: _run(connection, choice, webhook, audits, loop_timer))
    return commands.EXIT_YES


class SchedulerChoice(msgspec.Struct, frozen=True):
    """Whether bindings or pods are scheduled (`fleet` None: by discovery), and the given options for pods alone."""

    fleet: bool | None
    of_bindings: Callable[[], RunningFleetScheduler]
    of_pods: Callable[[], RunningScheduler]
    options_of_pods: list[str]

    async def is_taken(self, connection: Connection) -> bool:
        """Whether bindings are scheduled on this API server; a usage error if there are options for pods."""
        from bayplan.watching import fleet_resources

        taken = await fleet_resources.is_fleet(connection) if self.fleet is None else self.fleet
        if taken and self.options_of_pods:
            names = ", ".join(self.options_of_pods)
            raise click.UsageError(f"not available for bindings of a Karmada control plane: {names}")
        return taken


async def _run(
    connection: Connection,
    choice: SchedulerChoice,
    webhook: WebhookSettings | None,
    audits: Callable[[RunningScheduler], contextlib.AbstractAsyncContextManager[None]],
    loop_timer: IterationTimer,
) -> None:
    async with connection:
        if await choice.is_taken(connection):
            fleet = choice.of_bindings()
            _follow(fleet, loop_timer)
            await fleet.run()
            return
        running = choice.of_pods()
        _follow(running, loop_timer)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, running.toggle_enforcement)
        async with run_webhook.opened(webhook, connection, running), audits(running):
            await running.run()


def _follow(running: SchedulerProcess[Any], loop_timer: IterationTimer) -> None:
    """Measure the loop of a scheduler, and stop it on a signal."""
    loop_timer.on_iteration = running.observe_loop_iteration
    for stopping in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(stopping, running.stop)


def _addresses(*texts: str) -> tuple[ServerAddress, ...]:
    """The addresses without duplicates and without those that are disabled."""
    from bayplan.live.assembly import ServerAddress

    parts = [value_types.host_and_port(text) for text in texts if not value_types.is_disabled(text)]
    return tuple(dict.fromkeys(ServerAddress(host or "127.0.0.1", port) for host, port in parts))
