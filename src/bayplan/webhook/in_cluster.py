"""What the webhook reads from and writes to the API server: its certificates, its configurations, pending pods."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.errors import ClusterError
from bayplan.kube_api import decoding, listing, resources, writes
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ConflictError, NotFoundError
from bayplan.kube_api.listing import Restarted, Selection
from bayplan.kube_api.resources import PODS, Resource
from bayplan.mapping import pods
from bayplan.model.workloads import Workload
from bayplan.webhook import certificates
from bayplan.webhook.certificates import CertificateChain
from bayplan.webhook.manifests import Patch
from bayplan.wire.pods import Pod

SECRETS = resources.of_kind("Secret")
SECRET = "bayplan-webhook-certificates"  # noqa: S105 (a name)
_CHAIN, _BUNDLE = "chain.json", "ca.crt"
# What a replica that serves the webhook mounts: no key of an authority is among them.
SERVED_FILES = ("tls.crt", "tls.key", "paths")
_NO_NODE = "spec.nodeName="


class _Secret(msgspec.Struct):
    metadata: dict[str, Any]
    data: dict[str, bytes] | None = None


_SECRET = msgspec.json.Decoder(_Secret)


class SecretStore:
    """
    Stores a certificate chain in a Secret that all replicas share.

    An empty Secret is filled, so that the right to create Secrets, which cannot be limited to one name, is not needed.
    """

    def __init__(self, connection: Connection, namespace: str, name: str = SECRET) -> None:
        self._connection, self._namespace, self._name = connection, namespace, name
        self._metadata: dict[str, Any] = {}

    async def load(self) -> CertificateChain | None:
        path = SECRETS.path(self._namespace, self._name)
        try:
            answer = await self._connection.request("GET", path)
        except NotFoundError:
            self._metadata = {}
            return None
        secret = decoding.decoded(_SECRET, answer, self._connection.tried("GET", path))
        self._metadata = secret.metadata
        if not secret.data:
            return None
        try:
            chain = msgspec.json.decode((secret.data or {})[_CHAIN], type=CertificateChain)
            for pair in (*chain.authorities, chain.serving):
                certificates.check_pair(pair)
        except (KeyError, ValueError):
            where = f"Secret {self._namespace}/{self._name}"
            raise ClusterError(
                f"{where} holds no certificates of this webhook; remove its data to have new ones created"
            ) from None
        return chain

    async def save(self, chain: CertificateChain, instead_of: CertificateChain | None) -> bool:
        exists = instead_of is not None or bool(self._metadata)
        metadata = self._metadata if exists else {"namespace": self._namespace, "name": self._name}
        segments = "".join(f"{one.value}\n" for one in chain.segments).encode()
        served = dict(zip(SERVED_FILES, (chain.serving.certificate, chain.serving.key, segments), strict=True))
        data = {_CHAIN: msgspec.json.encode(chain), _BUNDLE: chain.bundle, **served}
        encoded = {key: base64.b64encode(content).decode() for key, content in data.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded}
        try:
            if not exists:
                await writes.create(self._connection, SECRETS, self._namespace, body)
            else:
                await writes.replace(self._connection, SECRETS, self._namespace, self._name, body)
        except ConflictError:
            return False
        return True


async def pending_pods(connection: Connection, namespace: str) -> list[Workload]:
    """Return the unbound pods of a namespace for all schedulers: an index has only those of its own."""
    found: list[Workload] = []
    async for page in listing.pages(connection, PODS, Pod, Selection(namespace, field_selector=_NO_NODE)):
        if isinstance(page, Restarted):
            found.clear()
        else:
            found += [
                pods.workload_of(pod)
                for pod in page.items
                if isinstance(pod, Pod) and pod.status.phase not in pods.FINISHED
            ]
    return found


def configuration_patcher(connection: Connection, on_error: Callable[[ClusterError], None]) -> Patch:
    """
    Return a function that patches webhook configurations. A missing one is reported once and tried again next time.

    Operators delete configurations to disable a webhook in an emergency. That must end neither it nor the scheduler.
    """
    missing: set[tuple[str, str]] = set()

    async def patch(resource: str, name: str, change: dict[str, Any]) -> None:
        group, version, plural = resource.split("/")
        where = Resource(group, version, plural, namespaced=False)
        try:
            await writes.patch(connection, where, None, name, change, content_type=writes.STRATEGIC_PATCH)
        except NotFoundError:
            if (resource, name) not in missing:
                on_error(ClusterError(f"there is no {plural} {name}: API servers do not call this webhook by it"))
            missing.add((resource, name))
        else:
            missing.discard((resource, name))

    return patch
