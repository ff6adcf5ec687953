"""Our webhook in front of a real API server, in the test's own event loop."""

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
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod
from live.admin import ApiError, wait_for
from webhook.admission_reviews import MemoryStore

CONFIGURATIONS = tuple(
    f"admissionregistration.k8s.io/v1/{kind}webhookconfigurations" for kind in ("validating", "mutating")
)
DEFAULT = AdmissionSettings()


class SeenView:
    """The cluster as it was when somebody last looked."""

    synced = True

    def __init__(self, limits=NO_LIMITS):
        self.index = PlacementIndex()
        self.limits = limits
        self._waiting = {}

    async def rotate(self, admin):
        for written in await admin.items("nodes"):
            if written["metadata"]["name"] not in self.index.slots.by_name:
                self.index.add_target(targets.target_of_node(msgspec.convert(written, Node)))
        for written in await admin.items("pods"):
            workload = pods.workload_of(msgspec.convert(written, Pod))
            node = written["spec"].get("nodeName")
            if node and workload.key not in self.index.records:
                self.index.add(workload, node)
                self._waiting.pop(workload.key, None)
            elif not node:
                self._waiting[workload.key] = workload

    async def pending(self, namespace):
        return [workload for workload in self._waiting.values() if workload.namespace == namespace]

    async def pod(self, namespace, name):
        key = f"{namespace}/{name}"
        record = self.index.records.get(key)
        return record.workload if record else self._waiting.get(key)


class OpenDoor:
    """A running webhook. `reviews` are the paths and verdicts of all it was asked; `close` ends it and tells nobody."""

    def __init__(self, admin, rotator, server, written):
        self.admin, self.rotator, self.server = admin, rotator, server
        self.configurations = written
        self.reviews = []
        self._stack = contextlib.AsyncExitStack()

    async def close(self):
        await self._stack.aclose()


@contextlib.asynccontextmanager
async def opened(
    admin, settings=DEFAULT, view=None, *, failure_policy="Fail", lifetimes=None, now=None, shakes_hands=False
):
    """
    A webhook that the API server asks, as a context; it has been asked once already when the context begins.

    With `shakes_hands` every request needs a TLS connection of its own, so every one sees what is shown then.
    """
    context, written = certificates.server_context(), []

    async def patch(resource, name, change):
        await admin.patch(resource, name, change, how="strategic")

    async def inject(bundle):
        await manifests.bundle_injector(patch, written)(bundle)

    door = OpenDoor(admin, None, None, written)
    app = serving.application(
        AdmissionHandler(settings, view), lambda path, allowed, seconds: door.reviews.append((path, allowed))
    )
    if shakes_hands:
        app.on_response_prepare.append(_end_connection)
    door.rotator = CertificateRotator(
        context, ["127.0.0.1"], MemoryStore(), inject, lifetimes or CertificateLifetimes()
    )
    await door.rotator.rotate(now or datetime.now(UTC))  # so that the server has something to show
    door.server = await door._stack.enter_async_context(serving.WebhookServer(app, context, "127.0.0.1", 0))
    address = manifests.WebhookAddress(url=f"https://127.0.0.1:{door.server.port}")
    written += manifests.manifests(address, settings.own_namespace, failure_policy)
    try:
        for configuration in written:
            await admin.create(configuration)
        await door.rotator.rotate(now or datetime.now(UTC))
        await wait_for(lambda: _asks(door))
        yield door
    finally:
        for resource in CONFIGURATIONS:
            with contextlib.suppress(ApiError):
                await admin.delete(resource, manifests.NAME)
        await asyncio.sleep(0)
        await door.close()
        await wait_for(lambda: _no_longer_asks(admin))


async def _end_connection(_request, response):
    response.headers["Connection"] = "close"
    response.force_close()


PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "namespace": "default", "annotations": {"bayplan.io/affinity": "podAffinity: {}"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def _asks(door):
    with contextlib.suppress(ApiError):
        await door.admin.create(PROBE, dryRun="All")
    paths = {path for path, _ in door.reviews}
    return {serving.PODS, serving.MUTATE} <= paths


async def _no_longer_asks(admin):
    """Whether the API server has forgotten a webhook that is gone: till then it fails."""
    with contextlib.suppress(ApiError):
        await admin.create(PROBE, dryRun="All")
        return True
    return False
