"""
Every write of the scheduler of bindings, as an interface with two implementations: the API server and a dry run.

A patch carries the uid and the resourceVersion of the binding that it was made for, so it is refused if anything has
changed since.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

import msgspec

from bayplan.errors import ClusterError
from bayplan.kube_api import decoding, resources, writes
from bayplan.kube_api.errors import ApiError, ConflictError
from bayplan.live.cluster_writer import (
    DryRunEvents,
    EventWriter,
    FencedWriter,
    ObjectRef,
    PodGoneError,
    RejectedError,
    translated_errors,
)
from bayplan.wire import kinds
from bayplan.wire.fleets import ResourceBinding

QUOTA_EXCEEDED = "QuotaExceeded"
log = logging.getLogger("bayplan.dry_run")
_binding = msgspec.json.Decoder(ResourceBinding)


def ref_of(written: ResourceBinding) -> ObjectRef:
    """The binding itself: one without a namespace is cluster-scoped."""
    meta = written.metadata
    kind = "ResourceBinding" if meta.namespace else "ClusterResourceBinding"
    return ObjectRef(meta.namespace, meta.name, meta.uid, kinds.named(kind).api_version, kind)


def template_ref(written: ResourceBinding) -> ObjectRef:
    """The resource that the binding propagates."""
    named = written.spec.resource
    return ObjectRef(named.namespace, named.name, named.uid, named.api_version, named.kind)


class FleetWriter(EventWriter, Protocol):
    """Every method raises PodGoneError, RejectedError or UnknownOutcomeError if the write does not succeed."""

    async def patch(self, binding: ResourceBinding, patch: dict[str, Any], *, status: bool) -> ResourceBinding:
        """Apply a merge patch to the object or its status and return it; RejectedError if it has changed since."""
        ...

    async def read(self, binding: ObjectRef) -> ResourceBinding:
        """Return the binding as it is now."""
        ...

    async def evict(self, binding: ObjectRef, task: dict[str, Any]) -> ResourceBinding:
        """
        Move a cluster of the binding to its tasks of graceful eviction, and return the binding.

        PodGoneError if the binding is another one by now, or not on the cluster; RejectedError if it has changed since
        it was read.
        """
        ...


class ApiServerFleetWriter(FencedWriter):
    """The FleetWriter of a real control plane."""

    async def patch(self, binding: ResourceBinding, patch: dict[str, Any], *, status: bool) -> ResourceBinding:
        found, meta = ref_of(binding), binding.metadata
        precondition = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {**patch, "metadata": {**precondition, **patch.get("metadata", {})}}
        resource = resources.of_kind(found.kind)
        with translated_errors:
            answer = await writes.patch(
                self._fenced, resource, found.namespace, found.name, body, subresource="status" if status else None
            )
            return decoding.decoded(_binding, answer, self._connection.tried("PATCH", resource.path()))

    async def read(self, binding: ObjectRef) -> ResourceBinding:
        path = resources.of_kind(binding.kind).path(binding.namespace, binding.name)
        with translated_errors:
            return decoding.decoded(_binding, await self._connection.get(path), self._connection.tried("GET", path))

    async def evict(self, binding: ObjectRef, task: dict[str, Any]) -> ResourceBinding:
        resource = resources.of_kind(binding.kind)
        path = resource.path(binding.namespace, binding.name)
        with translated_errors:
            # As it is written: lists are replaced as a whole, and other tasks have fields that are not known here.
            found = msgspec.json.decode(await self._connection.get(path))
            body = eviction_patch(found, binding, task)
            answer = await writes.patch(self._fenced, resource, binding.namespace, binding.name, body)
            return decoding.decoded(_binding, answer, self._connection.tried("PATCH", path))


def eviction_patch(found: dict[str, Any], binding: ObjectRef, task: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that evicts from one cluster of the binding as it was read; raises PodGoneError."""
    meta, spec, cluster = found["metadata"], found["spec"], task["fromCluster"]
    clusters = spec.get("clusters") or []
    left = [one for one in clusters if one.get("name") != cluster]
    if meta["uid"] != binding.uid or len(left) == len(clusters):
        raise PodGoneError(f"{binding} is not on {cluster} any more")
    tasks = [*(spec.get("gracefulEvictionTasks") or []), task]
    return {
        "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
        "spec": {"clusters": left or None, "gracefulEvictionTasks": tasks},
    }


def has_changed(error: RejectedError) -> bool:
    """Whether the write was refused because the binding has changed since it was read."""
    return isinstance(error.__cause__, ConflictError)


def exceeds_quota(error: ClusterError) -> str:
    """The message of a refusal because of a FederatedResourceQuota, else empty."""
    cause = error.__cause__
    is_quota = isinstance(cause, ApiError) and cause.status == 403 and cause.reason == QUOTA_EXCEEDED
    return cause.message if isinstance(cause, ApiError) and is_quota else ""


class DryRunFleetWriter(DryRunEvents):
    """Logs what would be written. Every write succeeds and nothing is changed."""

    async def patch(self, binding: ResourceBinding, patch: dict[str, Any], *, status: bool) -> ResourceBinding:
        what = "would patch the status" if status else "would patch"
        found = ref_of(binding)
        content = patch.get("status" if status else "spec")
        log.info(what, extra={"binding": str(found), "content": msgspec.json.encode(content).decode()})
        return binding

    async def read(self, binding: ObjectRef) -> ResourceBinding:
        raise NotImplementedError(f"nothing about {binding} is ever unknown in a dry run")

    async def evict(self, binding: ObjectRef, task: dict[str, Any]) -> ResourceBinding:
        raise NotImplementedError(f"{binding}: a dry run of enforcement logs what it would evict")
