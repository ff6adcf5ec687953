"""The webhook of Bayplan, called by a real API server, in the event loop of the test."""

import asyncio
import contextlib
from datetime import UTC, datetime

import msgspec

from bayplan.enforcing.quota import NO_LIMITS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.webhook import certificates, manifests, serving
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from bayplan.webhook.certificates import CertificateLifetimes, CertificateRotator
from bayplan.webhook.secret_paths import AcceptedPaths
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod
from live.admin import ApiError, wait_for
from webhook.admission_reviews import MemoryStore

CONFIGURATIONS = tuple(
    f"admissionregistration.k8s.io/v1/{kind}webhookconfigurations" for kind in ("validating", "mutating")
)
DEFAULT = AdmissionSettings()


class ObservedView:
    """The cluster as last read by `read`."""

    synced = True

    def __init__(self, limits=NO_LIMITS):
        self.index = PlacementIndex()
        self.limits = limits
        self._pending = {}

    async def read(self, admin):
        for written in await admin.items("nodes"):
            if written["metadata"]["name"] not in self.index.slots.by_name:
                self.index.add_target(targets.target_of_node(msgspec.convert(written, Node)))
        for written in await admin.items("pods"):
            workload = pods.workload_of(msgspec.convert(written, Pod))
            node = written["spec"].get("nodeName")
            if node and workload.key not in self.index.records:
                self.index.add(workload, node)
                self._pending.pop(workload.key, None)
            elif not node:
                self._pending[workload.key] = workload

    async def pending(self, namespace):
        return [workload for workload in self._pending.values() if workload.namespace == namespace]

    async def pod(self, namespace, name):
        key = f"{namespace}/{name}"
        record = self.index.records.get(key)
        return record.workload if record else self._pending.get(key)


class ServedWebhook:
    """A running webhook. `reviews` has the path and verdict of each review; `close` stops it but keeps its configuration."""

    def __init__(self, admin, rotator, server, written):
        self.admin, self.rotator, self.server = admin, rotator, server
        self.configurations = written
        self.reviews = []
        self._stack = contextlib.AsyncExitStack()

    async def close(self):
        await self._stack.aclose()


@contextlib.asynccontextmanager
async def serving_webhook(
    admin, settings=DEFAULT, view=None, *, failure_policy="Fail", lifetimes=None, now=None, new_connections=False
):
    """
    Serve a webhook inside the block, which begins after the API server has called it once.

    With `new_connections` every request uses a new TLS connection, and so the current certificate.
    """
    tls, paths, written = certificates.ServerTls(), AcceptedPaths(), []

    async def patch(resource, name, change):
        await admin.patch(resource, name, change, how="strategic")

    async def inject(bundle, segment):
        await manifests.client_config_injector(patch, address, written)(bundle, segment)

    webhook = ServedWebhook(admin, None, None, written)
    endpoint = serving.ReviewEndpoint(
        AdmissionHandler(settings, view), paths, lambda path, allowed, seconds: webhook.reviews.append((path, allowed))
    )
    lifetimes = lifetimes or CertificateLifetimes()
    webhook.rotator = CertificateRotator(
        ["127.0.0.1"], MemoryStore(), inject, tls=tls, paths=paths, lifetimes=lifetimes
    )
    address = manifests.WebhookAddress(url="https://127.0.0.1")
    await webhook.rotator.rotate(now or datetime.now(UTC))  # the server needs a first certificate
    webhook.server = serving.WebhookServer(endpoint, tls, "127.0.0.1", 0)
    if new_connections:
        endpoint.recognise = lambda _http: None
    await webhook._stack.enter_async_context(webhook.server)
    address = manifests.WebhookAddress(url=f"https://127.0.0.1:{webhook.server.port}")
    written += manifests.manifests(address, settings.own_namespace, failure_policy)
    try:
        for configuration in written:
            await admin.create(configuration)
        await webhook.rotator.rotate(now or datetime.now(UTC))
        await wait_for(lambda: _is_called(webhook))
        yield webhook
    finally:
        for resource in CONFIGURATIONS:
            with contextlib.suppress(ApiError):
                await admin.delete(resource, manifests.NAME)
        await asyncio.sleep(0)
        await webhook.close()
        await wait_for(lambda: _is_no_longer_called(admin))


PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "namespace": "default", "annotations": {"bayplan.io/affinity": "podAffinity: {}"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def _is_called(webhook):
    with contextlib.suppress(ApiError):
        await webhook.admin.create(PROBE, dryRun="All")
    paths = {path for path, _ in webhook.reviews}
    return {serving.PODS, serving.MUTATE} <= paths


async def _is_no_longer_called(admin):
    """Whether the API server no longer calls the removed webhook: until then requests fail."""
    with contextlib.suppress(ApiError):
        await admin.create(PROBE, dryRun="All")
        return True
    return False
