"""Runs the webhook: the HTTPS server together with the task that keeps its certificates up to date."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from bayplan.errors import BayplanError, InputError
from bayplan.kube_api.connection import Connection
from bayplan.webhook import certificates, in_cluster, manifests, serving
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from bayplan.webhook.certificates import CertificateFiles, CertificateRotator
from bayplan.webhook.manifests import WebhookAddress
from bayplan.webhook.reviewers import ClusterView
from bayplan.webhook.serving import OnReview, WebhookServer


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    Settings of the webhook: `host` and `port` are where it listens, `address` is where API servers reach it.

    `certificate` and `key` are files. With them, certificates and the CA bundle are managed outside of Bayplan.
    """

    settings: AdmissionSettings = AdmissionSettings()
    address: WebhookAddress = WebhookAddress()
    host: str = "0.0.0.0"  # noqa: S104 (API servers come from other machines)
    port: int = 9443
    certificate: str = ""
    key: str = ""
    failure_policy: Literal["Fail", "Ignore"] = "Ignore"

    def manifests(self) -> list[dict[str, Any]]:
        """Return the webhook configurations; without namespaces to tolerate there is none for mutation."""
        mutate = bool(self.settings.guard.tolerate_namespaces)
        return manifests.manifests(self.address, self.settings.own_namespace, self.failure_policy, mutate=mutate)


OnError = Callable[[BayplanError], None]


@contextlib.asynccontextmanager
async def serve(
    webhook: WebhookSettings,
    connection: Connection | None,
    on_error: OnError,
    view: ClusterView | None = None,
    on_review: OnReview | None = None,
) -> AsyncIterator[WebhookServer]:
    """
    Serve the webhook inside the block. The connection is needed only for certificates that Bayplan manages.

    `on_error` receives later errors of certificate management; none of them ends the webhook.
    """
    context = certificates.server_context()
    maintain_certificates = await _load_first_certificate(webhook, context, connection, on_error)
    app = serving.application(AdmissionHandler(webhook.settings, view), on_review)
    async with serving.WebhookServer(app, context, webhook.host, webhook.port) as server:
        task = asyncio.create_task(maintain_certificates())
        try:
            yield server
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _load_first_certificate(
    webhook: WebhookSettings, context: ssl.SSLContext, connection: Connection | None, on_error: OnError
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Load the first certificate into the context. Return the coroutine function that maintains it from then on."""
    if bool(webhook.certificate) != bool(webhook.key):
        raise InputError("the webhook's certificate and its key belong together: give both files or none")
    if webhook.certificate:
        files = CertificateFiles(context, webhook.certificate, webhook.key)
        files.reload()
        return functools.partial(files.run, on_error)
    if connection is None:
        raise InputError("managed certificates are stored in an API server; without one, give a certificate and a key")
    store = in_cluster.SecretStore(connection, webhook.settings.own_namespace)
    inject = manifests.bundle_injector(in_cluster.configuration_patcher(connection, on_error), webhook.manifests())
    rotator = CertificateRotator(context, webhook.address.hosts, store, inject)
    await rotator.rotate(datetime.now(UTC))
    return functools.partial(rotator.run, on_error)
