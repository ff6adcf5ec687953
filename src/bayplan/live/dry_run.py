"""An outside that changes nothing: decisions are made and told, and the cluster stays as it is."""

from __future__ import annotations

import logging
from typing import Any

from bayplan.live.outside import ClaimRef, PodRef

log = logging.getLogger("bayplan.dry_run")


class DryRun:
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
