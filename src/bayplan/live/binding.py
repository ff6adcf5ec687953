"""
Carries out a decision: binds the volumes, then the pod, then records the event; unreserves if the API server rejects.

A missing response does not mean that nothing happened: the pod is read until the outcome is known. Until the API server
reports a chosen volume, the choice is kept in the index, so that no other pod chooses the same volume.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence

import msgspec

from bayplan.errors import BayplanError
from bayplan.indexing.journal import Change, ChangeType, Journal
from bayplan.live.cluster_writer import (
    ClaimRef,
    PodGoneError,
    PodRef,
    RejectedError,
    ServerFailureError,
    UnknownOutcomeError,
)
from bayplan.live.context import SchedulerContext
from bayplan.live.loop import InFlightBinds
from bayplan.live.metrics import ERROR, SCHEDULED
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload
from bayplan.queueing.pending_pod import PendingPod
from bayplan.rules import volume_binding

MAX_RETRY_PAUSE_SECONDS = 10.0
VOLUME_BIND_TIMEOUT_SECONDS = 600.0  # kube-scheduler's bindTimeoutSeconds
CLAIMS, VOLUMES = "claims", "volumes"  # tables of the index
log = logging.getLogger("bayplan.binding")


class VolumesUnboundError(BayplanError):
    """A volume was not bound in time or was bound out of reach of the node, or its claim was deleted."""


class _VolumeChoice(msgspec.Struct, frozen=True):
    """The decision for one claim: the claim and volume before it, and the object that the index holds meanwhile."""

    claim: Claim
    volume: Volume | None
    assumed: Claim | Volume
    version: str = ""  # resourceVersion of the volume


class _VolumeWait:
    """A pod that waits for its volumes: `changed` is set when it must check again, `is_removed` if the pod is gone."""

    __slots__ = ("changed", "claims", "is_removed")

    def __init__(self, claims: Sequence[str]) -> None:
        self.changed = asyncio.Event()
        self.claims = claims
        self.is_removed = False


class VolumeWaits:
    """
    The pods that wait for their volumes.

    `changed` must be called when a claim or volume is reported, so that they check theirs again, and `pod_removed` when
    a pod is no longer to be bound. A tenant may change its claims as often as it likes, so a claim that differs in
    nothing that is read wakes no pod, and another only those that wait for it. Volumes are the administrator's.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal, self._position = journal, journal.end
        # By uid: a pod recreated under the same name shares nothing with the pod that still waits.
        self._waiting: dict[str, _VolumeWait] = {}
        self._by_claim: dict[str, set[_VolumeWait]] = {}

    def changed(self) -> None:
        changes = self._journal.but_workloads_since(self._position)
        self._position = self._journal.end
        for wait in self._concerned(changes) if self._waiting else ():
            wait.changed.set()

    def _concerned(self, changes: Sequence[Change] | None) -> Collection[_VolumeWait]:
        if changes is None or any(c.table == VOLUMES or c.type is ChangeType.TARGET_REMOVED for c in changes):
            return self._waiting.values()
        claims = {change.name for change in changes if change.table == CLAIMS}
        return {wait for claim in claims for wait in self._by_claim.get(claim, ())}

    def pod_removed(self, pending: PendingPod) -> None:
        """Stop the wait of a pod that is no longer to be bound."""
        wait = self._waiting.get(pending.uid)
        if wait is not None:
            wait.is_removed = True
            wait.changed.set()

    def begin(self, workload: Workload, claims: Sequence[str]) -> _VolumeWait:
        """The wait of a pod for these claims, until `end`."""
        wait = self._waiting[workload.uid] = _VolumeWait(claims)
        for claim in claims:
            self._by_claim.setdefault(claim, set()).add(wait)
        return wait

    def end(self, workload: Workload) -> None:
        wait = self._waiting.pop(workload.uid)
        for claim in wait.claims:
            self._by_claim[claim].discard(wait)
            if not self._by_claim[claim]:
                del self._by_claim[claim]


class VolumeBinder:
    """
    Binds claims with delayed binding: the provisioner receives the node, or an existing volume is bound to the claim.

    `waits` are told of changed claims and volumes by others.
    """

    def __init__(
        self,
        context: SchedulerContext,
        waits: VolumeWaits,
        binds_in_flight: InFlightBinds,
        timeout: float = VOLUME_BIND_TIMEOUT_SECONDS,
    ) -> None:
        self._index = context.state.index
        self._versions = context.state.volume_versions
        self._writer = context.writer
        self._waits = waits
        self._binds_in_flight = binds_in_flight
        self._timeout = timeout
        self._chosen: dict[str, list[_VolumeChoice]] = {}  # by uid, as the waits

    def assume(self, workload: Workload, slot: int) -> None:
        """Choose volumes for the unbound claims of a workload on this node and reserve them in the index."""
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
                selected = msgspec.structs.replace(claim, selected_node=node)
                self._index.set_claim(claim.key, selected)
                chosen.append(_VolumeChoice(claim, None, selected))
        if chosen:
            self._chosen[workload.uid] = chosen

    def unreserve(self, workload: Workload) -> None:
        """Release the chosen volumes. What the API server has reported since stays."""
        storage = self._index.storage
        for choice in self._chosen.pop(workload.uid, ()):
            volume, claim = choice.volume, choice.claim
            if volume is None:
                if storage.claims.get(claim.key) is choice.assumed:
                    self._index.set_claim(claim.key, claim)
            elif storage.volumes.get(volume.name) is choice.assumed:
                self._index.set_volume(volume.name, volume)

    async def bind(self, workload: Workload, node: str) -> None:
        """Bind the chosen volumes and wait until they are bound; PodGoneError if the pod is removed meanwhile."""
        chosen = self._chosen.get(workload.uid, ())
        try:
            for choice in chosen:
                if choice.volume is not None:
                    await self._writer.reserve_volume(choice.volume.name, choice.version, ClaimRef.of(choice.claim))
                else:
                    await self._writer.select_node(ClaimRef.of(choice.claim), node)
        except (PodGoneError, UnknownOutcomeError) as error:  # of a claim or a volume, not of the pod
            raise VolumesUnboundError(str(error)) from error
        if chosen:
            await self._wait_until_bound(workload, node, chosen)
            self._chosen.pop(workload.uid, None)

    async def bind_all(self, pods: Sequence[tuple[Workload, str]]) -> list[BayplanError]:
        """Bind the volumes of several pods at once; returns why that failed for some."""
        task, waiting = asyncio.current_task(), self._binds_in_flight.waiting_tasks
        waiting.add(task)
        try:
            waits = (self.bind(workload, node) for workload, node in pods)
            outcomes = await asyncio.gather(*waits, return_exceptions=True)
        finally:
            waiting.discard(task)
        failures = []
        for outcome in outcomes:
            if isinstance(outcome, BayplanError):
                failures.append(outcome)
            elif outcome is not None:
                raise outcome
        return failures

    async def _wait_until_bound(self, workload: Workload, node: str, chosen: Sequence[_VolumeChoice]) -> None:
        wait = self._waits.begin(workload, [choice.claim.key for choice in chosen])
        try:
            async with asyncio.timeout(self._timeout):
                while not all(self._is_bound(choice, node) for choice in chosen):
                    wait.changed.clear()
                    with self._binds_in_flight.released():
                        await wait.changed.wait()
                    if wait.is_removed:
                        raise PodGoneError(f"{workload.key} is gone")
        except TimeoutError:
            names = ", ".join(choice.claim.name for choice in chosen)
            raise VolumesUnboundError(f"claims {names} were not bound within {self._timeout:.0f} s") from None
        finally:
            self._waits.end(workload)

    def _is_bound(self, choice: _VolumeChoice, node: str) -> bool:
        """Whether the claim is bound to a volume that the node can reach."""
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


class Binder:
    """Binds one pod per call; calls run concurrently."""

    def __init__(
        self,
        context: SchedulerContext,
        volumes: VolumeBinder,
        on_bound: Callable[[Workload, str], None] = lambda _, __: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._state, self._queue, self._writer = context.state, context.state.queue, context.writer
        self._events, self._metrics, self._clock = context.events, context.metrics, context.clock
        self._volumes, self._on_bound = volumes, on_bound
        self._sleep = sleep

    async def bind(self, pending: PendingPod, node: str, began: float) -> None:
        """Bind a pod to the node on which it is already assumed."""
        pod = PodRef.of(pending.workload)
        try:
            await self._volumes.bind(pending.workload, node)
            await self._bind_until_known(pod, node, pending)
        except PodGoneError:
            self._unreserve(pending, "gone", retry=False)
        except (RejectedError, VolumesUnboundError) as error:
            log.warning("bind rejected", extra={"pod": pending.key, "node": node, "error": str(error)})
            if self._queue.holds(pending):
                note = f"binding {pending.key} to {node} was rejected: {error}"
                self._events.record(pod, "FailedScheduling", note, action="Binding", warning=True)
            self._metrics.attempts.labels(ERROR, pending.workload.scheduler_name).inc()
            self._unreserve(pending, "refused", retry=True)
        else:
            self._finish(pending, pod, node, began)

    async def bind_together(self, pods: Sequence[tuple[PendingPod, str]], began: float) -> None:
        """Bind pods to the nodes on which they are assumed; none of them before the volumes of all are bound."""
        with_volumes = [(one.workload, node) for one, node in pods if one.workload.needs.claims.names]
        failures = await self._volumes.bind_all(with_volumes) if with_volumes else []
        gone = [pending for pending, _ in pods if not self._queue.holds(pending)]
        if failures or gone:
            why = str(failures[0]) if failures else f"{gone[0].key} is gone"
            log.warning("group not bound", extra={"pods": len(pods), "error": why})
            for pending, _ in pods:
                if pending not in gone:
                    note = f"binding the group of {pending.key} was given up: {why}"
                    self._events.record(
                        PodRef.of(pending.workload), "FailedScheduling", note, action="Binding", warning=True
                    )
                self._unreserve(pending, "refused", retry=True)
            return
        await asyncio.gather(*(self.bind(pending, node, began) for pending, node in pods))

    async def _bind_until_known(self, pod: PodRef, node: str, pending: PendingPod) -> None:
        """Bind the pod. While the outcome is unknown, read the pod and bind it again if it is still unbound."""
        pause = 1.0
        while True:
            if node not in self._state.index.slots.by_name:
                raise RejectedError(f"node {node} is gone")  # the API server accepts any node name
            try:
                await self._writer.bind(pod, node)
            except UnknownOutcomeError as error:
                failure = str(error) if isinstance(error, ServerFailureError) else ""
                self._metrics.bind_failures.labels("unclear").inc()
                log.warning("bind outcome unknown", extra={"pod": pending.key, "node": node, "error": str(error)})
            else:
                return
            await self._sleep(pause)
            pause = min(2 * pause, MAX_RETRY_PAUSE_SECONDS)
            if not self._queue.holds(pending):
                if self._state.is_bound(pod.uid, pending.key, node):
                    return  # reported by the watch meanwhile
                raise PodGoneError(f"{pending.key} was deleted or bound elsewhere")
            try:
                found = await self._writer.node_of(pod)
            except UnknownOutcomeError:
                continue
            if found == node:
                return
            if found:
                raise RejectedError(f"it is on {found} already")
            if failure:  # the bind did not happen, and other pods need not wait for this one
                raise RejectedError(failure)

    def _finish(self, pending: PendingPod, pod: PodRef, node: str, began: float) -> None:
        now = self._clock()
        self._metrics.observe_attempt(SCHEDULED, pending.workload.scheduler_name, now - began)
        self._metrics.observe_scheduled_pod(pending.attempts, now - pending.since)
        self._events.record(pod, "Scheduled", f"Successfully assigned {pending.key} to {node}", action="Binding")
        self._queue.done(pending)
        self._on_bound(pending.workload, node)

    def _unreserve(self, pending: PendingPod, cause: str, *, retry: bool) -> None:
        """Release the node and the volumes; requeue the pod if `retry`, else drop it."""
        self._metrics.bind_failures.labels(cause).inc()
        self._volumes.unreserve(pending.workload)
        if not self._queue.holds(pending):
            return
        if retry:
            self._state.requeue(pending)
        else:
            self._state.drop_pod(pending.key, pending.uid)
