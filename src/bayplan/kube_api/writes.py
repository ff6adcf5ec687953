"""Writes to a cluster, one request each. Callers decide when and whether to write; `fencing` can withhold them."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from bayplan.kube_api.fencing import RequestSender
from bayplan.kube_api.resources import CORE_EVENTS, EVENTS, PODS, Resource

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

Fields = Mapping[str, Any]


async def bind(
    connection: RequestSender, namespace: str, name: str, uid: str, node: str, *, retry: bool | None = None
) -> None:
    """Bind the pod to the node; fails if the name now belongs to another pod or the pod already has a node."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await _post(connection, PODS.path(namespace, name, "binding"), body, retry)


async def evict(
    connection: RequestSender, namespace: str, name: str, uid: str, *, grace_period_seconds: int | None = None
) -> None:
    """Evict the pod; `TooManyRequestsError` if a disruption budget does not allow it now."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": namespace, "name": name},
        "deleteOptions": _delete_options(uid, "", grace_period_seconds),
    }
    await _post(connection, PODS.path(namespace, name, "eviction"), body, retry=False)


async def delete(
    connection: RequestSender,
    resource: Resource,
    namespace: str | None,
    name: str,
    *,
    uid: str = "",
    resource_version: str = "",
    grace_period_seconds: int | None = None,
) -> None:
    """Delete the object; `ConflictError` if its uid or version differs."""
    options = _delete_options(uid, resource_version, grace_period_seconds)
    await connection.request("DELETE", resource.path(namespace, name), body=msgspec.json.encode(options))


async def create(connection: RequestSender, resource: Resource, namespace: str | None, body: Fields) -> bytes:
    """Create the object and return it as stored."""
    return await _post(connection, resource.path(namespace), body)


async def create_event(connection: RequestSender, namespace: str, event: Fields) -> None:
    """Create an event in `events.k8s.io/v1` or `v1`, as its `apiVersion` says."""
    resource = CORE_EVENTS if event["apiVersion"] == "v1" else EVENTS
    await _post(connection, resource.path(namespace), event)


async def replace(
    connection: RequestSender, resource: Resource, namespace: str | None, name: str, body: Fields
) -> bytes:
    """Replace the object and return it; `ConflictError` if its version is not that of the body."""
    return await connection.request("PUT", resource.path(namespace, name), body=msgspec.json.encode(body))


async def patch(
    connection: RequestSender,
    resource: Resource,
    namespace: str | None,
    name: str,
    body: Any,
    *,
    content_type: str = MERGE_PATCH,
    subresource: str | None = None,
) -> bytes:
    """Patch the object and return it. Custom resources do not support strategic merge patches."""
    path = resource.path(namespace, name, subresource)
    return await connection.request("PATCH", path, body=msgspec.json.encode(body), content_type=content_type)


async def patch_status(
    connection: RequestSender,
    resource: Resource,
    namespace: str | None,
    name: str,
    body: Any,
    *,
    content_type: str = STRATEGIC_PATCH,
) -> bytes:
    """Patch the status; a strategic merge patch, so that one condition leaves the others unchanged."""
    return await patch(connection, resource, namespace, name, body, content_type=content_type, subresource="status")


def _post(connection: RequestSender, path: str, body: Fields, retry: bool | None = None) -> Coroutine[Any, Any, bytes]:
    return connection.request("POST", path, body=msgspec.json.encode(body), retry=retry)


def _delete_options(uid: str, resource_version: str, grace_period_seconds: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if given := {name: value for name, value in preconditions.items() if value}:
        options["preconditions"] = given
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    return options
