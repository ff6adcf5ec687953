"""
Runs the webhook: the HTTPS server in a thread of its own, together with the task that keeps its certificates current.

Reviews that need the state of the cluster are passed to the loop that owns it, a few at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import pathlib
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from bayplan.errors import BayplanError, InputError
from bayplan.kube_api.connection import Connection
from bayplan.serving.server_thread import ServerThread
from bayplan.webhook import certificates, in_cluster, manifests
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings, StateReview
from bayplan.webhook.certificates import CertificateFiles, CertificateRotator, ServerTls
from bayplan.webhook.manifests import WebhookAddress
from bayplan.webhook.reviewers import ClusterView
from bayplan.webhook.reviews import AdmissionResponse
from bayplan.webhook.secret_paths import NO_SEGMENT, AcceptedPaths, PathFile
from bayplan.webhook.serving import OnReview, ReviewEndpoint, WebhookServer

# Reviews in the loop of the scheduler at any time: the others wait in the thread of the webhook.
STATE_REVIEWS_AT_ONCE = 16


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    Settings of the webhook: `host` and `port` are where it listens, `address` is where API servers reach it.

    `certificate` and `key` are files. With them, certificates and webhook configurations are managed outside of this
    process, and API servers are recognised by the segments in `path_file`, by certificates of `client_ca`, or by both.
    `client_names` are the names that a client certificate must have one of; any, if there are none. `fleet`: the API
    server is Karmada's, on which policies and templates are reviewed.
    """

    settings: AdmissionSettings = AdmissionSettings()
    address: WebhookAddress = WebhookAddress()
    host: str = "0.0.0.0"  # noqa: S104 (API servers come from other machines)
    port: int = 9443
    certificate: str = ""
    key: str = ""
    path_file: str = ""
    client_ca: str = ""
    client_names: tuple[str, ...] = ()
    failure_policy: Literal["Fail", "Ignore"] = "Ignore"
    fleet: bool = False

    def manifests(self) -> list[dict[str, Any]]:
        """Return the webhook configurations; without namespaces to tolerate there is none for mutation."""
        if self.fleet:
            return manifests.fleet_manifests(self.address, self.settings.own_namespace, self.failure_policy)
        mutate = bool(self.settings.guard.tolerate_namespaces)
        return manifests.manifests(self.address, self.settings.own_namespace, self.failure_policy, mutate=mutate)

    def check(self) -> None:
        """Raise InputError if files are missing that belong together."""
        if bool(self.certificate) != bool(self.key):
            raise InputError("the webhook's certificate and its key belong together: give both files or none")
        if self.path_file and not self.certificate:
            raise InputError("a file of path segments belongs to a certificate and a key in files: give all or none")
        if self.certificate and not self.path_file and not self.client_ca:
            raise InputError(
                "the webhook could not tell its API server from other clients: beside the certificate, give a file of "
                "path segments (--webhook-path-file), a CA of client certificates (--webhook-client-ca-file), or both"
            )
        if self.client_names and not self.client_ca:
            raise InputError("names of client certificates need the CA that signs them (--webhook-client-ca-file)")


OnError = Callable[[BayplanError], None]
Maintenance = list[Callable[[], Coroutine[Any, Any, None]]]


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
    webhook.check()
    tls = ServerTls(certificates.read_authorities(webhook.client_ca) if webhook.client_ca else "")
    paths = AcceptedPaths()
    maintenance = await _load_first(webhook, tls, paths, connection, on_error)
    async with contextlib.AsyncExitStack() as stack:
        thread = await stack.enter_async_context(ServerThread())
        on_owner = functools.partial(_few_at_a_time, thread, asyncio.Semaphore(STATE_REVIEWS_AT_ONCE))
        handler = AdmissionHandler(webhook.settings, view, on_owner)
        endpoint = ReviewEndpoint(handler, paths, on_review, webhook.client_names)
        server = WebhookServer(endpoint, tls, webhook.host, webhook.port)
        await stack.enter_async_context(thread.entered(server))
        tasks = [asyncio.create_task(maintain()) for maintain in maintenance]
        try:
            yield server
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _few_at_a_time(thread: ServerThread, turns: asyncio.Semaphore, review: StateReview) -> AdmissionResponse:
    """Run a review in the loop that owns the state of the cluster."""
    try:
        await turns.acquire()
    except asyncio.CancelledError:
        review.close()  # it got no turn in time
        raise
    try:
        return await thread.on_owner(review)
    finally:
        turns.release()


async def _load_first(
    webhook: WebhookSettings, tls: ServerTls, paths: AcceptedPaths, connection: Connection | None, on_error: OnError
) -> Maintenance:
    """Load the first certificate and paths. Return the coroutine functions that maintain them from then on."""
    if not webhook.certificate:
        rotator = certificate_rotator(webhook, connection, on_error, tls, paths)
        await rotator.rotate(datetime.now(UTC))
        return [functools.partial(rotator.run, on_error)]
    files = CertificateFiles(tls, webhook.certificate, webhook.key)
    _reload_unless_absent(files.reload, (webhook.certificate, webhook.key), on_error)
    maintenance: Maintenance = [functools.partial(files.run, on_error)]
    if webhook.path_file:
        path_file = PathFile(paths, webhook.path_file)
        _reload_unless_absent(path_file.reload, (webhook.path_file,), on_error)
        maintenance.append(functools.partial(path_file.run, on_error, certificates.FILE_CHECK_SECONDS))
    else:
        paths.accept([NO_SEGMENT])
    return maintenance


def _reload_unless_absent(reload: Callable[[], object], files: tuple[str, ...], on_error: OnError) -> None:
    """
    Load files. Report, and do not raise, that one is absent from an existing folder: it is tried again later.

    In a cluster the folder is a Secret that another process fills. Until then pods are scheduled, and no
    review is answered.
    """
    try:
        reload()
    except InputError as error:
        absent = [path for path in map(pathlib.Path, files) if not path.exists()]
        if not absent or not all(path.parent.is_dir() for path in absent):
            raise
        on_error(error)


def certificate_rotator(
    webhook: WebhookSettings,
    connection: Connection | None,
    on_error: OnError,
    tls: ServerTls | None = None,
    paths: AcceptedPaths | None = None,
    *,
    configured: Connection | None = None,
) -> CertificateRotator:
    """Return what keeps certificates and paths in a Secret and in the configurations, there or where `configured`."""
    if connection is None:
        raise InputError("managed certificates are stored in an API server; without one, give a certificate and a key")
    store = in_cluster.SecretStore(connection, webhook.settings.own_namespace)
    patch = in_cluster.configuration_patcher(configured or connection, on_error)
    inject = manifests.client_config_injector(patch, webhook.address, webhook.manifests())
    return CertificateRotator(webhook.address.hosts, store, inject, tls=tls, paths=paths)
