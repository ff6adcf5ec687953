"""
What the scheduler does to the world, as an interface: the API server in earnest, memory in simulations and tests.

Every method names the pod or the claim by its uid too: one that was deleted and made anew is not the one that was
decided about.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from bayplan.errors import ClusterError
from bayplan.kube_api import writes
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ApiError, ConflictError, KubeError, NotFoundError
from bayplan.kube_api.resources import EVENTS, PODS, Resource
from bayplan.mapping.storage import SELECTED_NODE
from bayplan.model.volumes import Claim
from bayplan.model.workloads import Workload
from bayplan.wire.pods import Pod


class PodGoneError(ClusterError):
    """The pod is no longer there."""


class RejectedError(ClusterError):
    """The API server says no and would say so again: the pod has changed, or rights are missing."""


class UnknownOutcomeError(ClusterError):
    """No answer, or none to rely on: it may have happened or not."""


class ServerFailureError(UnknownOutcomeError):
    """The API server answered that it failed, as when a webhook does not work: it is not still at it."""


class PodRef(msgspec.Struct, frozen=True):
    """One pod, and not another of the same name."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, workload: Workload) -> PodRef:
        return cls(workload.namespace, workload.name, workload.uid)


class ClaimRef(msgspec.Struct, frozen=True):
    """One claim, and not another of the same name."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, claim: Claim) -> ClaimRef:
        namespace, _, name = claim.key.partition("/")
        return cls(namespace, name, claim.uid)


class ClusterWriter(Protocol):
    """Raises GoneError, RefusedError or UnclearError where it cannot be done."""

    async def bind(self, pod: PodRef, node: str) -> None: ...

    async def node_of(self, pod: PodRef) -> str:
        """Where the pod is bound to, empty if nowhere: for when a bind was unclear."""
        ...

    async def patch_status(self, pod: PodRef, status: dict[str, Any]) -> None: ...

    async def delete(self, pod: PodRef) -> None: ...

    async def evict(self, pod: PodRef) -> None:
        """Ask for the pod to go, as its disruption budgets allow; RefusedError if they do not."""
        ...

    async def select_node(self, claim: ClaimRef, node: str) -> None:
        """Tell the provisioner of a claim where its volume is needed."""
        ...

    async def reserve_volume(self, volume: str, version: str, claim: ClaimRef) -> None:
        """Tie an existing volume to a claim; RefusedError if it is not as it was in that version any more."""
        ...

    async def post_event(self, event: dict[str, Any]) -> None: ...

    async def patch_event(self, namespace: str, name: str, patch: dict[str, Any]) -> None: ...


# RF merged from live.dry_run: An outside that changes nothing: decisions are made and told, and the cluster stays as
# it is.


log = logging.getLogger("bayplan.dry_run")


class DryRunWriter:
    """Says what would be written; every write succeeds."""

    async def bind(self, pod: PodRef, node: str) -> None:
        _would("bind", pod, node=node)

    async def node_of(self, pod: PodRef) -> str:
        del pod
        return ""

    async def patch_status(self, pod: PodRef, status: dict[str, Any]) -> None:
        told = [condition["message"] for condition in status.get("conditions", ())]
        _would("patch the status", pod, message_text=" ".join(told))

    async def delete(self, pod: PodRef) -> None:
        _would("delete", pod)

    async def evict(self, pod: PodRef) -> None:
        _would("evict", pod)

    async def select_node(self, claim: ClaimRef, node: str) -> None:
        log.info("would select a node for the claim", extra={"claim": f"{claim.namespace}/{claim.name}", "node": node})

    async def reserve_volume(self, volume: str, version: str, claim: ClaimRef) -> None:
        del version
        log.info("would reserve the volume", extra={"volume": volume, "claim": f"{claim.namespace}/{claim.name}"})

    async def post_event(self, event: dict[str, Any]) -> None:
        log.debug("would post an event", extra={"reason": event["reason"], "note": event["note"]})

    async def patch_event(self, namespace: str, name: str, patch: dict[str, Any]) -> None:
        log.debug("would count an event", extra={"event": f"{namespace}/{name}", "series": patch["series"]})


def _would(what: str, pod: PodRef, **facts: str) -> None:
    log.info("would %s", what, extra={"pod": f"{pod.namespace}/{pod.name}", **facts})


# RF merged from live.api_server_writer: The API server as the scheduler's outside: each write is one request, and
# each error one of the three that matter.


CLAIMS = Resource("", "v1", "persistentvolumeclaims")
VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"

_pod = msgspec.json.Decoder(Pod)


class ApiServerWriter:
    """Writes through one connection, as long as `may_write` says so: from then on another replica may."""

    def __init__(self, connection: Connection, may_write: Callable[[], bool] = lambda: True) -> None:
        self._connection = connection
        self._may_write = may_write

    async def bind(self, pod: PodRef, node: str) -> None:
        with self._writing():
            await writes.bind(self._connection, pod.namespace, pod.name, pod.uid, node)

    async def node_of(self, pod: PodRef) -> str:
        with _told_apart():
            found = _pod.decode(await self._connection.get(PODS.path(pod.namespace, pod.name)))
        if found.metadata.uid != pod.uid:
            raise PodGoneError(f"{pod.namespace}/{pod.name} is another pod by now")
        return found.spec.node_name

    async def patch_status(self, pod: PodRef, status: dict[str, Any]) -> None:
        # With the uid, so that a pod made anew under the name is left alone.
        body = {"metadata": {"uid": pod.uid}, "status": status}
        with self._writing():
            await writes.patch_status(self._connection, PODS, pod.namespace, pod.name, body)

    async def delete(self, pod: PodRef) -> None:
        with self._writing():
            await writes.delete(self._connection, PODS, pod.namespace, pod.name, uid=pod.uid)

    async def evict(self, pod: PodRef) -> None:
        try:
            with self._writing():
                await writes.evict(self._connection, pod.namespace, pod.name, pod.uid)
        except UnknownOutcomeError as error:
            # 429 is how a disruption budget says no; it is an answer, not silence.
            if isinstance(error.__cause__, ApiError) and error.__cause__.status == 429:
                raise RejectedError(str(error)) from error.__cause__
            raise

    async def select_node(self, claim: ClaimRef, node: str) -> None:
        body = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: node}}}
        with self._writing():
            await writes.patch(self._connection, CLAIMS, claim.namespace, claim.name, body)

    async def reserve_volume(self, volume: str, version: str, claim: ClaimRef) -> None:
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        # Of that version only: somebody else may have taken it a moment ago, and a volume has but one claim.
        meta = {"resourceVersion": version, "annotations": {BOUND_BY_CONTROLLER: "yes"}}
        body = {"metadata": meta, "spec": {"claimRef": reference}}
        with self._writing():
            await writes.patch(self._connection, VOLUMES, None, volume, body)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        if not self._may_write():
            raise UnknownOutcomeError("this replica does not lead any more")
        with _told_apart():
            yield

    async def post_event(self, event: dict[str, Any]) -> None:
        with _told_apart():
            await writes.create_event(self._connection, event["metadata"]["namespace"], event)

    async def patch_event(self, namespace: str, name: str, patch: dict[str, Any]) -> None:
        with _told_apart():
            await writes.patch(self._connection, EVENTS, namespace, name, patch)


@contextlib.contextmanager
def _told_apart() -> Iterator[None]:
    """The client's errors as the three that the scheduler tells apart."""
    try:
        yield
    except NotFoundError as error:
        raise PodGoneError(str(error)) from error
    except ConflictError as error:
        raise RejectedError(str(error)) from error
    except ApiError as error:
        raise _kind_of(error)(str(error)) from error
    except KubeError as error:
        raise UnknownOutcomeError(str(error)) from error


def _kind_of(error: ApiError) -> type[RejectedError | UnknownOutcomeError]:
    if error.status == 500:  # not 503 and 504: who gave up waiting may see it happen later
        return ServerFailureError
    return UnknownOutcomeError if error.retriable else RejectedError
