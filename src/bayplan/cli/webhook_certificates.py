"""`bayplan webhook-certificates`: what creates and rotates the webhook's certificates, apart from the scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from bayplan.cli import commands, connection_options, options, run_webhook
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.kube_api.connection import Connection
    from bayplan.webhook.running import WebhookSettings

log = logging.getLogger("bayplan.webhook")


@commands.command(
    "webhook-certificates",
    summary=SUMMARIES["webhook-certificates"],
    examples=(
        "bayplan webhook-certificates --context prod",
        "bayplan webhook-certificates --context prod --once",
        "bayplan webhook-certificates --context host --fleet-context karmada",
    ),
    details=(
        "Keeps certificates and secret path segments in the Secret bayplan-webhook-certificates of the webhook's "
        "namespace, and writes the CA bundle and the paths into the webhook configurations. Schedulers mount the "
        "Secret and need no rights for either (`run --webhook-cert-file`, --webhook-key-file, --webhook-path-file). "
        "With --fleet-context the configurations are those of a Karmada control plane, whose API server reaches the "
        "webhook at --webhook-url. "
        "SIGTERM stops it. Exit code 0 when stopped, 3 if the API server denies access or, at the start, does not "
        "answer."
    ),
    groups=(connection_options.CONNECTION, options.CONSOLE),
    params=(
        run_webhook.SERVICE,
        run_webhook.URL,
        commands.Option(
            "--fleet-context",
            metavar="NAME",
            help="Write into the webhook configurations of the Karmada control plane of this context.",
        ),
        commands.Option(
            "--fleet-kubeconfig",
            metavar="FILE",
            type=click.Path(),
            help="The kubeconfig file of that control plane, if it is another one; its current context by default.",
        ),
        commands.Option("--once", is_flag=True, help="Do what is due now and end."),
    ),
)
def webhook_certificates(
    *,
    webhook_service: str,
    webhook_url: str | None,
    fleet_context: str | None,
    fleet_kubeconfig: str | None,
    once: bool,
    cluster: connection_options.ConnectionOptions,
    console: Console,
) -> int:
    """Rotate until stopped."""
    from bayplan.live import logs
    from bayplan.webhook.admission_handler import AdmissionSettings
    from bayplan.webhook.manifests import FLEET_URL
    from bayplan.webhook.running import WebhookSettings

    level = logging.WARNING if console.verbosity < 0 else logging.DEBUG if console.verbosity else logging.INFO
    logs.to_standard_error(level, as_json=console.log_format == "json")
    fleet = cluster.of_another(fleet_context, fleet_kubeconfig)
    address = run_webhook.webhook_address(webhook_service, webhook_url or (FLEET_URL if fleet else None))
    settings = AdmissionSettings(own_namespace=address.namespace)
    webhook = WebhookSettings(settings=settings, address=address, fleet=fleet is not None)
    asyncio.run(_rotate(webhook, cluster.open(), None if fleet is None else fleet.open(), once=once))
    return commands.EXIT_YES


async def _rotate(webhook: WebhookSettings, connection: Connection, fleet: Connection | None, *, once: bool) -> None:
    """Keep the certificates of a webhook in a Secret, and in the configurations there or of a fleet."""
    from bayplan.webhook import in_cluster, running

    def on_error(error: Exception) -> None:
        log.error(str(error))

    async with connection, fleet or contextlib.nullcontext():
        rotator = running.certificate_rotator(webhook, connection, on_error, configured=fleet)
        await rotator.rotate(datetime.now(UTC))
        log.info("certificates", extra={"secret": f"{webhook.settings.own_namespace}/{in_cluster.SECRET}"})
        if once:
            return
        task, loop = asyncio.create_task(rotator.run(on_error)), asyncio.get_running_loop()
        for stopping in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(stopping, functools.partial(task.cancel))
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
