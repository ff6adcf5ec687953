"""
The workload controllers: each keeps the pods of its objects as `controllers.rollouts` says, which holds all rules.

A controller acts as soon as something of it changes; what is refused is tried again later. Its object in the store
changes, and a rollout is put together for the new one. Does not know nodes but for DaemonSets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from bayplan.controllers import daemon_sets, finding_rollouts, pod_templates
from bayplan.controllers.daemon_set_updates import NodeState
from bayplan.controllers.deployments import REVISION
from bayplan.controllers.desired_state import DesiredState, ObjectKey, PodEntry, entry_of
from bayplan.controllers.rollouts import DaemonSetRollout, DeploymentRollout, Rollout
from bayplan.mapping.pods import controller_of
from bayplan.model.labels import NO_EXECUTE
from bayplan.simulating import controller_status
from bayplan.simulating.cluster_api import ClusterApi, named, pod_key
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.store import NODE, POD, REPLICA_SET, key_of, owner_of
from bayplan.wire.controllers import AnyController, Controller
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

DEPLOYMENT, DAEMON_SET = "Deployment", "DaemonSet"
KINDS = (DAEMON_SET, REPLICA_SET, DEPLOYMENT, "StatefulSet", "Job", "ReplicationController")
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 1.0, 1000.0


class Retries(msgspec.Struct):
    """How often a controller was refused in a row, and the timer of the next attempt."""

    n_refused: int = 0
    timer: asyncio.TimerHandle | None = None


class WorkloadControllers:
    """All controllers of all kinds. `on_scaled` is told of the namespaces in which a scale has changed."""

    def __init__(
        self,
        api: ClusterApi,
        events: EventLog,
        loop: asyncio.AbstractEventLoop,
        on_scaled: Callable[[str], None],
    ) -> None:
        self._api, self._store, self._events, self._loop = api, api.store, events, loop
        self._on_scaled = on_scaled
        self.on_daemons_counted: Callable[[ObjectKey, int], None] = lambda _key, _n: None
        self.rollouts: dict[ObjectKey, Rollout] = {}
        self._former: dict[ObjectKey, AnyController] = {}  # what to compare a new template with
        self._revisions: dict[ObjectKey, dict[str, str]] = {}  # of DaemonSets: names that a server gave them, and ours
        self._rolling: dict[ObjectKey, float] = {}  # rollouts in progress, and since when
        self._taken: set[str] = set()
        self._dirty: dict[ObjectKey, None] = {}
        self._retries: dict[ObjectKey, Retries] = {}
        self._has_begun = False
        self._store.listen(self._changed)

    def in_progress(self) -> list[ObjectKey]:
        """The workloads whose rollout is not complete."""
        return list(self._rolling)

    # Following the store

    def begin(self) -> None:
        """Take over what is in the store; until then nothing of it is looked at."""
        self._has_begun = True
        self._taken.update(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in self._store.pods())
        for kind in KINDS:
            for controller in self._store.of_kind(kind):
                if not self._is_part(controller):
                    has_pods = any(self._owned_pods(key_of(controller)))
                    has_sets = bool(self._store.owned_sets(key_of(controller)))
                    self._build(controller, controller, is_new=not (has_pods or has_sets))

    def _is_part(self, controller: AnyController) -> bool:
        """Whether a Deployment that is there manages the ReplicaSet."""
        owner = owner_of(controller)
        return owner is not None and owner.kind == DEPLOYMENT and self._store.find(owner) is not None

    def _changed(self, key: ObjectKey, before: Any, after: Any) -> None:
        if not self._has_begun:
            return
        if key.kind == POD:
            self._pod_changed(key, before, after)
        elif key.kind == NODE:
            self._node_changed(key.name, before, after)
        elif key.kind in KINDS:
            if after is None:
                self._forget(key)
            elif not self._is_part(after) and (before is None or before.spec != after.spec):
                self._replace(key, before, after)

    def _replace(self, key: ObjectKey, before: AnyController | None, after: AnyController) -> None:
        if before is None:
            self._build(after, after, is_new=True)
            self._rolling[key] = self._loop.time()
            return
        rollout = self.rollouts.get(key)
        awaits_set = isinstance(rollout, DeploymentRollout) and not rollout.present
        is_new = before.spec.template != after.spec.template or awaits_set
        self._build(after, self._former.get(key, before) if awaits_set else before, is_new=is_new)
        if is_new and not awaits_set:
            self._rolling[key] = self._loop.time()
            self._events.record(named(key), "RolloutStarted", "its pod template has changed")
        self._on_scaled(key.namespace)

    def _pod_changed(self, key: ObjectKey, before: Pod | None, after: Pod | None) -> None:
        owner = owner_of(after or before)  # type: ignore[arg-type]
        if after is None:
            self._taken.discard(f"{key.namespace}/{key.name}")
        elif before is None:
            self._taken.add(f"{key.namespace}/{key.name}")
        root = None if owner is None else self._root(owner)
        rollout = None if root is None else self.rollouts.get(root)
        if rollout is None or root is None:
            return
        if after is None:
            if key.name in rollout.pods:
                del rollout.pods[key.name]
            if isinstance(rollout, DeploymentRollout):
                rollout.set_of.pop(key.name, None)
        else:
            entry = self._entry(after, root)
            if rollout.pods.get(key.name) == entry:
                return
            if isinstance(rollout, DeploymentRollout) and owner is not None:
                rollout.set_of[key.name] = owner.name
            rollout.pods[key.name] = entry
        self._mark(root)

    def _node_changed(self, name: str, before: Node | None, after: Node | None) -> None:
        for key, rollout in list(self.rollouts.items()):
            if not isinstance(rollout, DaemonSetRollout):
                continue
            n_before = rollout.by_node.n_desired
            if before is not None and after is not None:
                state = _node_state(rollout.controller, after)
                if rollout.nodes[name] == state:
                    continue
                rollout.nodes[name] = state
                rollout.by_node.node_changed(name)
            if before is None or after is None or not n_before or not rollout.by_node.n_desired:
                self._build(rollout.controller, rollout.controller, is_new=True)
            else:
                self.on_daemons_counted(key, rollout.by_node.n_desired)
            self._mark(key)

    def _root(self, owner: ObjectKey) -> ObjectKey:
        """The controller that a rollout is kept for: the Deployment of a ReplicaSet."""
        found = self._store.find(owner) if owner.kind == REPLICA_SET else None
        above = None if found is None else owner_of(found)
        return owner if above is None else above

    # Putting rollouts together

    def _build(self, controller: AnyController, former: AnyController, *, is_new: bool) -> None:
        key = key_of(controller)
        state = DesiredState(has_state=True)
        state.controllers[key.kind] = [controller]
        state.replaced[key] = self._former[key] = former
        if is_new or key.kind == DAEMON_SET:
            state.rolled_out.add(key)
        if key.kind == DEPLOYMENT:
            state.controllers[REPLICA_SET] = self._store.owned_sets(key)
        if key.kind == DAEMON_SET:
            state.nodes = list(self._store.nodes())
            if key not in self._revisions and not is_new:
                ours = pod_templates.template_hash(controller.spec.template)
                hashes = {entry_of(pod, controller_of(pod.metadata)).revision for pod in self._owned_pods(key)}
                self._revisions[key] = dict.fromkeys(hashes, ours)
        for pod in self._owned_pods(key):
            owner = owner_of(pod)
            assert owner is not None, "they were found by their owner"
            place = state.inventory.owned.setdefault((owner.namespace, owner.kind, owner.name), [])
            place.append(self._entry(pod, key))
        found = finding_rollouts.rollouts_of(state, self._taken)
        known = self.rollouts.pop(key, None)
        if not found:
            self._events.remark(f"{named(key)} is managed by another controller, which is not simulated")
            return
        rollout = found[0]
        if known is not None:
            rollout.continue_names(known)
        self.rollouts[key] = rollout
        if isinstance(rollout, DaemonSetRollout):
            self.on_daemons_counted(key, rollout.by_node.n_desired)
        if is_new and rollout.note:
            self._events.record(named(key), "RolloutHeldBack", rollout.note)
        self._mark(key)

    def _owned_pods(self, key: ObjectKey) -> Iterable[Pod]:
        for owner in (key, *map(key_of, self._store.owned_sets(key))):
            yield from self._store.pods_of(owner)

    def _entry(self, pod: Pod, root: ObjectKey) -> PodEntry:
        """What a controller knows of a pod; one counts as ready once it is available."""
        entry = entry_of(pod, controller_of(pod.metadata))
        aliases = self._revisions.get(root)
        if aliases is not None and entry.revision in aliases:
            entry = msgspec.structs.replace(entry, revision=aliases[entry.revision])
        controller = self._store.find(root) if entry.ready else None
        if isinstance(controller, Controller) and controller.spec.min_ready_seconds:
            left = controller_status.seconds_until_available(entry, controller, self._store.wall)
            if left > 0:
                self._loop.call_later(left, self._check_available, pod_key(root.namespace, pod.metadata.name))
                entry = msgspec.structs.replace(entry, ready=False)
        return entry

    def _check_available(self, key: ObjectKey) -> None:
        pod = self._store.find(key)
        if pod is not None:
            self._pod_changed(key, pod, pod)

    # Acting

    def _mark(self, key: ObjectKey) -> None:
        if not self._dirty:
            self._loop.call_soon(self._act)
        self._dirty[key] = None

    def _act(self) -> None:
        while self._dirty:
            key = next(iter(self._dirty))
            rollout = self.rollouts.get(key)
            if rollout is not None:
                self._sync(key, rollout)
            self._dirty.pop(key, None)

    def _sync(self, key: ObjectKey, rollout: Rollout) -> None:
        rollout.now = int(self._store.wall.now().timestamp()) * 1_000_000_000
        while True:
            actions = rollout.sync()
            if isinstance(rollout, DeploymentRollout):
                self._write_sets(key, rollout)
            if not actions:
                break
            for name in actions.deleted:
                self._api.delete_pod(pod_key(key.namespace, name))
            refused = self._api.create_claims(actions.claims) or self._create(actions.created, rollout)
            if refused:
                self._retry(key, refused)
                return
        self._retries.pop(key, None)
        self._written(key, rollout)

    def _create(self, created: Iterable[tuple[Pod, PodEntry]], rollout: Rollout) -> str:
        """Create the pods, up to one that is refused; why it is."""
        refused = ""
        for pod, entry in created:
            refused = refused or self._api.create_pod(pod)
            if refused:
                self._taken.discard(f"{pod.metadata.namespace}/{entry.name}")
                if isinstance(rollout, DeploymentRollout):
                    rollout.set_of.pop(entry.name, None)
        return refused

    def _retry(self, key: ObjectKey, refused: str) -> None:
        retries = self._retries.setdefault(key, Retries())
        if not retries.n_refused:
            self._events.record(named(key), "FailedCreate", f"Error creating: {refused}")
        wait = min(FIRST_RETRY_SECONDS * 2.0 ** min(retries.n_refused, 20), MAX_RETRY_SECONDS)
        retries.n_refused += 1
        if retries.timer is not None:
            retries.timer.cancel()
        retries.timer = self._loop.call_later(wait, self._mark, key)

    def _written(self, key: ObjectKey, rollout: Rollout) -> None:
        """Write the status that other parts read, and report a rollout that is complete."""
        controller = self._store.find(key)
        changed = controller_status.with_status(controller, rollout)
        if changed is not controller:
            stored = self._store.put(changed)
            if not isinstance(rollout, DeploymentRollout):
                rollout.controller = stored  # type: ignore[attr-defined]
        if key in self._rolling and rollout.is_complete():
            seconds = self._loop.time() - self._rolling.pop(key)
            self._events.record(named(key), "RolloutComplete", f"after {seconds:.0f} s")
            if isinstance(rollout, DeploymentRollout):
                self._clean_up(key, rollout)

    # ReplicaSets of Deployments

    def _write_sets(self, key: ObjectKey, rollout: DeploymentRollout) -> None:
        """Put the ReplicaSets of a Deployment as it has sized them; the present one has the highest revision."""
        deployment = self._store.find(key)
        revisions = {name: controller_status.revision_of(one.controller) for name, one in rollout.sets.items()}
        highest = max(revisions.values(), default=0)
        current = revisions.get(rollout.present, 0)
        revision = current if current == highest and current else highest + 1
        for name, one in rollout.sets.items():
            own = revision if name == rollout.present else revisions[name]
            changed = controller_status.with_size(one.controller, one.size, own)
            if changed is not one.controller or self._store.find(key_of(changed)) is None:
                one.controller = self._store.put(changed)
        annotations = deployment.metadata.annotations or {}
        if rollout.present and annotations.get(REVISION) != str(revision):
            meta = msgspec.structs.replace(deployment.metadata, annotations={**annotations, REVISION: str(revision)})
            rollout.deployment = self._store.put(msgspec.structs.replace(deployment, metadata=meta))

    def _clean_up(self, key: ObjectKey, rollout: DeploymentRollout) -> None:
        """Delete the oldest ReplicaSets without pods, beyond the limit of the history."""
        for name in controller_status.beyond_history(rollout):
            del rollout.sets[name]
            self._store.remove(ObjectKey(REPLICA_SET, key.namespace, name))

    def _forget(self, key: ObjectKey) -> None:
        """A controller is deleted, and its dependents with it."""
        pods = [key_of(pod) for pod in self._owned_pods(key)]
        self.rollouts.pop(key, None)
        for kept in (self._former, self._rolling, self._revisions, self._dirty):
            kept.pop(key, None)
        for replica_set in self._store.owned_sets(key):
            self._store.remove(key_of(replica_set))
        for pod in pods:
            self._api.delete_pod(pod)
        self._on_scaled(key.namespace)


def _node_state(controller: Controller, node: Node) -> NodeState:
    spec = daemon_sets.with_tolerations(controller.spec.template.spec)
    return NodeState(daemon_sets.runs_on(spec, node), daemon_sets.runs_on(spec, node, (NO_EXECUTE,)))
