"""What happened to the pods of one workload during a rollout, step by step, and how it ended. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from bayplan.controllers.desired_state import ObjectKey, PodEntry
from bayplan.model.workloads import WorkloadKey
from bayplan.placing.place_pods import PodPlacement

if TYPE_CHECKING:
    from bayplan.controllers.rollouts import (
        Rollout,
    )  # most answers have no rollouts, and its tables are always imported

COMPLETE, STUCK, NOT_JUDGED, HELD_BACK = "complete", "stuck", "not judged", "held back"
WAITS = "its controller neither creates nor deletes pods any more"


class PodOnNode(msgspec.Struct, frozen=True):
    """A pod and its node, "" while it is pending."""

    pod: str
    node: str = ""


class Move(msgspec.Struct, frozen=True):
    """A pod that left and the one that came for it; None if the workload grew or shrank."""

    left: PodOnNode | None
    came: PodOnNode | None

    @property
    def changes_node(self) -> bool:
        """Whether the new pod is on another node than the one that left."""
        return self.left is not None and self.came is not None and self.left.node != self.came.node


class RolloutStep(msgspec.Struct):
    """
    What one workload did in one step.

    `pending` has the pods without a node after it, with the reason; `refused` says why a pod was not admitted.
    """

    number: int
    created: list[str] = msgspec.field(default_factory=list)
    deleted: list[PodOnNode] = msgspec.field(default_factory=list)
    placed: list[PodOnNode] = msgspec.field(default_factory=list)
    pending: list[tuple[str, str]] = msgspec.field(default_factory=list)
    refused: str = ""


class RolloutResult(msgspec.Struct, frozen=True):
    """
    How the rollout of one workload ends.

    `stuck_at` is the last step in which it created or deleted a pod, 0 if it is not stuck. `why` says what it waits
    for, or why it is not judged, and `pending` has its pods without a node, with the reason. `note` says what keeps the
    new template from pods; it is held back if no running pod is replaced by one that has it.
    """

    workload: ObjectKey
    result: str
    stuck_at: int
    why: str
    pending: tuple[tuple[str, str], ...]
    moves: tuple[Move, ...]
    steps: tuple[RolloutStep, ...]
    note: str = ""

    @property
    def is_complete(self) -> bool:
        return self.result == COMPLETE

    @property
    def is_stuck(self) -> bool:
        return self.result == STUCK

    @property
    def is_held_back(self) -> bool:
        return self.result == HELD_BACK


class RolloutHistory(msgspec.Struct, eq=False):
    """
    The pods of one rollout as they come and go.

    `acted` says whether the present step changed anything. `starting` are pods that got a node in this step, `blocked`
    those that have one and cannot start there, `staying` deleted ones that do not leave, with the reasons.
    """

    rollout: Rollout
    acted: bool = False
    starting: set[str] = msgspec.field(default_factory=set)
    blocked: dict[str, str] = msgspec.field(default_factory=dict)
    staying: dict[str, str] = msgspec.field(default_factory=dict)
    _step: RolloutStep = msgspec.field(default_factory=lambda: RolloutStep(0))
    _steps: list[RolloutStep] = msgspec.field(default_factory=list)
    _left: list[PodOnNode] = msgspec.field(default_factory=list)
    _created: dict[str, None] = msgspec.field(default_factory=dict)

    def key_of(self, name: str) -> WorkloadKey:
        """The key of one of its pods."""
        return WorkloadKey(f"{self.rollout.key.namespace}/{name}")

    @property
    def refused(self) -> str:
        """Why a pod was not admitted in the present step."""
        return self._step.refused

    def begin(self, number: int) -> None:
        """A step begins."""
        self._step, self.acted = RolloutStep(number), False
        self.starting.clear()

    def add(self, entry: PodEntry) -> None:
        """A pod was created."""
        self.rollout.pods[entry.name] = entry
        self._created[entry.name] = None
        self._step.created.append(entry.name)
        self.acted = True

    def refuse(self, message: str) -> None:
        """A pod was not admitted."""
        self._step.refused = message

    def delete(self, name: str) -> None:
        """A pod was deleted; it leaves later if it has a node."""
        entry = self.rollout.pods[name]
        self.rollout.pods[name] = msgspec.structs.replace(entry, active=False, terminating=True, ready=False)
        self._step.deleted.append(_on_node(entry))
        self.acted = True

    def remove(self, name: str) -> None:
        """A pod is gone."""
        entry = self.rollout.pods.pop(name)
        if name in self._created:
            del self._created[name]
        else:
            self._left.append(_on_node(entry))
        if not entry.terminating:
            self._step.deleted.append(_on_node(entry))
        self.starting.discard(name)
        self.blocked.pop(name, None)
        self.acted = True

    def evict(self, name: str, *, is_recreated: bool) -> None:
        """A pod was preempted and is gone; a new one of the same name is pending if it `is_recreated`."""
        entry = self.rollout.pods[name]
        self.remove(name)
        if is_recreated:
            node = entry.node if self.rollout.key.kind == "DaemonSet" else ""
            self.add(msgspec.structs.replace(entry, assigned=False, ready=False, phase=0, node=node, uid=""))

    def assign(self, placements: Mapping[WorkloadKey, PodPlacement]) -> None:
        """Note which pods got a node."""
        for name in self.rollout.pods.pending():
            placement = placements.get(self.key_of(name))
            if placement is not None and placement.target:
                entry = self.rollout.pods[name]
                self.rollout.pods[name] = msgspec.structs.replace(entry, assigned=True, node=placement.target)
                self._step.placed.append(PodOnNode(name, placement.target))
                self.starting.add(name)
                self.acted = True

    def become_ready(self, obstacle_of: Callable[[str], str]) -> None:
        """
        Pods that got a node become ready, unless something keeps one from starting.

        Pods that ran and were not ready before stay so.
        """
        for name in (*self.blocked, *sorted(self.starting - self.blocked.keys())):
            obstacle = obstacle_of(name)
            if obstacle:
                self.blocked[name] = obstacle
                continue
            self.acted = bool(self.blocked.pop(name, "")) or self.acted
            self.rollout.pods[name] = msgspec.structs.replace(self.rollout.pods[name], ready=True, phase=2)

    def end(self, placements: Mapping[WorkloadKey, PodPlacement]) -> None:
        """The step is over."""
        for name in self.rollout.pods.pending():
            placement = placements.get(self.key_of(name))
            self._step.pending.append((name, placement.message if placement else ""))
        if self.acted or not self._steps:
            self._steps.append(self._step)
        else:
            self._steps[-1].pending, self._steps[-1].refused = self._step.pending, self._step.refused

    def result(self, *, is_complete: bool, doubts: Mapping[WorkloadKey, str], why: str = "") -> RolloutResult:
        """
        How it ended; `why` is said if nothing else is known to be in the way.

        It is not judged if it completes only as far as is known: `doubts` say of pods what is not.
        """
        last = self._steps[-1]
        completed = HELD_BACK if self.rollout.is_held_back else COMPLETE
        if is_complete:
            stuck_at, why = 0, next((doubts[key] for key in map(self.key_of, self.rollout.pods) if key in doubts), "")
        else:
            stuck_at = max((step.number for step in self._steps if step.created or step.deleted), default=1)
            why = _why(last) or self._why_blocked() or self.rollout.waits_for() or why or WAITS
        return RolloutResult(
            workload=self.rollout.key,
            result=STUCK if not is_complete else NOT_JUDGED if why else completed,
            stuck_at=stuck_at,
            why=why,
            pending=tuple(last.pending),
            moves=tuple(self._moves()),
            steps=tuple(step for step in self._steps if step.created or step.deleted or step.placed),
            note=self.rollout.note,
        )

    def _why_blocked(self) -> str:
        return next((f"{name}: {obstacle}" for name, obstacle in (*self.blocked.items(), *self.staying.items())), "")

    def _moves(self) -> list[Move]:
        """Pods that left with those that came: of the same name, else on the same node, else in their order."""
        came = [_on_node(self.rollout.pods[name]) for name in self._created]
        moves: list[Move] = []
        left = list(self._left)
        for key in (_name_of, _node_of, lambda _: ""):
            waiting: dict[str, list[PodOnNode]] = {}
            for pod in came:
                waiting.setdefault(key(pod), []).append(pod)
            unmatched = []
            for pod in left:
                found = waiting.get(key(pod))
                if found:
                    moves.append(Move(pod, found.pop(0)))
                else:
                    unmatched.append(pod)
            taken = {id(move.came) for move in moves}
            left, came = unmatched, [pod for pod in came if id(pod) not in taken]
        return [*moves, *(Move(pod, None) for pod in left), *(Move(None, pod) for pod in came)]


def _on_node(entry: PodEntry) -> PodOnNode:
    return PodOnNode(entry.name, entry.node if entry.assigned else "")


def _name_of(pod: PodOnNode) -> str:
    return pod.pod


def _node_of(pod: PodOnNode) -> str:
    return pod.node or f"pending {pod.pod}"


def _why(last: RolloutStep) -> str:
    if not last.pending:
        return last.refused
    name, message = last.pending[0]
    more = f" (and {len(last.pending) - 1} more)" if len(last.pending) > 1 else ""
    return f"{name}{more}: {message or 'pending'}"
