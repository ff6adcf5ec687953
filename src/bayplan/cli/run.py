"""`bayplan run`: the live scheduler."""

from __future__ import annotations

import functools
import logging
import socket
import uuid
from typing import TYPE_CHECKING

import click

from bayplan.cli import (
    commands,
    configuration,
    connection_options,
    guard_options,
    options,
    run_audit,
    value_types,
)
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.cli.enforcement_options import ENFORCEMENT, EnforcementOptions
from bayplan.cli.fleet_options import FLEET, FleetOptions
from bayplan.cli.run_audit import PERIODIC_AUDIT, PeriodicAuditOptions
from bayplan.cli.run_webhook import WEBHOOK, WebhookOptions

if TYPE_CHECKING:
    from bayplan.live.assembly import ServerAddress

log = logging.getLogger(__name__)

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
        FLEET,
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
            "bindings if the API server serves Karmada's bindings or clusters, else pods.",
        ),
        commands.Option(
            "--fleet-context",
            metavar="NAME",
            heading=_SCHEDULER,
            help="Schedule pods, and in the same process the bindings of the Karmada control plane of this context.",
        ),
        commands.Option(
            "--fleet-kubeconfig",
            metavar="FILE",
            type=click.Path(),
            heading=_SCHEDULER,
            help="The kubeconfig file of that control plane, if it is another one; its current context by default.",
        ),
        commands.Option("--dry-run", is_flag=True, heading=_SCHEDULER, help="Log decisions, but write nothing."),
        commands.Option(
            "--kube-api-qps",
            type=click.FloatRange(min=0),
            default=0.0,
            metavar="N",
            heading=_SCHEDULER,
            help="Maximum number of requests per second to the API server; 0 for no limit. Events are limited "
            "apart from other requests, to the same number.",
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
            "--max-binding-constraints",
            type=click.IntRange(min=0),
            default=1000,
            show_default=True,
            metavar="N",
            heading=_SCHEDULER,
            help="Do not schedule bindings whose placement has more scheduling constraints than this: groups of "
            "clusters, each of which counts as ten, tiers, requirements, tolerations and spread constraints. Such a "
            "binding gets an event. 0 for no limit.",
        ),
        commands.Option(
            "--place-group-members",
            is_flag=True,
            heading=_SCHEDULER,
            help="Place pods that are in a group one by one, like others. By default a group is placed as a whole: all "
            "members that must run, or none.",
        ),
        commands.Option(
            "--max-group-members",
            type=click.IntRange(min=0),
            default=1000,
            show_default=True,
            metavar="N",
            heading=_SCHEDULER,
            help="Do not place groups with more members than this. Their pods get an event. 0 for no limit.",
        ),
        commands.Option(
            "--group-timeout",
            metavar="TIME",
            type=value_types.Duration(),
            default="5m",
            show_default=True,
            heading=_SCHEDULER,
            help="Report a group that has waited this long, with an event. If it was bound in part and never ran as a "
            "whole, as after a crash, its bound members are deleted, so that their controllers create them anew. The "
            "others are still tried. 0s for never.",
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
            "does, and of /explain?binding=NAMESPACE/NAME; 0 to disable it. Responses describe pods of all namespaces, "
            "and the endpoint keeps a copy of the index while it is in use.",
        ),
    ),
)
def run(
    *,
    scheduler_name: tuple[str, ...],
    name_other_namespaces: bool,
    fleet: bool | None,
    fleet_context: str | None,
    fleet_kubeconfig: str | None,
    dry_run: bool,
    kube_api_qps: float,
    kube_api_burst: int,
    max_pod_constraints: int,
    place_group_members: bool,
    max_group_members: int,
    group_timeout: str,
    max_binding_constraints: int,
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
    fleets: FleetOptions,
    webhook_options: WebhookOptions,
    guard: guard_options.GuardOptions,
    periodic_audit: PeriodicAuditOptions,
    console: Console,
) -> int:
    """Run until stopped."""
    from bayplan.cli import server_version
    from bayplan.cli.scheduler_choice import SchedulerChoice
    from bayplan.explaining.peer_names import PeerNames
    from bayplan.live import logs
    from bayplan.live.assembly import Election, SchedulerSettings
    from bayplan.live.event_loop import IterationTimer
    from bayplan.live.known_groups import GroupLimits
    from bayplan.writing import recordings

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
    # What is wrong with the options is reported before a server is asked.
    value_types.semantics_with(decisions.semantics, decisions.switch)
    fleets.estimator()
    if record:
        recordings.check_path(record)
    connection = cluster.open(qps=kube_api_qps, burst=kube_api_burst)
    version = server_version.adopted(connection, decisions.kubernetes_version, log.warning)
    settings = SchedulerSettings(
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        semantics=value_types.semantics_with(decisions.semantics, decisions.switch, version),
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
        places_group_members=place_group_members,
        groups=GroupLimits(max_members=max_group_members, timeout=value_types.seconds(group_timeout)),
        max_binding_constraints=max_binding_constraints,
        fail_back_per_minute=fleets.fail_back_per_minute,
        estimator=fleets.estimator(),
        names_other_namespaces=name_other_namespaces,
        reserve_after=value_types.seconds(reserve_after),
        max_reservations=max_reservations,
    )
    profiles = {name: options.configured_rules(name) for name in scheduler_name or (DEFAULT_SCHEDULER_NAME,)}
    of_fleet = cluster.of_another(fleet_context, fleet_kubeconfig)
    names_seen = PeerNames(name_other_namespaces)
    choice = SchedulerChoice(
        connection=connection,
        fleet=fleet,
        fleet_connection=None if of_fleet is None else of_fleet.open(qps=kube_api_qps, burst=kube_api_burst),
        settings=settings,
        profiles=profiles,
        keys=decisions.label_keys(),
        webhook=functools.partial(webhook_options.settings, settings.semantics, guard.settings(), names_seen),
        audits=functools.partial(run_audit.opened, periodic_audit, cluster) if periodic_audit.audit else None,
    )
    choice.check()
    loop_timer = IterationTimer()
    loop_timer.run(lambda: choice.run(loop_timer))
    return commands.EXIT_YES


def _addresses(*texts: str) -> tuple[ServerAddress, ...]:
    """The addresses without duplicates and without those that are disabled."""
    from bayplan.live.assembly import ServerAddress

    parts = [value_types.host_and_port(text) for text in texts if not value_types.is_disabled(text)]
    return tuple(dict.fromkeys(ServerAddress(host or "127.0.0.1", port) for host, port in parts))
