"""What we write to a cluster, each as one request. When and whether to write is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.kube_api.connection import Connection
from bayplan.kube_api.resources import CORE_EVENTS, EVENTS, PODS, Resource

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"  # JSON is YAML

Fields = Mapping[str, Any]


async def bind(
    connection: Connection, namespace: str, name: str, uid: str, node: str, *, retry: bool | None = None
) -> None:
    """Put the pod onto the node, unless it is another pod of that name by now or has a node already."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await _post(connection, PODS.path(namespace, name, "binding"), body, retry)


async def evict(
    connection: Connection, namespace: str, name: str, uid: str, *, grace_period_seconds: int | None = None
) -> None:
    """Ask for the pod's end with respect for disruption budgets: `TooManyRequestsError` if one forbids it now."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": namespace, "name": name},
        "deleteOptions": _delete_options(uid, "", grace_period_seconds),
    }
    await _post(connection, PODS.path(namespace, name, "eviction"), body, retry=False)


async def delete(
    connection: Connection,
    resource: Resource,
    namespace: str | None,
    name: str,
    *,
    uid: str = "",
    resource_version: str = "",
    grace_period_seconds: int | None = None,
) -> None:
    """Delete the object if it still is the one meant; `ConflictError` if not."""
    options = _delete_options(uid, resource_version, grace_period_seconds)
    await connection.request("DELETE", resource.path(namespace, name), body=msgspec.json.encode(options))


async def create(connection: Connection, resource: Resource, namespace: str | None, body: Fields) -> bytes:
    """The object as the server made it."""
    return await _post(connection, resource.path(namespace), body)


async def create_event(connection: Connection, namespace: str, event: Fields) -> None:
    """Write an event of `events.k8s.io/v1` or of `v1`, as its `apiVersion` says."""
    resource = CORE_EVENTS if event["apiVersion"] == "v1" else EVENTS
    await create(connection, resource, namespace, event)


async def replace(connection: Connection, resource: Resource, namespace: str | None, name: str, body: Fields) -> bytes:
    """The object as it is now; `ConflictError` if it is not of the version that the body names any more."""
    return await connection.request("PUT", resource.path(namespace, name), body=msgspec.json.encode(body))


async def patch(
    connection: Connection,
    resource: Resource,
    namespace: str | None,
    name: str,
    body: Any,
    *,
    content_type: str = MERGE_PATCH,
    subresource: str | None = None,
) -> bytes:
    """The object as it is now. Custom resources know no strategic patch."""
    path = resource.path(namespace, name, subresource)
    return await connection.request("PATCH", path, body=msgspec.json.encode(body), content_type=content_type)


async def patch_status(
    connection: Connection,
    resource: Resource,
    namespace: str | None,
    name: str,
    body: Any,
    *,
    content_type: str = STRATEGIC_PATCH,
) -> bytes:
    """The same for the object's status. Strategic, so that one condition leaves the others alone."""
    return await patch(connection, resource, namespace, name, body, content_type=content_type, subresource="status")


async def apply(
    connection: Connection,
    resource: Resource,
    namespace: str | None,
    name: str,
    body: Fields,
    *,
    field_manager: str,
    force: bool = False,
) -> bytes:
    """Server-side apply; `ConflictError` if others own a field, unless forced."""
    query = {"fieldManager": field_manager} | ({"force": "true"} if force else {})
    content = msgspec.json.encode(body)
    path = resource.path(namespace, name)
    return await connection.request("PATCH", path, query=query, body=content, content_type=APPLY)


async def _post(connection: Connection, path: str, body: Fields, retry: bool | None = None) -> bytes:
    return await connection.request("POST", path, body=msgspec.json.encode(body), retry=retry)


def _delete_options(uid: str, resource_version: str, grace_period_seconds: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if set_ones := {name: value for name, value in preconditions.items() if value}:
        options["preconditions"] = set_ones
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    return options
