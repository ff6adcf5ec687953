"""The options of `run` for the admission webhook, and the cluster state that the webhook reads."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from bayplan.cli import value_types
from bayplan.cli.commands import Option, OptionGroup

if TYPE_CHECKING:
    from bayplan.enforcing.quota import QuotaLimits
    from bayplan.explaining.peer_names import PeerNames
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.kube_api.connection import Connection
    from bayplan.live.process import SchedulerProcess
    from bayplan.live.running import RunningScheduler
    from bayplan.model.semantics import Semantics
    from bayplan.model.workloads import Workload
    from bayplan.validating.guard import GuardSettings
    from bayplan.webhook.manifests import WebhookAddress
    from bayplan.webhook.reviewers import ClusterView
    from bayplan.webhook.running import WebhookSettings
    from bayplan.webhook.serving import WebhookServer

_HEADING = "Admission webhook"
log = logging.getLogger("bayplan.webhook")


class WebhookOptions(msgspec.Struct, frozen=True):
    """Whether a webhook is served, its listen address, and the address that API servers use."""

    webhook: bool
    webhook_bind_address: str
    webhook_service: str
    webhook_url: str | None
    webhook_cert_file: str | None
    webhook_key_file: str | None
    webhook_path_file: str | None
    webhook_client_ca_file: str | None
    webhook_client_name: tuple[str, ...]
    quota_charge: Literal["largest", "average"]

    def settings(
        self, semantics: Semantics, guard: GuardSettings, names: PeerNames, *, fleet: bool = False
    ) -> WebhookSettings | None:
        """The webhook, for pods or for a Karmada control plane; None if it is off."""
        if not self.webhook:
            return None
        from bayplan.webhook import admission_handler
        from bayplan.webhook.running import WebhookSettings

        host, port = value_types.host_and_port(self.webhook_bind_address)
        address = webhook_address(self.webhook_service, self.webhook_url)
        return WebhookSettings(
            settings=admission_handler.AdmissionSettings(
                semantics=semantics, guard=guard, own_namespace=address.namespace, charge=self.quota_charge, names=names
            ),
            address=address,
            host=host,
            port=port,
            certificate=self.webhook_cert_file or "",
            key=self.webhook_key_file or "",
            path_file=self.webhook_path_file or "",
            client_ca=self.webhook_client_ca_file or "",
            client_names=self.webhook_client_name,
            fleet=fleet,
        )


def webhook_address(service: str, url: str | None) -> WebhookAddress:
    """Return where API servers reach the webhook; a usage error unless the Service is NAMESPACE/NAME."""
    from bayplan.webhook.manifests import WebhookAddress

    namespace, _, name = service.partition("/")
    if not namespace or not name:
        expected = f"expected NAMESPACE/NAME, got {service!r}"
        raise click.BadParameter(expected, param_hint="--webhook-service")
    return WebhookAddress(namespace=namespace, service=name, url=url or "")


class SchedulerView:
    """The cluster state of the scheduler in the same process, for the webhook; the rest is read from the API server."""

    def __init__(self, running: RunningScheduler, connection: Connection) -> None:
        self._running, self._connection = running, connection

    @property
    def synced(self) -> bool:
        return self._running.synced

    @property
    def index(self) -> PlacementIndex:
        return self._running.state.index

    @property
    def limits(self) -> QuotaLimits:
        return self._running.state.quota_limits

    async def pending(self, namespace: str) -> Iterable[Workload]:
        from bayplan.webhook import in_cluster

        return await in_cluster.pending_pods(self._connection, namespace)

    async def pod(self, namespace: str, name: str) -> Workload | None:
        return await self._running.pod(namespace, name)


@contextlib.asynccontextmanager
async def opened(
    webhook: WebhookSettings | None,
    connection: Connection,
    running: SchedulerProcess[Any],
    view: ClusterView | None = None,
) -> AsyncIterator[None]:
    """Serve the webhook inside the block, if there is one; without a view it reviews nothing by the cluster's state."""
    if webhook is None:
        yield
        return
    from bayplan.webhook import running as serving

    async with serving.serve(
        webhook,
        connection,
        lambda error: log.error(str(error)),
        view,
        running.observe_review,
    ) as server:
        add_counters(running, server)
        log.info("webhook", extra={"address": f"{webhook.host}:{webhook.port}"})
        yield


def add_counters(running: SchedulerProcess[Any], server: WebhookServer) -> None:
    """Add what the limits of the webhook have done, and until when its certificate is valid, to the metrics."""
    for name, text, counts in (
        (
            "bayplan_admission_reviews_shed",
            "Number of admission reviews that were not answered because of overload, by the limit.",
            server.endpoint.shed,
        ),
        (
            "bayplan_webhook_requests_refused",
            "Number of requests to the webhook that were not from its API server, by what was wrong.",
            server.endpoint.refused,
        ),
        (
            "bayplan_webhook_connections_closed",
            "Number of connections to the webhook that were closed because of a limit, by the limit.",
            server.server.closed,
        ),
    ):
        running.metrics.counter(name, text, functools.partial(_samples, counts), ("cause",))
    running.metrics.gauge(
        "bayplan_webhook_certificate_expiry_timestamp_seconds",
        "Time when the certificate that the webhook serves expires; no sample while there is none.",
        lambda: [((), server.tls.expires.timestamp())] if server.tls.expires else [],
    )


def _samples(counts: Mapping[str, int]) -> Iterable[tuple[tuple[str, ...], float]]:
    return [((cause,), float(n)) for cause, n in list(counts.items())]


SERVICE = Option(
    "--webhook-service",
    metavar="NAMESPACE/NAME",
    default="bayplan-system/bayplan-webhook",
    show_default=True,
    heading=_HEADING,
    help="Service through which API servers reach the webhook. Objects in its namespace are never rejected.",
)
URL = Option(
    "--webhook-url",
    metavar="URL",
    heading=_HEADING,
    help="URL through which API servers reach the webhook, instead of a Service.",
)
WEBHOOK = OptionGroup(
    "webhook_options",
    WebhookOptions,
    (
        Option(
            "--webhook",
            is_flag=True,
            heading=_HEADING,
            help="Serve an admission webhook with the checks of `bayplan validate`, of bindings and of the quota.",
        ),
        Option(
            "--webhook-bind-address",
            metavar="HOST:PORT",
            type=value_types.ListenAddress(),
            default="0.0.0.0:9443",
            show_default=True,
            heading=_HEADING,
            help="Listen address of the webhook.",
        ),
        SERVICE,
        URL,
        Option(
            "--webhook-cert-file",
            metavar="FILE",
            type=click.Path(),
            heading=_HEADING,
            help="Serving certificate, reloaded when the file changes. By default a certificate is generated, stored "
            "in a Secret and rotated, which needs the rights of `bayplan webhook-certificates`.",
        ),
        Option(
            "--webhook-key-file",
            metavar="FILE",
            type=click.Path(),
            heading=_HEADING,
            help="Private key of the serving certificate.",
        ),
        Option(
            "--webhook-path-file",
            metavar="FILE",
            type=click.Path(),
            heading=_HEADING,
            help="Secret path segments by which API servers are recognised, one a line, reloaded when the file "
            "changes. Belongs to --webhook-cert-file.",
        ),
        Option(
            "--webhook-client-ca-file",
            metavar="FILE",
            type=click.Path(),
            heading=_HEADING,
            help="Serve only clients with a certificate of this authority.",
        ),
        Option(
            "--webhook-client-name",
            metavar="NAME",
            multiple=True,
            heading=_HEADING,
            help="Common name or DNS name that the client certificate must have; repeatable, any by default.",
        ),
        Option(
            "--quota-charge",
            type=click.Choice(["largest", "average"]),
            default="largest",
            show_default=True,
            heading=_HEADING,
            help="What a pending exclusive pod is charged for: the largest domain that it may be placed in, or the "
            "average of these domains.",
        ),
    ),
)
