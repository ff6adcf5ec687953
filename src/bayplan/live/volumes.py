"""
Volumes that wait for their pod: the node is told to the provisioner, or an existing volume is tied to the claim.

Until the API server shows it, the choice is kept in the index, so that the next pod does not take the same volume.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from bayplan.errors import BayplanError
from bayplan.live.cluster_writer import ClaimRef, ClusterWriter, PodGoneError, UnclearError
from bayplan.live.in_flight import InFlight
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload
from bayplan.rules import volume_binding
from bayplan.watching.cluster_state import ClusterState

PATIENCE = 600.0  # seconds until a volume must be there, as kube-scheduler's bindTimeoutSeconds


class VolumesUnboundError(BayplanError):
    """A volume did not come in time or came elsewhere, or its claim went away."""


class _Choice(msgspec.Struct, frozen=True):
    """What was decided for one claim: how claim and volume were known before, and what others are shown meanwhile."""

    claim: Claim
    volume: Volume | None
    shown: Claim | Volume
    version: str = ""  # of the volume


class _Wait:
    """A pod that waits for its volumes: `changed` says that it should look again, `over` that it is gone itself."""

    __slots__ = ("changed", "over")

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.over = False


class Volumes:
    """`changed` is called by whoever watches claims; pods that wait for theirs look again then."""

    def __init__(
        self, state: ClusterState, writer: ClusterWriter, in_flight: InFlight, patience: float = PATIENCE
    ) -> None:
        self._index = state.index
        self._versions = state.volume_versions
        self._writer = writer
        self._in_flight = in_flight
        self._patience = patience
        # By uid: a pod made anew under a name has nothing to do with what its predecessor still waits for.
        self._chosen: dict[str, list[_Choice]] = {}
        self._waiting: dict[str, _Wait] = {}

    def changed(self) -> None:
        for wait in self._waiting.values():
            wait.changed.set()

    def gone(self, workload: Workload) -> None:
        """The pod is no longer to be bound: whatever it waits for, it need not."""
        wait = self._waiting.get(workload.uid)
        if wait is not None:
            wait.over = True
            wait.changed.set()

    def assume(self, workload: Workload, slot: int) -> None:
        """Choose volumes for the workload's waiting claims on this node, and keep others from choosing them."""
        if not workload.needs.claims.names:
            return
        storage, node, chosen = self._index.storage, self._index.slots.at(slot).name, []
        for claim, name in volume_binding.volumes_for(workload, slot, self._index):
            if name:
                volume = storage.volumes[name]
                taken = msgspec.structs.replace(volume, claim=claim.key, claim_uid=claim.uid)
                self._index.set_volume(name, taken)
                chosen.append(_Choice(claim, volume, taken, self._versions[name]))
            else:
                told = msgspec.structs.replace(claim, selected_node=node)
                self._index.set_claim(claim.key, told)
                chosen.append(_Choice(claim, None, told))
        if chosen:
            self._chosen[workload.uid] = chosen

    def unreserve(self, workload: Workload) -> None:
        """Let go of what was chosen; what the API server has shown since stays, for it has been told by now."""
        storage = self._index.storage
        for choice in self._chosen.pop(workload.uid, ()):
            volume, claim = choice.volume, choice.claim
            if volume is None:
                if storage.claims.get(claim.key) is choice.shown:
                    self._index.set_claim(claim.key, claim)
            elif storage.volumes.get(volume.name) is choice.shown:
                self._index.set_volume(volume.name, volume)

    async def bind(self, workload: Workload, node: str) -> None:
        """Have the chosen volumes bound, and wait until they are; GoneError if the pod goes meanwhile."""
        chosen = self._chosen.get(workload.uid, ())
        try:
            for choice in chosen:
                await self._write(choice, node)
        except (PodGoneError, UnclearError) as error:  # of a claim or a volume, not of the pod
            raise VolumesUnboundError(str(error)) from error
        if chosen:
            await self._until_bound(workload, node, chosen)
            self._chosen.pop(workload.uid, None)

    async def _write(self, choice: _Choice, node: str) -> None:
        if choice.volume is not None:
            await self._writer.reserve_volume(choice.volume.name, choice.version, ClaimRef.of(choice.claim))
        else:
            await self._writer.select_node(ClaimRef.of(choice.claim), node)

    async def _until_bound(self, workload: Workload, node: str, chosen: Sequence[_Choice]) -> None:
        wait = self._waiting[workload.uid] = _Wait()
        try:
            async with asyncio.timeout(self._patience):
                while not all(self._is_bound(choice, node) for choice in chosen):
                    wait.changed.clear()
                    with self._in_flight.aside():
                        await wait.changed.wait()
                    if wait.over:
                        raise PodGoneError(f"{workload.key} is gone")
        except TimeoutError:
            names = ", ".join(choice.claim.name for choice in chosen)
            raise VolumesUnboundError(f"claims {names} were not bound within {self._patience:.0f} s") from None
        finally:
            del self._waiting[workload.uid]

    def _is_bound(self, choice: _Choice, node: str) -> bool:
        """Whether the claim has its volume, and one that the node can reach."""
        claim, slot = self._index.storage.claims.get(choice.claim.key), self._index.slots.by_name.get(node)
        name = choice.claim.name
        if claim is None or claim.terminating or claim.uid != choice.claim.uid:
            raise VolumesUnboundError(f'persistentvolumeclaim "{name}" is gone')
        if slot is None:
            raise VolumesUnboundError(f"node {node} is gone")
        if not claim.bound:
            if choice.volume is None and claim.selected_node != node:
                raise VolumesUnboundError(f'the provisioner gave up on persistentvolumeclaim "{name}" for {node}')
            return False
        volume = self._index.storage.volumes.get(claim.volume)
        if volume is not None and not volume_binding.is_reachable(volume, slot, self._index):
            raise VolumesUnboundError(f'persistentvolumeclaim "{name}" got {claim.volume}, which {node} cannot reach')
        return volume is not None
