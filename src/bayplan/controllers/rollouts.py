"""
The controllers that a change updates, each with its pods: what it creates and deletes next.

`finding_rollouts` finds them in a state and its change. The caller carries out what `sync` returns, keeps `pods` up to
date as they are placed, become ready and leave, and calls `sync` again until it returns nothing. There is no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bayplan.controllers import (
    daemon_set_updates,
    daemon_sets,
    deletion_order,
    deployments,
    jobs,
    pod_templates,
    stateful_sets,
)
from bayplan.controllers.daemon_set_updates import DaemonSetState, NodeState, PodsByNode
from bayplan.controllers.deployments import DeploymentSize, ReplicaSetSize
from bayplan.controllers.desired_state import REVISION_HASH, ObjectKey, PodEntry, entry_of
from bayplan.controllers.rollout_pods import RolloutPods
from bayplan.controllers.stateful_sets import PodsByOrdinal, StatefulSetState
from bayplan.wire.controllers import AnyController, Controller, PodTemplateSpec
from bayplan.wire.pods import Pod
from bayplan.wire.storage import PersistentVolumeClaim

NOT_READY = "waits for {}, which is not ready"


class RolloutActions(msgspec.Struct, frozen=True):
    """
    What a controller does next: pods to create, each with its entry, and names of pods to delete.

    `replica_sets` are created with the pods, and those of `claims` that do not exist. `acts` is true also if only sizes
    changed.
    """

    created: Sequence[tuple[Pod, PodEntry]] = ()
    deleted: Sequence[str] = ()
    claims: Sequence[PersistentVolumeClaim] = ()
    replica_sets: Sequence[Controller] = ()
    acts: bool = False

    def __bool__(self) -> bool:
        return bool(self.created or self.deleted or self.acts)


class Rollout(msgspec.Struct, kw_only=True, eq=False):
    """
    One changed controller. `pods` are its pods by name, which the caller keeps up to date.

    `now` is the time of the state in nanoseconds, None if unknown. `note` says what keeps the new template from pods;
    if it `is_held_back`, running pods keep the old one.
    """

    key: ObjectKey
    pods: RolloutPods
    taken: set[str]
    now: int | None = None
    note: str = ""
    is_held_back: bool = False
    _generated: dict[str, Iterator[str]] = {}  # names of new pods by what they begin with

    @property
    def template(self) -> PodTemplateSpec:
        """What its new pods are made from."""
        raise NotImplementedError

    @property
    def pod_labels(self) -> dict[str, str]:
        """The labels that its new pods have from their template."""
        return self.template.metadata.labels or {}

    def sync(self) -> RolloutActions:
        """What the controller does next; nothing if it is done or waits."""
        raise NotImplementedError

    def is_complete(self) -> bool:
        """Whether the controller has all that it should have, and it is available."""
        raise NotImplementedError

    def waits_for(self) -> str:
        """Why the controller does nothing more, if no pod of it is pending."""
        name = next((pod.name for pod in self.pods.values() if not (pod.active and pod.ready)), "")
        return NOT_READY.format(name) if name else ""

    def continue_names(self, former: Rollout) -> None:
        """Generate names where the former rollout of this controller stopped, so that none is used again."""
        self._generated = former._generated

    def _names(self, base: str) -> Iterator[str]:
        if base not in self._generated:
            self._generated[base] = pod_templates.unique_names(f"{base}-", self.taken, self.key.namespace)
        return self._generated[base]


class ReplicasRollout(Rollout, kw_only=True, eq=False):
    """A ReplicaSet or ReplicationController: only its size changes, running pods keep their template."""

    controller: AnyController

    @property
    def template(self) -> PodTemplateSpec:
        return self.controller.spec.template

    def sync(self) -> RolloutActions:
        active = [pod for pod in self.pods.values() if pod.active]
        n_surplus = len(active) - pod_templates.n_replicas(self.controller)
        if n_surplus > 0:
            # Without a Deployment no pods are related, so none counts as doubled up.
            return RolloutActions(deleted=_names_of(deletion_order.first_deleted(active, n_surplus, (), self.now)))
        names = self._names(self.controller.metadata.name)
        return RolloutActions([_created(self.controller, next(names)) for _ in range(-n_surplus)])

    def is_complete(self) -> bool:
        active = [pod for pod in self.pods.values() if pod.active]
        return len(active) == pod_templates.n_replicas(self.controller) and all(pod.ready for pod in active)


class OwnedReplicaSet(msgspec.Struct, eq=False):
    """A ReplicaSet of a Deployment, with the size that it has by now."""

    controller: Controller
    size: ReplicaSetSize


class DeploymentRollout(Rollout, kw_only=True, eq=False):
    """
    A Deployment with its ReplicaSets. `present` is the name of the one with the present template, "" before it is
    created; `set_of` names the ReplicaSet of each pod.
    """

    deployment: Controller
    size: DeploymentSize
    sets: dict[str, OwnedReplicaSet]
    set_of: dict[str, str]
    present: str = ""

    @property
    def template(self) -> PodTemplateSpec:
        return self.deployment.spec.template

    def sync(self) -> RolloutActions:
        new_size, old_sizes = deployments.sync(
            self.size,
            self._counted(self.present) if self.present else None,
            [self._counted(name) for name in self.sets if name != self.present],
            old_pods_exist=self.pods.exist_outside(self.present),
        )
        added = []
        if new_size is not None and not self.present:
            replica_set = pod_templates.replica_set_of(self.deployment, "")
            self.present = replica_set.metadata.name
            self.sets[self.present] = OwnedReplicaSet(replica_set, ReplicaSetSize(self.present, 0, "9999"))
            added.append(replica_set)
        sizes = old_sizes if new_size is None else {**old_sizes, self.present: new_size}
        for name, one in self.sets.items():
            one.size = msgspec.structs.replace(
                one.size, replicas=sizes.get(name, one.size.replicas), desired=self.size.replicas, most=self.size.most
            )
        created, deleted = [], []
        for name in self.sets:
            more, fewer = self._sync_set(name)
            created += more
            deleted += fewer
        return RolloutActions(created, deleted, replica_sets=added, acts=bool(sizes))

    def is_complete(self) -> bool:
        active = [pod for pod in self.pods.values() if pod.active]
        if self.size.paused and not self.sets:
            return True  # it does not create the first ReplicaSet
        if len(active) != self.size.replicas or not all(pod.ready for pod in active):
            return False
        return self.size.paused or all(self.set_of[pod.name] == self.present for pod in active)

    def _counted(self, name: str) -> ReplicaSetSize:
        pods = self.pods.of_set(name)
        return msgspec.structs.replace(self.sets[name].size, n_active=len(pods.active), n_available=pods.n_ready)

    def _sync_set(self, name: str) -> tuple[list[tuple[Pod, PodEntry]], list[str]]:
        one = self.sets[name]
        n_surplus = len(self.pods.of_set(name).active) - one.size.replicas
        if n_surplus > 0:
            return [], self.pods.first_deleted(name, n_surplus, self.now)
        names, created = self._names(name), []
        for _ in range(-n_surplus):
            created.append(_created(one.controller, next(names)))
            self.set_of[created[-1][1].name] = name
        return created, []


class StatefulSetRollout(Rollout, kw_only=True, eq=False):
    """A StatefulSet; `former` is what it was before the change, from which pods below the partition are made."""

    controller: Controller
    former: Controller
    state: StatefulSetState
    by_ordinal: PodsByOrdinal

    @property
    def template(self) -> PodTemplateSpec:
        return self.controller.spec.template

    def sync(self) -> RolloutActions:
        actions = stateful_sets.sync(self.by_ordinal)
        created, claims = [], []
        for ordinal in actions.created:
            revision = self.state.revision_of(ordinal)
            template = self.controller if revision == self.state.update_revision else self.former
            pod, needed = pod_templates.stateful_pod(template, ordinal, revision)
            created.append((pod, PodEntry(pod.metadata.name, phase=0, revision=revision)))
            claims += needed
        return RolloutActions(created, actions.deleted, claims)

    def is_complete(self) -> bool:
        state, active = self.state, {pod.name: pod for pod in self.pods.values() if pod.active}
        if len(active) != state.replicas or not all(pod.ready for pod in active.values()):
            return False
        if state.on_delete:
            return True
        updated = range(state.start + state.partition, state.start + state.replicas)
        return all(active[f"{state.name}-{at}"].revision == state.update_revision for at in updated)


class DaemonSetRollout(Rollout, kw_only=True, eq=False):
    """A DaemonSet with the nodes on which it runs, in the order in which they are updated."""

    controller: Controller
    state: DaemonSetState
    nodes: dict[str, NodeState]
    by_node: PodsByNode

    @property
    def template(self) -> PodTemplateSpec:
        return self.controller.spec.template

    def sync(self) -> RolloutActions:
        actions = daemon_set_updates.sync(self.by_node)
        spec = daemon_sets.with_tolerations(self.controller.spec.template.spec)
        names, created = self._names(self.controller.metadata.name), []
        for node in actions.created:
            labels = {REVISION_HASH: self.state.revision}
            pod = pod_templates.pod_of(self.controller, next(names), labels, spec=daemon_sets.bound_to(spec, node))
            created.append((pod, PodEntry(pod.metadata.name, node=node, phase=0, revision=self.state.revision)))
        return RolloutActions(created, actions.deleted)

    def is_complete(self) -> bool:
        active = [pod for pod in self.pods.values() if pod.active]
        if not all(pod.ready for pod in active) or not self._desired() <= {pod.node for pod in active}:
            return False
        return self.state.on_delete or all(self.state.is_updated(pod) for pod in active)

    def _desired(self) -> set[str]:
        return {name for name, node in self.nodes.items() if node.runs}


class JobRollout(Rollout, kw_only=True, eq=False):
    """A Job whose parallelism changed or that was suspended or resumed; nothing else of it can change."""

    controller: Controller

    @property
    def template(self) -> PodTemplateSpec:
        return self.controller.spec.template

    def sync(self) -> RolloutActions:
        members = list(self.pods.values())
        surplus = jobs.surplus(self.controller, members)
        if surplus:
            return RolloutActions(deleted=_names_of(surplus))
        pods = pod_templates.job_pods(self.controller, members, self.taken)
        return RolloutActions([(pod, entry_of(pod, None)) for pod in pods])

    def is_complete(self) -> bool:
        members = list(self.pods.values())
        return (
            not jobs.surplus(self.controller, members)
            and not jobs.n_missing(self.controller, members)
            and all(pod.assigned for pod in members if pod.active)
        )


def _created(controller: AnyController, name: str) -> tuple[Pod, PodEntry]:
    pod = pod_templates.pod_of(controller, name, {})
    return pod, PodEntry(name, phase=0)


def _names_of(pods: Sequence[PodEntry]) -> list[str]:
    return [pod.name for pod in pods]
