"""
Step through the rollouts of a change until they are complete or nothing moves any more.

In each step every controller acts until it waits, the scheduler places what is pending, deleted pods leave, the
scheduler places what their leaving allows, and pods that got a node become ready if their volumes can be attached.
Knows nothing of clocks or files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from bayplan.controllers.desired_state import PodEntry
from bayplan.controllers.pod_admission import AdmittedPod, PodAdmission
from bayplan.controllers.rollouts import Rollout, RolloutActions
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods
from bayplan.mapping.pods import SpreadContext
from bayplan.model.workloads import WorkloadKey
from bayplan.placing import leaving, volume_provisioning
from bayplan.placing.pod_scheduler import PodScheduler
from bayplan.placing.rollout_history import RolloutHistory, RolloutResult
from bayplan.placing.volume_attaching import VolumeAttaching
from bayplan.placing.volume_provisioning import Provisioning
from bayplan.wire.storage import PersistentVolumeClaim

ENDLESS = "it did not come to an end within {} steps"
# A step makes at least one pod leave, come or become ready; more steps than this mean that pods preempt each other.
STEPS_PER_POD, SPARE_STEPS = 4, 16


class Stepper(msgspec.Struct, eq=False):
    """
    Drives rollouts. New pods and claims pass the `admission`, and what is deleted is given back to the quotas.
    `not_judged` says of new pods why it is not known whether they can be placed, `attaching` whether they can start.

    The scheduler holds all pending pods of the state; others are placed with those of the rollouts.
    """

    rollouts: Sequence[Rollout]
    scheduler: PodScheduler
    index: PlacementIndex
    context: SpreadContext
    provisioning: Provisioning = Provisioning()
    admission: PodAdmission | None = None
    not_judged: dict[WorkloadKey, str] = msgspec.field(default_factory=dict)
    attaching: VolumeAttaching = VolumeAttaching()
    _n_evictions: int = 0
    _added: set[WorkloadKey] = msgspec.field(default_factory=set)

    def run(self, *, progress: Callable[[int], None] = lambda _: None) -> list[RolloutResult]:
        """Step until nothing changes; `progress` receives the number of each step."""
        histories = [RolloutHistory(rollout) for rollout in self.rollouts]
        number, limit, is_moving = 0, SPARE_STEPS, True
        while is_moving and number < limit:
            number += 1
            progress(number)
            is_moving = self._step(histories, number)
            limit = max(limit, SPARE_STEPS + STEPS_PER_POD * sum(len(rollout.pods) for rollout in self.rollouts))
        why, doubts = ENDLESS.format(number) if is_moving else "", self._doubts()
        return [
            history.result(is_complete=not is_moving and history.rollout.is_complete(), why=why, doubts=doubts)
            for history in histories
        ]

    def _doubts(self) -> dict[WorkloadKey, str]:
        return {**self.scheduler.doubts, **self.not_judged}

    def end_state(self) -> list[RolloutResult]:
        """
        Place all that comes after all that goes is gone: whether the end fits, not whether the rollout gets there.

        The controllers act as if every pod became ready at once. A result is complete if every pod has a node.
        """
        histories = [RolloutHistory(rollout) for rollout in self.rollouts]
        for history in histories:
            history.begin(1)
        self._take_in(histories)
        for history in histories:
            self._settle(history)
        self._schedule(histories)
        results = []
        for history in histories:
            history.end(self.scheduler.placements)
            is_placed = all(pod.assigned for pod in history.rollout.pods.values() if pod.active)
            results.append(history.result(is_complete=is_placed and not history.refused, doubts=self._doubts()))
        return results

    def _step(self, histories: Sequence[RolloutHistory], number: int) -> bool:
        """Whether anything changed."""
        for history in histories:
            history.begin(number)
        self._take_in(histories)  # other pods may have been placed since, and preempted some of these
        for history in histories:
            self._act(history)
        self._schedule(histories)
        # A pod is bound within milliseconds of its creation, while a deleted one takes seconds to leave.
        gone = [(history, name) for history in histories for name in self._leaving(history)]
        for history, name in gone:
            self._remove(history, name)
        if gone:
            self._schedule(histories)
        for history in histories:
            history.become_ready(lambda name, of=history: self._obstacle(of, name, histories))  # type: ignore[misc]
        for history in histories:
            history.end(self.scheduler.placements)
        return any(history.acted for history in histories)

    def _leaving(self, history: RolloutHistory) -> list[str]:
        """The deleted pods that leave; the history is told of those that stay."""
        found = []
        for name in history.rollout.pods.leaving():
            node = history.rollout.pods[name].node
            if leaving.is_unreachable(node, self.index):
                history.staying[name] = leaving.STAYS.format(node)
            else:
                found.append(name)
        return found

    def _obstacle(self, history: RolloutHistory, name: str, histories: Sequence[RolloutHistory]) -> str:
        """What is known to keep a pod that has a node from starting there."""
        key, node = history.key_of(name), history.rollout.pods[name].node
        if leaving.is_unreachable(node, self.index):
            return leaving.CANNOT_START.format(node)
        waiting = {one.key_of(blocked) for one in histories for blocked in one.blocked if blocked != name}
        obstacle, is_certain = self.attaching.obstacle(key, self.index, waiting)
        if obstacle and not is_certain:
            self.not_judged[key] = "; ".join(filter(None, (self.not_judged.get(key), obstacle)))
        return obstacle if is_certain else ""

    def _act(self, history: RolloutHistory) -> None:
        """Let the controller act until it waits. A refused pod is tried again in the next step."""
        while actions := history.rollout.sync():
            for name in actions.deleted:
                entry = history.rollout.pods[name]
                if entry.assigned and entry.active:
                    history.delete(name)
                    self._mark_terminating(history.key_of(name))
                else:
                    self._remove(history, name)
            history.acted = history.acted or actions.acts
            if not self._create(history, actions):
                return

    def _settle(self, history: RolloutHistory) -> None:
        """Bring the controller to its end at once; then the pods that it created are pending."""
        before, created = dict(history.rollout.pods), dict[str, PodEntry]()
        while True:
            for name, entry in history.rollout.pods.items():
                if not entry.ready and entry.active:
                    history.rollout.pods[name] = msgspec.structs.replace(entry, ready=True, phase=2)
            actions = history.rollout.sync()
            for name in [*actions.deleted, *(pod.name for pod in history.rollout.pods.values() if pod.terminating)]:
                if name in history.rollout.pods:
                    self._remove(history, name)
                before.pop(name, None)
                created.pop(name, None)
            if not actions or not self._create(history, actions):
                break
            created.update((entry.name, entry) for _, entry in actions.created)
        history.rollout.pods.update({name: entry for name, entry in before.items() if name in history.rollout.pods})
        history.rollout.pods.update({name: entry for name, entry in created.items() if name in history.rollout.pods})

    def _create(self, history: RolloutHistory, actions: RolloutActions) -> bool:
        """Create the pods, up to one that is refused; whether all were created."""
        for replica_set in actions.replica_sets:
            self.context.add_controller(replica_set)
        refused = self._create_claims(actions.claims) if actions.claims else ""
        if refused:
            history.refuse(refused)
            return False
        for pod, entry in actions.created:
            admitted = AdmittedPod(pod) if self.admission is None else self.admission.admit(pod)
            if admitted.refused:
                history.refuse(admitted.refused)
                return False
            self._create_claims(admitted.claims, admitted=True)
            workload = pods.waiting(admitted.pod, self.context)
            doubts = (admitted.not_judged, volume_provisioning.doubt_about(workload, self.index))
            if any(doubts):
                self.not_judged[workload.key] = "; ".join(filter(None, doubts))
            history.add(entry)
            self._added.add(workload.key)
            self.scheduler.add(workload)
        return True

    def _create_claims(self, claims: Iterable[PersistentVolumeClaim], *, admitted: bool = False) -> str:
        """Create the claims that do not exist, up to one that is refused; why it is, empty if none is."""
        for written in claims:
            if self.provisioning.claim_of(written).key in self.index.storage.claims:
                continue
            refused = "" if admitted or self.admission is None else self.admission.admit_claim(written)
            if refused:
                return refused
            self.provisioning.create(written, self.index)
        return ""

    def _schedule(self, histories: Sequence[RolloutHistory]) -> None:
        self.scheduler.schedule()
        self._take_in(histories)

    def _take_in(self, histories: Sequence[RolloutHistory]) -> None:
        """Tell the rollouts which of their pods the scheduler has placed and preempted."""
        for eviction in self.scheduler.evictions[self._n_evictions :]:
            victim = eviction.victim
            for history in histories:
                if victim.namespace == history.rollout.key.namespace and victim.name in history.rollout.pods:
                    # The scheduler has the pod that comes back already, under the same name.
                    history.evict(victim.name, is_recreated=eviction.is_recreated)
        self._n_evictions = len(self.scheduler.evictions)
        for history in histories:
            history.assign(self.scheduler.placements)

    def _remove(self, history: RolloutHistory, name: str) -> None:
        key = history.key_of(name)
        history.remove(name)
        # A finished pod takes no room, and a pending one may be left out of the answer: neither is known here.
        if key in self.index.records or key in self._added or key in self.scheduler.placements:
            self.scheduler.remove(key)
        self._added.discard(key)
        if self.admission is not None:
            self.admission.quotas.give_back(history.rollout.key.namespace, name)
        self.not_judged.pop(key, None)

    def _mark_terminating(self, key: WorkloadKey) -> None:
        placed = self.index.records.get(key)
        if placed is not None:
            self.index.replace(msgspec.structs.replace(placed.workload, terminating=True))
