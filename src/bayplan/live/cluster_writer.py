"""
What the scheduler does to the world, as an interface: the API server in earnest, memory in simulations and tests.

Every method names the pod or the claim by its uid too: one that was deleted and made anew is not the one that was
decided about.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

import msgspec

from bayplan.errors import ClusterError
from bayplan.model.volumes import Claim
from bayplan.model.workloads import Workload


class PodGoneError(ClusterError):
    """The pod is no longer there."""


class RefusedError(ClusterError):
    """The API server says no and would say so again: the pod has changed, or rights are missing."""


class UnclearError(ClusterError):
    """No answer, or none to rely on: it may have happened or not."""


class FailedError(UnclearError):
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
