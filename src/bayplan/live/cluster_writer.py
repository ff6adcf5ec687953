"""
Every write of the scheduler, as an interface with two implementations: the API server and a dry run.

Each method identifies a pod or claim by its uid as well, so that an object which was deleted and recreated under the
same name is never mistaken for the one that the decision was about. Simulations and tests implement the interface in
memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

import msgspec

from bayplan.errors import ClusterError
from bayplan.kube_api import decoding, resources, writes
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ApiError, ConflictError, FencedError, KubeError, NotFoundError
from bayplan.kube_api.fencing import FencedConnection
from bayplan.kube_api.resources import EVENTS, PODS
from bayplan.mapping.storage import SELECTED_NODE
from bayplan.model.volumes import Claim
from bayplan.model.workloads import Workload
from bayplan.wire.pods import Pod

CLAIMS = resources.of_kind("PersistentVolumeClaim")
VOLUMES = resources.of_kind("PersistentVolume")
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
log = logging.getLogger("bayplan.dry_run")

_pod = msgspec.json.Decoder(Pod)


class PodGoneError(ClusterError):
    """The object no longer exists."""


class RejectedError(ClusterError):
    """The API server rejects the write and would reject it again: the object has changed, or rights are missing."""


class UnknownOutcomeError(ClusterError):
    """There is no reliable response: the write may or may not have happened."""


class NotLeadingError(UnknownOutcomeError):
    """The write was not sent, because another replica may lead now and decide otherwise."""


class ServerFailureError(UnknownOutcomeError):
    """The API server reports an internal error, as when a webhook fails: the request is no longer in progress."""


class ObjectRef(msgspec.Struct, frozen=True):
    """Identifies one object, as opposed to another of the same name. Without a namespace it is cluster-scoped."""

    namespace: str
    name: str
    uid: str
    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}".lstrip("/")


class PodRef(ObjectRef, frozen=True):
    """Identifies one pod."""

    api_version: str = "v1"
    kind: str = "Pod"

    @classmethod
    def of(cls, workload: Workload) -> PodRef:
        return cls(workload.namespace, workload.name, workload.uid)


class ClaimRef(msgspec.Struct, frozen=True):
    """Identifies one claim, as opposed to another claim of the same name."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, claim: Claim) -> ClaimRef:
        namespace, _, name = claim.key.partition("/")
        return cls(namespace, name, claim.uid)


class EventWriter(Protocol):
    """Writes Events; every method raises what those of ClusterWriter raise."""

    async def post_event(self, event: dict[str, Any]) -> None: ...

    async def patch_event(self, namespace: str, name: str, patch: dict[str, Any]) -> None: ...


class ClusterWriter(EventWriter, Protocol):
    """Every method raises PodGoneError, RejectedError or UnknownOutcomeError if the write does not succeed."""

    async def bind(self, pod: PodRef, node: str) -> None: ...

    async def node_of(self, pod: PodRef) -> str:
        """Return the node that the pod is bound to, or "". Called when the outcome of a bind is unknown."""
        ...

    async def patch_status(self, pod: PodRef, status: dict[str, Any]) -> None: ...

    async def delete(self, pod: PodRef) -> None: ...

    async def evict(self, pod: PodRef) -> None:
        """Evict the pod; RejectedError if a disruption budget does not allow it."""
        ...

    async def select_node(self, claim: ClaimRef, node: str) -> None:
        """Set the node for which the provisioner of a claim must create the volume."""
        ...

    async def reserve_volume(self, volume: str, version: str, claim: ClaimRef) -> None:
        """Bind an existing volume to a claim; RejectedError if the volume has changed since that version."""
        ...


class FencedWriter:
    """
    Sends each write as one request over one connection.

    Nothing is written, not even an event, unless `may_write` is true when the request is sent: after that another
    replica may lead.
    """

    def __init__(self, connection: Connection, may_write: Callable[[], bool] = lambda: True) -> None:
        self._connection = connection
        self._fenced = FencedConnection(connection, may_write)

    async def post_event(self, event: dict[str, Any]) -> None:
        with translated_errors:
            await writes.create_event(self._fenced, event["metadata"]["namespace"], event)

    async def patch_event(self, namespace: str, name: str, patch: dict[str, Any]) -> None:
        with translated_errors:
            await writes.patch(self._fenced, EVENTS, namespace, name, patch)


class ApiServerWriter(FencedWriter):
    """The ClusterWriter of a real cluster."""

    async def bind(self, pod: PodRef, node: str) -> None:
        with translated_errors:
            await writes.bind(self._fenced, pod.namespace, pod.name, pod.uid, node)

    async def node_of(self, pod: PodRef) -> str:
        with translated_errors:
            path = PODS.path(pod.namespace, pod.name)
            found = decoding.decoded(_pod, await self._connection.get(path), self._connection.tried("GET", path))
        if found.metadata.uid != pod.uid:
            raise PodGoneError(f"{pod.namespace}/{pod.name} is another pod by now")
        return found.spec.node_name

    async def patch_status(self, pod: PodRef, status: dict[str, Any]) -> None:
        # The uid is a precondition: a pod recreated under the same name is not patched.
        body = {"metadata": {"uid": pod.uid}, "status": status}
        with translated_errors:
            await writes.patch_status(self._fenced, PODS, pod.namespace, pod.name, body)

    async def delete(self, pod: PodRef) -> None:
        with translated_errors:
            await writes.delete(self._fenced, PODS, pod.namespace, pod.name, uid=pod.uid)

    async def evict(self, pod: PodRef) -> None:
        try:
            with translated_errors:
                await writes.evict(self._fenced, pod.namespace, pod.name, pod.uid)
        except UnknownOutcomeError as error:
            # 429 is the answer of a disruption budget, so the outcome is known.
            if isinstance(error.__cause__, ApiError) and error.__cause__.status == 429:
                raise RejectedError(str(error)) from error.__cause__
            raise

    async def select_node(self, claim: ClaimRef, node: str) -> None:
        body = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: node}}}
        with translated_errors:
            await writes.patch(self._fenced, CLAIMS, claim.namespace, claim.name, body)

    async def reserve_volume(self, volume: str, version: str, claim: ClaimRef) -> None:
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        # The version is a precondition: a volume binds to one claim, and another writer may have just bound it.
        meta = {"resourceVersion": version, "annotations": {BOUND_BY_CONTROLLER: "yes"}}
        body = {"metadata": meta, "spec": {"claimRef": reference}}
        with translated_errors:
            await writes.patch(self._fenced, VOLUMES, None, volume, body)


class _TranslatedErrors:
    """Raises errors of the API client as the errors that a ClusterWriter may raise."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, KubeError):
            raise _error_type(error)(str(error)) from error


translated_errors = _TranslatedErrors()


def _error_type(error: KubeError) -> type[ClusterError]:
    match error:
        case NotFoundError():
            return PodGoneError
        case ConflictError():
            return RejectedError
        case FencedError():
            return NotLeadingError
        case ApiError(status=500):  # unlike 503 and 504, after which the request may still succeed
            return ServerFailureError
        case ApiError(retriable=False):
            return RejectedError
        case _:
            return UnknownOutcomeError


class DryRunEvents:
    """Logs the events that would be written."""

    async def post_event(self, event: dict[str, Any]) -> None:
        log.debug("would post an event", extra={"reason": event["reason"], "note": event["note"]})

    async def patch_event(self, namespace: str, name: str, patch: dict[str, Any]) -> None:
        log.debug("would update an event series", extra={"event": f"{namespace}/{name}", "series": patch["series"]})


class DryRunWriter(DryRunEvents):
    """Logs what would be written. Every write succeeds and the cluster is not changed."""

    async def bind(self, pod: PodRef, node: str) -> None:
        _log_pod_write("bind", pod, node=node)

    async def node_of(self, pod: PodRef) -> str:
        del pod
        return ""

    async def patch_status(self, pod: PodRef, status: dict[str, Any]) -> None:
        messages = [condition["message"] for condition in status.get("conditions", ())]
        _log_pod_write("patch the status", pod, message_text=" ".join(messages))

    async def delete(self, pod: PodRef) -> None:
        _log_pod_write("delete", pod)

    async def evict(self, pod: PodRef) -> None:
        _log_pod_write("evict", pod)

    async def select_node(self, claim: ClaimRef, node: str) -> None:
        log.info("would select a node for the claim", extra={"claim": f"{claim.namespace}/{claim.name}", "node": node})

    async def reserve_volume(self, volume: str, version: str, claim: ClaimRef) -> None:
        del version
        log.info("would reserve the volume", extra={"volume": volume, "claim": f"{claim.namespace}/{claim.name}"})


def _log_pod_write(what: str, pod: PodRef, **facts: str) -> None:
    log.info("would %s", what, extra={"pod": f"{pod.namespace}/{pod.name}", **facts})
