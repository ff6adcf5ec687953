"""
Which pods a StatefulSet creates and deletes next (pkg/controller/statefulset/stateful_set_control.go).

One call of `sync` is one of the controller, and costs what it does, however many pods there are. `maxUnavailable` has
no effect, because the feature gate MaxUnavailableStatefulSet is off by default in Kubernetes 1.36. Makes no pods, and
claims of deleted pods stay.
"""

from __future__ import annotations

from collections.abc import Container

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
    """The ordinal at the end of the pod's name, -1 if it is no name that this set gives."""
    parent, _, digits = pod_name.rpartition("-")
    if parent != set_name or not (digits.isascii() and digits.isdecimal()) or (digits[0] == "0" and digits != "0"):
        return -1
    ordinal = int(digits[: _MAX_DIGITS + 1])
    return ordinal if ordinal <= _MAX_ORDINAL else -1


class PodsByOrdinal:
    """
    The pods of a StatefulSet by ordinal, and the few of them on which it depends what its controller does.

    `outdated` pods are those that an update deletes, in its turn. `unavailable` ones may be condemned too.
    """

    def __init__(self, state: StatefulSetState) -> None:
        self.state = state
        self.ordinals = range(state.start, state.start + state.replicas)
        self.updated = () if state.on_delete else self.ordinals[state.partition :]
        self.pods: dict[int, PodEntry] = {}
        self.missing = set(self.ordinals)
        self.condemned: set[int] = set()
        self.unavailable: set[int] = set()
        self.outdated: set[int] = set()

    def put(self, pod: PodEntry) -> None:
        """Take in a pod whose ordinal has none."""
        ordinal = ordinal_of(pod.name, self.state.name)
        if ordinal < 0:
            return
        self.pods[ordinal] = pod
        if ordinal in self.ordinals:
            self.missing.discard(ordinal)
        else:
            self.condemned.add(ordinal)
        if not (pod.ready and pod.active):
            self.unavailable.add(ordinal)
        if ordinal in self.updated and pod.revision != self.state.update_revision and not pod.terminating:
            self.outdated.add(ordinal)

    def remove(self, pod: PodEntry) -> None:
        """Forget a pod."""
        ordinal = ordinal_of(pod.name, self.state.name)
        if self.pods.pop(ordinal, None) is None:
            return
        for marked in (self.condemned, self.unavailable, self.outdated):
            marked.discard(ordinal)
        if ordinal in self.ordinals:
            self.missing.add(ordinal)

    def unavailable_in(self, ordinals: Container[int]) -> list[int]:
        """The ordinals among these whose pods exist and are not available."""
        return [ordinal for ordinal in self.unavailable if ordinal in ordinals]


def sync(pods: PodsByOrdinal) -> StatefulSetActions:
    """What the controller does next; nothing while it waits for a pod to become ready or to be gone."""
    if pods.state.parallel:
        return _sync_parallel(pods)
    waiting = [*pods.unavailable_in(pods.ordinals), *pods.missing]
    if waiting:
        pod = pods.pods.get(first := min(waiting))
        if pod is None:
            return StatefulSetActions(created=(first,))
        return StatefulSetActions(deleted=(pod.name,)) if _is_finished(pod) else NOTHING
    if pods.condemned:
        pod = pods.pods[highest := max(pods.condemned)]
        # All replicas are available, so the first unavailable pod is the lowest condemned one that is not.
        is_held_up = highest in pods.unavailable and highest != min(pods.unavailable)
        return NOTHING if pod.terminating or is_held_up else StatefulSetActions(deleted=(pod.name,))
    return _update(pods)


def _sync_parallel(pods: PodsByOrdinal) -> StatefulSetActions:
    """Missing pods and those beyond the replicas at once, without waiting; updates still go one by one."""
    finished = [at for at in sorted(pods.unavailable_in(pods.ordinals)) if _is_finished(pods.pods[at])]
    surplus = [at for at in sorted(pods.condemned, reverse=True) if not pods.pods[at].terminating]
    if pods.missing or finished or surplus:
        return StatefulSetActions(
            tuple(sorted(pods.missing)), tuple(pods.pods[at].name for at in (*finished, *surplus))
        )
    return _update(pods)


def _update(pods: PodsByOrdinal) -> StatefulSetActions:
    """Delete the highest pod of another revision, if no pod above it is unavailable."""
    if not pods.outdated:
        return NOTHING
    highest = max(pods.outdated)
    is_held_up = any(ordinal > highest for ordinal in pods.unavailable_in(pods.updated))
    return NOTHING if is_held_up else StatefulSetActions(deleted=(pods.pods[highest].name,))


def _is_finished(pod: PodEntry) -> bool:
    return not pod.active and not pod.terminating
