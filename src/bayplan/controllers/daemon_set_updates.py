"""
Which daemon pods are created and deleted next (pkg/controller/daemon: manage in daemon_controller.go, update.go).

One call is one sync of the controller. Which nodes run the pods is said by `daemon_sets`. Makes no pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.controllers.desired_state import PodEntry
from bayplan.controllers.scaled_values import scaled
from bayplan.wire.controllers import Controller

ON_DELETE = "OnDelete"


class NodeState(msgspec.Struct, frozen=True):
    """Whether a daemon pod is created on the node, and whether one that runs there stays."""

    runs: bool
    keeps: bool


class DaemonSetState(msgspec.Struct, frozen=True):
    """A DaemonSet as it rolls out; the limits are as written."""

    revision: str
    generation: str = ""
    on_delete: bool = False
    max_surge: int | str = 0
    max_unavailable: int | str = 1

    def is_updated(self, pod: PodEntry) -> bool:
        """Whether the pod was made from the present template (IsPodUpdated)."""
        return pod.revision == self.revision or bool(self.generation and pod.generation == self.generation)

    @property
    def surges(self) -> bool:
        return not self.on_delete and scaled(self.max_surge, 1, up=True) > 0


class DaemonSetActions(msgspec.Struct, frozen=True):
    """Nodes on which a pod is created, and names of pods that are deleted."""

    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.created or self.deleted)


def state_of(controller: Controller, revision: str, generation: str) -> DaemonSetState:
    """The DaemonSet with the API server's defaults: maxUnavailable 1, no surge."""
    strategy = controller.spec.update_strategy
    rolling = strategy.rolling_update if strategy else None
    surge = rolling.max_surge if rolling else None
    unavailable = rolling.max_unavailable if rolling else None
    return DaemonSetState(
        revision,
        generation,
        on_delete=strategy is not None and strategy.type == ON_DELETE,
        max_surge=0 if surge is None else surge,
        max_unavailable=1 if unavailable is None else unavailable,
    )


def sync(state: DaemonSetState, nodes: Mapping[str, NodeState], pods: Sequence[PodEntry]) -> DaemonSetActions:
    """
    What the controller does next. `nodes` are all nodes by name, in the order in which they are updated.

    A sync that creates or deletes pods for another reason does not also update some.
    """
    by_node: dict[str, list[PodEntry]] = {}
    for pod in pods:
        if pod.node:
            by_node.setdefault(pod.node, []).append(pod)
    managed = _manage(state, nodes, by_node)
    if managed or state.on_delete:
        return managed
    for name, node in nodes.items():
        if node.runs:
            by_node.setdefault(name, [])
    n_desired = sum(node.runs for node in nodes.values())
    max_unavailable = scaled(state.max_unavailable, n_desired, up=True)
    max_surge = scaled(state.max_surge, n_desired, up=True)
    if n_desired and not max_unavailable and not max_surge:
        max_unavailable = 1
    ordered = {name: by_node[name] for name in nodes if name in by_node}
    if not max_surge:
        return _replace(state, ordered, max_unavailable)
    return _surge(state, nodes, ordered, max_surge, n_desired)


def _manage(
    state: DaemonSetState, nodes: Mapping[str, NodeState], by_node: Mapping[str, list[PodEntry]]
) -> DaemonSetActions:
    """One pod for each node that runs one; pods that finished or are one too many go."""
    created, deleted = [], []
    for name, node in nodes.items():
        pods = by_node.get(name)
        if node.runs and pods is None:
            created.append(name)
        elif node.keeps:
            finished = [pod for pod in pods or () if not pod.active and not pod.terminating]
            deleted += [pod.name for pod in finished]
            running = sorted(
                (pod for pod in pods or () if pod.active), key=lambda pod: (not pod.assigned, pod.created, pod.name)
            )
            if not state.surges:
                deleted += [pod.name for pod in running[1:]]
            elif len(running) > 1:
                deleted += _surplus(state, running)
            elif not running and node.runs:
                created.append(name)
        else:
            deleted += [pod.name for pod in pods or () if not pod.terminating]
    gone = (pod for name, pods in by_node.items() if name not in nodes for pod in pods)
    deleted += [pod.name for pod in gone if not pod.assigned and not pod.terminating]
    return DaemonSetActions(tuple(created), tuple(deleted))


def _surplus(state: DaemonSetState, running: Sequence[PodEntry]) -> list[str]:
    """While it surges, a node keeps one old pod that is ready and one new pod that is not yet."""
    new = next((pod for pod in running if pod.revision == state.revision), None)
    old = next((pod for pod in running if pod.revision != state.revision), None)
    surplus = [pod.name for pod in running if pod is not new and pod is not old]
    if new is not None and old is not None and (not old.ready or new.ready):
        surplus.append(old.name)
    return surplus


def _updated_and_old(state: DaemonSetState, pods: Sequence[PodEntry]) -> tuple[PodEntry | None, PodEntry | None] | None:
    """The node's pod of the present template and its old one; None if it has several of a sort."""
    staying = [pod for pod in pods if not pod.terminating]
    new = [pod for pod in staying if state.is_updated(pod)]
    old = [pod for pod in staying if not state.is_updated(pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return new[0] if new else None, old[0] if old else None


def _replace(state: DaemonSetState, by_node: Mapping[str, list[PodEntry]], max_unavailable: int) -> DaemonSetActions:
    """Delete old pods that are unavailable, and as many others as may be unavailable."""
    n_unavailable, unavailable, candidates = 0, [], []
    for pods in by_node.values():
        found = _updated_and_old(state, pods)
        new, old = found or (None, None)
        if found is None or (new is None) == (old is None):
            n_unavailable += 1
        elif old is None:
            n_unavailable += new is not None and not new.ready
        elif not old.ready or not old.active:
            unavailable.append(old.name)
            n_unavailable += 1
        else:
            candidates.append(old.name)
    n_more = max(0, max_unavailable - n_unavailable)
    return DaemonSetActions(deleted=(*unavailable, *candidates[:n_more]))


def _surge(
    state: DaemonSetState,
    nodes: Mapping[str, NodeState],
    by_node: Mapping[str, list[PodEntry]],
    max_surge: int,
    n_desired: int,
) -> DaemonSetActions:
    """Create new pods beside old ones; an old pod goes once the new one is available."""
    n_surging, n_available = 0, 0
    deleted: list[str] = []
    leaving: list[str] = []
    allowed: list[str] = []
    candidates: list[str] = []
    for name, pods in by_node.items():
        found = _updated_and_old(state, pods)
        if found is None:
            n_surging += 1
            continue
        new, old = found
        counted = old or new
        n_available += counted is not None and counted.ready
        if old is None:
            continue
        if new is None:
            if not nodes[name].runs:
                (leaving if old.ready else deleted).append(old.name)
            else:
                (candidates if old.ready else allowed).append(name)
        elif new.ready:
            deleted.append(old.name)
        else:
            n_surging += 1
    deleted += leaving[: max(0, n_available - n_desired)]
    return DaemonSetActions((*allowed, *candidates[: max(0, max_surge - n_surging)]), tuple(deleted))
