"""The API server as the scheduler's outside: each write is one request, and each error one of the three that matter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bayplan.kube_api import writes
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ApiError, ConflictError, KubeError, NotFoundError
from bayplan.kube_api.resources import EVENTS, PODS, Resource
from bayplan.live.cluster_writer import ClaimRef, FailedError, PodGoneError, PodRef, RefusedError, UnclearError
from bayplan.mapping.storage import SELECTED_NODE
from bayplan.wire.pods import Pod

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
        except UnclearError as error:
            # 429 is how a disruption budget says no; it is an answer, not silence.
            if isinstance(error.__cause__, ApiError) and error.__cause__.status == 429:
                raise RefusedError(str(error)) from error.__cause__
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
            raise UnclearError("this replica does not lead any more")
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
        raise RefusedError(str(error)) from error
    except ApiError as error:
        raise _kind_of(error)(str(error)) from error
    except KubeError as error:
        raise UnclearError(str(error)) from error


def _kind_of(error: ApiError) -> type[RefusedError | UnclearError]:
    if error.status == 500:  # not 503 and 504: who gave up waiting may see it happen later
        return FailedError
    return UnclearError if error.passing else RefusedError
