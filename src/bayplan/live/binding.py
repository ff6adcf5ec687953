"""How many binds are being asked of the API server now. Knows nothing of what they are."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from bayplan.errors import BayplanError
from bayplan.live.cluster_writer import (
    ClaimRef,
    ClusterWriter,
    PodGoneError,
    PodRef,
    RejectedError,
    ServerFailureError,
    UnknownOutcomeError,
)
from bayplan.live.events import EventRecorder
from bayplan.live.metrics import ERROR, SCHEDULED, Metrics
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload
from bayplan.queueing.pending_pod import PendingPod
from bayplan.rules import volume_binding
from bayplan.watching.cluster_state import ClusterState

MAX_BINDS_IN_FLIGHT = 64  # more at once only wait in the API server instead of here


class InFlightBinds:
    """Counts binds; `on_free` is called when there may be room for another one. `waiting_tasks` are the tasks of others."""

    def __init__(self, most: int = MAX_BINDS_IN_FLIGHT) -> None:
        self.on_free: Callable[[], None] = lambda: None
        self._most = most
        self._n = 0
        self.waiting_tasks: set[asyncio.Task[Any] | None] = set()

    @property
    def is_full(self) -> bool:
        return self._n >= self._most

    def enter(self) -> None:
        self._n += 1

    def leave(self) -> None:
        self._n -= 1
        self.on_free()

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """For a bind that waits for somebody else than the API server: it keeps no other from being asked for."""
        task = asyncio.current_task()
        self.waiting_tasks.add(task)
        self.leave()
        try:
            yield
        finally:
            self.enter()
            self.waiting_tasks.discard(task)


# RF merged from live.volumes: Volumes that wait for their pod: the node is told to the provisioner, or an existing
# volume is tied to the claim. Until the API server shows it, the choice is kept in the index, so that the next pod
# does not take the same volume.


VOLUME_BIND_TIMEOUT_SECONDS = 600.0  # seconds until a volume must be there, as kube-scheduler's bindTimeoutSeconds


class VolumesUnboundError(BayplanError):
    """A volume did not come in time or came elsewhere, or its claim went away."""


class _VolumeChoice(msgspec.Struct, frozen=True):
    """What was decided for one claim: how claim and volume were known before, and what others are shown meanwhile."""

    claim: Claim
    volume: Volume | None
    shown: Claim | Volume
    version: str = ""  # of the volume


class _VolumeWait:
    """A pod that waits for its volumes: `changed` says that it should look again, `over` that it is gone itself."""

    __slots__ = ("changed", "over")

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.over = False


class VolumeBinder:
    """`changed` is called by whoever watches claims; pods that wait for theirs look again then."""

    def __init__(
        self,
        state: ClusterState,
        writer: ClusterWriter,
        binds_in_flight: InFlightBinds,
        patience: float = VOLUME_BIND_TIMEOUT_SECONDS,
    ) -> None:
        self._index = state.index
        self._versions = state.volume_versions
        self._writer = writer
        self._binds_in_flight = binds_in_flight
        self._patience = patience
        # By uid: a pod made anew under a name has nothing to do with what its predecessor still waits for.
        self._chosen: dict[str, list[_VolumeChoice]] = {}
        self._waiting: dict[str, _VolumeWait] = {}

    def changed(self) -> None:
        for wait in self._waiting.values():
            wait.changed.set()

    def pod_removed(self, workload: Workload) -> None:
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
                chosen.append(_VolumeChoice(claim, volume, taken, self._versions[name]))
            else:
                told = msgspec.structs.replace(claim, selected_node=node)
                self._index.set_claim(claim.key, told)
                chosen.append(_VolumeChoice(claim, None, told))
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
        except (PodGoneError, UnknownOutcomeError) as error:  # of a claim or a volume, not of the pod
            raise VolumesUnboundError(str(error)) from error
        if chosen:
            await self._until_bound(workload, node, chosen)
            self._chosen.pop(workload.uid, None)

    async def _write(self, choice: _VolumeChoice, node: str) -> None:
        if choice.volume is not None:
            await self._writer.reserve_volume(choice.volume.name, choice.version, ClaimRef.of(choice.claim))
        else:
            await self._writer.select_node(ClaimRef.of(choice.claim), node)

    async def _until_bound(self, workload: Workload, node: str, chosen: Sequence[_VolumeChoice]) -> None:
        wait = self._waiting[workload.uid] = _VolumeWait()
        try:
            async with asyncio.timeout(self._patience):
                while not all(self._is_bound(choice, node) for choice in chosen):
                    wait.changed.clear()
                    with self._binds_in_flight.released():
                        await wait.changed.wait()
                    if wait.over:
                        raise PodGoneError(f"{workload.key} is gone")
        except TimeoutError:
            names = ", ".join(choice.claim.name for choice in chosen)
            raise VolumesUnboundError(f"claims {names} were not bound within {self._patience:.0f} s") from None
        finally:
            del self._waiting[workload.uid]

    def _is_bound(self, choice: _VolumeChoice, node: str) -> bool:
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


# RF merged from live.binding: Carrying out a decision: volumes first, then the bind, then the event; taken back where
# the API server says no. An answer that never came does not mean that nothing happened: the pod is looked at until it
# is known.


log = logging.getLogger("bayplan.binding")
MAX_RETRY_PAUSE_SECONDS = 10.0


class Binder:
    """Binds one pod at a time per call; calls run side by side."""

    def __init__(
        self,
        state: ClusterState,
        writer: ClusterWriter,
        events: EventRecorder,
        metrics: Metrics,
        volumes: VolumeBinder,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._state = state
        self._writer = writer
        self._events = events
        self._metrics = metrics
        self._volumes = volumes
        self._clock = clock
        self._sleep = sleep

    async def bind(self, pending: PendingPod, node: str, began: float) -> None:
        """Bring a pod to the node where it is already counted."""
        pod = PodRef.of(pending.workload)
        try:
            await self._volumes.bind(pending.workload, node)
            await self._until_clear(pod, node, pending)
        except PodGoneError:
            self._unreserve(pending, "gone", again=False)
        except (RejectedError, VolumesUnboundError) as error:
            log.warning("binding refused", extra={"pod": pending.key, "node": node, "error": str(error)})
            if self._is_still(pending):
                note = f"binding {pending.key} to {node} was refused: {error}"
                self._events.record(pod, "FailedScheduling", note, action="Binding", warning=True)
            self._metrics.attempts.labels(ERROR, pending.workload.scheduler_name).inc()
            self._unreserve(pending, "refused", again=True)
        else:
            self._done(pending, pod, node, began)

    async def _until_clear(self, pod: PodRef, node: str, pending: PendingPod) -> None:
        """Bind, and where the answer stays away find out what happened."""
        pause = 1.0
        while True:
            if node not in self._state.index.slots.by_name:
                raise RejectedError(f"node {node} is gone")  # the API server would not mind
            try:
                await self._writer.bind(pod, node)
            except UnknownOutcomeError as error:
                failure = str(error) if isinstance(error, ServerFailureError) else ""
                self._metrics.bind_failures.labels("unclear").inc()
                log.warning("bind unclear", extra={"pod": pending.key, "node": node, "error": str(error)})
            else:
                return
            await self._sleep(pause)
            pause = min(2 * pause, MAX_RETRY_PAUSE_SECONDS)
            if not self._is_still(pending):
                if self._state.is_bound(pod.uid, pending.key, node):
                    return  # the watch has told meanwhile
                raise PodGoneError(f"{pending.key} went another way")
            try:
                found = await self._writer.node_of(pod)
            except UnknownOutcomeError:
                continue
            if found == node:
                return
            if found:
                raise RejectedError(f"it is on {found} already")
            if failure:  # it did not happen, and others need not wait behind it
                raise RejectedError(failure)

    def _done(self, pending: PendingPod, pod: PodRef, node: str, began: float) -> None:
        now = self._clock()
        profile = pending.workload.scheduler_name
        self._metrics.attempts.labels(SCHEDULED, profile).inc()
        self._metrics.attempt_seconds.labels(SCHEDULED, profile).observe(now - began)
        self._metrics.sli_seconds.labels(str(min(pending.attempts, 16))).observe(now - pending.since)
        self._metrics.attempts_per_pod.observe(pending.attempts)
        self._events.record(pod, "Scheduled", f"Successfully assigned {pending.key} to {node}", action="Binding")
        if self._is_still(pending):
            self._state.queue.remove(pending.key)
            self._state.clear_nomination(pending.key)

    def _unreserve(self, pending: PendingPod, cause: str, *, again: bool) -> None:
        """Let go of the place, and unless the pod is no more have it tried `again`."""
        self._metrics.bind_failures.labels(cause).inc()
        self._volumes.unreserve(pending.workload)
        if not self._is_still(pending):
            return
        if again:
            self._state.requeue(pending)
        else:
            self._state.drop_pod(pending.key, pending.uid)

    def _is_still(self, pending: PendingPod) -> bool:
        """Whether the pod is the one that was decided about, and nobody has said otherwise since."""
        return self._state.queue.pods.get(pending.key) is pending
