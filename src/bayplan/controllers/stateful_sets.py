"""
Which pods a StatefulSet creates and deletes next (pkg/controller/statefulset/stateful_set_control.go).

One call is one sync of the controller. `maxUnavailable` has no effect, because the feature gate
MaxUnavailableStatefulSet is off by default in Kubernetes 1.36. Makes no pods, and claims of deleted pods stay.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.controllers.desired_state import PodEntry
from bayplan.wire.controllers import Controller

PARALLEL, ON_DELETE = "Parallel", "OnDelete"
_MAX_ORDINAL = 2**31 - 1
_MAX_DIGITS = 253  # of a name


class StatefulSetState(msgspec.Struct, frozen=True):
    """A StatefulSet with its two revisions: what pods below the partition have, and what all others get."""

    name: str
    replicas: int
    current_revision: str
    update_revision: str
    start: int = 0
    parallel: bool = False
    on_delete: bool = False
    partition: int = 0

    def revision_of(self, ordinal: int) -> str:
        """The revision at which a missing pod is created."""
        return self.current_revision if ordinal < self.start + self.partition else self.update_revision


class StatefulSetActions(msgspec.Struct, frozen=True):
    """Ordinals whose pods are created, and names of pods that are deleted."""

    created: tuple[int, ...] = ()
    deleted: tuple[str, ...] = ()


NOTHING = StatefulSetActions()


def state_of(controller: Controller, current_revision: str, update_revision: str) -> StatefulSetState:
    """The StatefulSet with the API server's defaults; `OnDelete` has no partition."""
    spec, strategy = controller.spec, controller.spec.update_strategy
    on_delete = strategy is not None and strategy.type == ON_DELETE
    rolling = strategy.rolling_update if strategy else None
    return StatefulSetState(
        name=controller.metadata.name,
        replicas=1 if spec.replicas is None else spec.replicas,
        current_revision=current_revision,
        update_revision=update_revision,
        start=start_of(controller),
        parallel=spec.pod_management_policy == PARALLEL,
        on_delete=on_delete,
        partition=0 if on_delete or rolling is None else max(0, rolling.partition or 0),
    )


def start_of(controller: Controller) -> int:
    """The ordinal of the first pod; a negative one, which an API server refuses, counts as 0."""
    return max(0, (controller.spec.ordinals or {}).get("start", 0))


def ordinal_of(pod_name: str, set_name: str) -> int:
    """The ordinal at the end of the pod's name, -1 if it is no name of a pod of this set."""
    parent, _, digits = pod_name.rpartition("-")
    if parent != set_name or not (digits.isascii() and digits.isdecimal()):
        return -1
    ordinal = int(digits[: _MAX_DIGITS + 1])
    return ordinal if ordinal <= _MAX_ORDINAL else -1


def sync(state: StatefulSetState, pods: Iterable[PodEntry]) -> StatefulSetActions:
    """What the controller does next; nothing while it waits for a pod to become ready or to be gone."""
    replicas: dict[int, PodEntry] = {}
    condemned: dict[int, PodEntry] = {}
    ordinals = range(state.start, state.start + state.replicas)
    for pod in pods:
        ordinal = ordinal_of(pod.name, state.name)
        if ordinal >= 0:
            (replicas if ordinal in ordinals else condemned)[ordinal] = pod
    if state.parallel:
        return _sync_parallel(state, replicas, condemned)
    for ordinal in ordinals:
        replica = replicas.get(ordinal)
        if replica is None:
            return StatefulSetActions(created=(ordinal,))
        if _is_finished(replica):
            return StatefulSetActions(deleted=(replica.name,))
        if not _is_available(replica):
            return NOTHING
    # All replicas are available, so the first unavailable pod is the lowest condemned one that is not.
    unavailable = next((condemned[at].name for at in sorted(condemned) if not _is_available(condemned[at])), "")
    for ordinal in sorted(condemned, reverse=True):
        pod = condemned[ordinal]
        if pod.terminating or (not _is_available(pod) and pod.name != unavailable):
            return NOTHING
        return StatefulSetActions(deleted=(pod.name,))
    return _update(state, replicas)


def _sync_parallel(
    state: StatefulSetState, replicas: dict[int, PodEntry], condemned: dict[int, PodEntry]
) -> StatefulSetActions:
    """Missing pods and those beyond the replicas at once, without waiting; updates still go one by one."""
    ordinals = range(state.start, state.start + state.replicas)
    created = tuple(ordinal for ordinal in ordinals if ordinal not in replicas)
    finished = [pod.name for _, pod in sorted(replicas.items()) if _is_finished(pod)]
    surplus = [condemned[at].name for at in sorted(condemned, reverse=True) if not condemned[at].terminating]
    if created or finished or surplus:
        return StatefulSetActions(created, (*finished, *surplus))
    return _update(state, replicas)


def _update(state: StatefulSetState, replicas: dict[int, PodEntry]) -> StatefulSetActions:
    """Delete the highest pod of another revision, if no pod above it is unavailable."""
    if state.on_delete:
        return NOTHING
    for ordinal in range(state.start + state.replicas - 1, state.start + state.partition - 1, -1):
        pod = replicas[ordinal]
        if pod.revision != state.update_revision and not pod.terminating:
            return StatefulSetActions(deleted=(pod.name,))
        if not _is_available(pod):
            return NOTHING
    return NOTHING


def _is_finished(pod: PodEntry) -> bool:
    return not pod.active and not pod.terminating


def _is_available(pod: PodEntry) -> bool:
    return pod.ready and pod.active
