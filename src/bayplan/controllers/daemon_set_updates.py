"""
Which daemon pods are created and deleted next (pkg/controller/daemon: manage in daemon_controller.go, update.go).

One call of `sync` is one of the controller, and costs what it does, however many nodes there are. Which nodes run the
pods is said by `daemon_sets`. Makes no pods.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence

import msgspec

from bayplan.controllers.desired_state import PodEntry
from bayplan.controllers.scaled_values import scaled
from bayplan.wire.controllers import Controller

ON_DELETE = "OnDelete"
# What an update does about the old pod of a node: deletes it at once, deletes it as soon as enough pods are available
# elsewhere, creates a new pod beside it at once, or replaces it in its turn.
GOES, LEAVES, RENEWED, CANDIDATE = "goes", "leaves", "renewed", "candidate"


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


class NodeStanding(msgspec.Struct, frozen=True):
    """
    What a DaemonSet's controller finds on one node.

    It `creates` a pod there and deletes those in `deleted` for another reason than an update. In an update, `role` says
    what is to be done about the `old` pod, the node `waits` for one of its pods, or one of them is `available`.
    """

    creates: bool = False
    deleted: tuple[str, ...] = ()
    role: str = ""
    old: str = ""
    waits: bool = False
    available: bool = False


class PodsByNode:
    """
    The pods of a DaemonSet by node, and the few nodes on which it depends what its controller does.

    `nodes` are all nodes by name, in the order in which they are updated. `managed` nodes and those of each of the
    `roles` are given by their positions in it. `strays` are pending pods for nodes that are gone.
    """

    def __init__(self, state: DaemonSetState, nodes: Mapping[str, NodeState]) -> None:
        self.state, self.names, self.strays = state, list(nodes), set[str]()
        self.n_desired = sum(node.runs for node in nodes.values())
        self._set_limits()
        self.n_waiting = self.n_available = 0
        self.managed: set[int] = set()
        self.roles: dict[str, set[int]] = {GOES: set(), LEAVES: set(), RENEWED: set(), CANDIDATE: set()}
        self._nodes = nodes
        self._positions = {name: position for position, name in enumerate(nodes)}
        self._standings: dict[str, NodeStanding] = {}
        self._pods: dict[str, dict[str, PodEntry]] = {}
        for name in nodes:
            self._judge(name)

    def _set_limits(self) -> None:
        self.max_surge = scaled(self.state.max_surge, self.n_desired, up=True)
        self.max_unavailable = scaled(self.state.max_unavailable, self.n_desired, up=True)
        if self.n_desired and not self.max_unavailable and not self.max_surge:
            self.max_unavailable = 1

    def put(self, pod: PodEntry) -> None:
        """Take in a pod."""
        if pod.node:
            self._pods.setdefault(pod.node, {})[pod.name] = pod
            self._judge(pod.node)

    def node_changed(self, name: str) -> None:
        """One of the nodes is another by now; the numbers that depend on how many nodes run a pod change with it."""
        self.n_desired = sum(node.runs for node in self._nodes.values())
        self._set_limits()
        self._judge(name)

    def remove(self, pod: PodEntry) -> None:
        """Forget a pod."""
        if pod.node:
            del self._pods[pod.node][pod.name]
            self.strays.discard(pod.name)
            self._judge(pod.node)

    def nodes_of(self, positions: Collection[int], most: int | None = None) -> list[tuple[str, NodeStanding]]:
        """The nodes at these positions in their order, up to a number."""
        first = sorted(positions) if most is None else heapq.nsmallest(most, positions)
        return [(self.names[position], self._standings[self.names[position]]) for position in first]

    def _judge(self, name: str) -> None:
        """Note how a node stands now."""
        pods = list(self._pods.get(name, {}).values())
        position = self._positions.get(name)
        if position is None:
            self.strays.update(pod.name for pod in pods if not pod.assigned and not pod.terminating)
            return
        if name in self._standings:
            self._count(position, self._standings.pop(name), -1)
        if pods or self._nodes[name].runs:
            self._standings[name] = self._standing(self._nodes[name], pods)
            self._count(position, self._standings[name], 1)

    def _count(self, position: int, one: NodeStanding, sign: int) -> None:
        self.n_waiting += sign * one.waits
        self.n_available += sign * one.available
        belongs = [self.managed] if one.creates or one.deleted else []
        for group in (*belongs, *([self.roles[one.role]] if one.role else [])):
            (group.add if sign > 0 else group.remove)(position)

    def _standing(self, node: NodeState, pods: Sequence[PodEntry]) -> NodeStanding:
        creates, deleted = _managed(self.state, node, pods)
        found = _updated_and_old(self.state, pods)
        if found is None:
            return NodeStanding(creates, deleted, waits=True)
        standing = (_surging if self.max_surge else _replaced)(node, *found)
        return msgspec.structs.replace(standing, creates=creates, deleted=deleted)


def sync(pods: PodsByNode) -> DaemonSetActions:
    """
    What the controller does next.

    A sync that creates or deletes pods for another reason does not also update some.
    """
    managed = pods.nodes_of(pods.managed)
    deleted = [name for _, node in managed for name in node.deleted] + sorted(pods.strays)
    if managed or deleted or pods.state.on_delete:
        return DaemonSetActions(tuple(name for name, node in managed if node.creates), tuple(deleted))
    goes = [node.old for _, node in pods.nodes_of(pods.roles[GOES])]
    if not pods.max_surge:
        n_more = max(0, pods.max_unavailable - pods.n_waiting)
        return DaemonSetActions((), (*goes, *(node.old for _, node in pods.nodes_of(pods.roles[CANDIDATE], n_more))))
    created = pods.nodes_of(pods.roles[RENEWED])
    created += pods.nodes_of(pods.roles[CANDIDATE], max(0, pods.max_surge - pods.n_waiting))
    leaving = pods.nodes_of(pods.roles[LEAVES], max(0, pods.n_available - pods.n_desired))
    return DaemonSetActions(tuple(name for name, _ in created), (*goes, *(node.old for _, node in leaving)))


def _managed(state: DaemonSetState, node: NodeState, pods: Sequence[PodEntry]) -> tuple[bool, tuple[str, ...]]:
    """One pod for each node that runs one; pods that finished or are one too many go."""
    if node.runs and not pods:
        return True, ()
    if not node.keeps:
        return False, tuple(pod.name for pod in pods if not pod.terminating)
    finished = sorted(pod.name for pod in pods if not pod.active and not pod.terminating)
    running = sorted((pod for pod in pods if pod.active), key=lambda pod: (not pod.assigned, pod.created, pod.name))
    if not state.surges:
        return False, (*finished, *(pod.name for pod in running[1:]))
    surplus = _surplus(state, running) if len(running) > 1 else []
    return node.runs and not running, (*finished, *surplus)


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


def _replaced(_: NodeState, new: PodEntry | None, old: PodEntry | None) -> NodeStanding:
    """Old pods that are unavailable are deleted, and as many others as may be unavailable."""
    if (new is None) == (old is None):
        return NodeStanding(waits=True)
    if old is None:
        return NodeStanding(waits=new is not None and not new.ready)
    if not old.ready or not old.active:
        return NodeStanding(role=GOES, old=old.name, waits=True)
    return NodeStanding(role=CANDIDATE, old=old.name)


def _surging(node: NodeState, new: PodEntry | None, old: PodEntry | None) -> NodeStanding:
    """New pods are created beside old ones; an old pod goes once the new one is available."""
    counted = old or new
    available = counted is not None and counted.ready
    if old is None:
        return NodeStanding(available=available)
    if new is not None and not new.ready:
        return NodeStanding(waits=True, available=available)
    if new is not None:
        role = GOES
    elif node.runs:
        role = CANDIDATE if old.ready else RENEWED
    else:
        role = LEAVES if old.ready else GOES
    return NodeStanding(role=role, old=old.name, available=available)
