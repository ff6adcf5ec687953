"""
Volumes that wait for their pod: the node is told to the provisioner, or an existing volume is tied to the claim.

Until the API server shows it, the choice is kept in the index, so that the next pod does not take the same volume.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from bayplan.errors import BayplanError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.live.outside import Outside
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules import volume_binding

PATIENCE = 600.0  # seconds until a volume must be there, as kube-scheduler's bindTimeoutSeconds


class VolumesUnboundError(BayplanError):
    """A volume did not come in time, or its claim went away."""


class _Choice(msgspec.Struct, frozen=True):
    """What was decided for one claim, and how claim and volume were known before."""

    claim: Claim
    volume: Volume | None


class Volumes:
    """`changed` is called by whoever watches claims; pods that wait for theirs look again then."""

    def __init__(self, index: PlacementIndex, outside: Outside, patience: float = PATIENCE) -> None:
        self._index = index
        self._outside = outside
        self._patience = patience
        self._chosen: dict[WorkloadKey, list[_Choice]] = {}
        self._waiting: set[asyncio.Event] = set()

    def changed(self) -> None:
        for event in self._waiting:
            event.set()

    def assume(self, workload: Workload, slot: int) -> None:
        """Choose volumes for the workload's waiting claims on this node, and keep others from choosing them."""
        if not workload.needs.claims.names:
            return
        storage, node, chosen = self._index.storage, self._index.slots.at(slot).name, []
        for claim, name in volume_binding.volumes_for(workload, slot, self._index):
            volume = storage.volumes[name] if name else None
            chosen.append(_Choice(claim, volume))
            if volume is not None:
                taken = msgspec.structs.replace(volume, claim=claim.key, claim_uid=claim.uid)
                self._index.set_volume(name, taken)
            else:
                self._index.set_claim(claim.key, msgspec.structs.replace(claim, selected_node=node))
        if chosen:
            self._chosen[workload.key] = chosen

    def take_back(self, workload: Workload) -> None:
        """Let go of what was chosen and not yet seen to be so."""
        storage = self._index.storage
        for choice in self._chosen.pop(workload.key, ()):
            volume, claim = choice.volume, choice.claim
            if volume is not None:
                known = storage.volumes.get(volume.name)
                if known is not None and known == msgspec.structs.replace(volume, claim=claim.key, claim_uid=claim.uid):
                    self._index.set_volume(volume.name, volume)
            elif claim.key in storage.claims and not storage.claims[claim.key].bound:
                self._index.set_claim(claim.key, claim)

    async def bind(self, workload: Workload, node: str) -> None:
        """Have the chosen volumes bound, and wait until they are."""
        chosen = self._chosen.get(workload.key, ())
        for choice in chosen:
            if choice.volume is not None:
                await self._outside.reserve_volume(choice.volume.name, choice.claim.key, choice.claim.uid)
            else:
                await self._outside.select_node(choice.claim.key, node)
        if chosen:
            provisioned = {choice.claim.key for choice in chosen if choice.volume is None}
            await self._until(lambda: self._all_bound(workload, node, provisioned), workload)
            self._chosen.pop(workload.key, None)

    def _all_bound(self, workload: Workload, node: str, provisioned: set[str]) -> bool:
        for name in workload.needs.claims.names:
            claim = self._index.storage.claims.get(f"{workload.namespace}/{name}")
            if claim is None or claim.terminating:
                raise VolumesUnboundError(f'persistentvolumeclaim "{name}" is gone')
            if claim.bound:
                continue
            if claim.key in provisioned and claim.selected_node != node:
                raise VolumesUnboundError(f'the provisioner gave up on persistentvolumeclaim "{name}" for {node}')
            return False
        return True

    async def _until(self, done: Callable[[], bool], workload: Workload) -> None:
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            async with asyncio.timeout(self._patience):
                while not done():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            names = ", ".join(workload.needs.claims.names)
            raise VolumesUnboundError(f"claims {names} were not bound within {self._patience:.0f} s") from None
        finally:
            self._waiting.discard(changed)
