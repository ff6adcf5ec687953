"""
The controllers that a change updates, and which of their pods were made from the template that they have now.

ReplicaSets of the state are compared with the Deployment's template in the fields that Bayplan reads; whether any field
of a template differs at all is known from the change (`rolled_out`). Without ReplicaSets in the input, the owner
references of pods name them. StatefulSets and DaemonSets mark their pods with the revision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from bayplan.controllers import (
    daemon_set_updates,
    daemon_sets,
    deletion_order,
    deployments,
    jobs,
    pod_creation,
    pod_templates,
    rollout_pods,
    stateful_sets,
)
from bayplan.controllers.created_objects import key_of
from bayplan.controllers.daemon_set_updates import NodeState, PodsByNode
from bayplan.controllers.deployments import ReplicaSetSize
from bayplan.controllers.desired_state import TEMPLATE_HASH, DesiredState, ObjectKey, PodEntry, PodOwnership
from bayplan.controllers.rollout_pods import PodListener, RolloutPods
from bayplan.controllers.rollouts import (
    DaemonSetRollout,
    DeploymentRollout,
    JobRollout,
    OwnedReplicaSet,
    ReplicasRollout,
    Rollout,
    StatefulSetRollout,
)
from bayplan.controllers.stateful_sets import PodsByOrdinal, StatefulSetState
from bayplan.errors import InputError
from bayplan.mapping.pods import controller_of
from bayplan.model.labels import NO_EXECUTE
from bayplan.wire import kinds
from bayplan.wire.controllers import AnyController, Controller, PodTemplateSpec

GENERATION = "deprecated.daemonset.template.generation"
PAUSED = "paused: its new template is not rolled out"
ROLLED_OUT = ("Deployment", "StatefulSet", "DaemonSet")
ON_DELETE = "OnDelete: running pods keep the old template until they are deleted"
KEPT = "running pods keep the old template until they are deleted"
SUSPENDED = "suspended: it runs no pods"
HELD_BACK = "partition: its new template is not rolled out"
HELD_BACK_BELOW = "partition: pods below {} keep the old template"
_MAKING_PODS = frozenset(row.kind for row in kinds.KINDS.values() if row.pod_path is not None)
_HELD_BACK = frozenset((PAUSED, ON_DELETE, KEPT, HELD_BACK))  # notes of rollouts in which no running pod is replaced
EMPTY = "it asks for no pods: its new template is not tried"
DELETED = "it is being deleted, and the change with it"


def assume_changed(state: DesiredState) -> list[tuple[ObjectKey, str]]:
    """
    Take controllers of the change that the state lacks, while it has their pods, for ones whose template changes.

    What they were before is not known. If the template is new, this is what happens; else nothing does. Returns those
    of which nothing can be assumed, with the reason: the template of a Job cannot change.
    """
    if state.change is None:
        return []
    ownership = PodOwnership(state.inventory, state.controllers["ReplicaSet"])
    unknown = []
    for kind in _BUILDERS:
        for controller in state.controllers[kind]:
            key = key_of(controller)
            if key not in state.change or key in state.replaced or not ownership.has_pods(controller):
                continue
            if kind in ROLLED_OUT:
                state.replaced[key] = controller
                state.rolled_out.add(key)
                state.assumed_changed.append(key)
            elif kind == "Job":
                unknown.append((key, pod_creation.NOT_IN_STATE))
    return unknown


def being_deleted(state: DesiredState) -> list[tuple[ObjectKey, str]]:
    """Objects that make pods and that the change replaces while they are being deleted, each with that reason."""
    custom = {key_of(one) for one in state.custom_objects}
    return [
        (key, DELETED)
        for key, former in state.replaced.items()
        if former.metadata.deletion_timestamp is not None and (key.kind in _MAKING_PODS or key in custom)
    ]


def changed_controllers(state: DesiredState) -> set[ObjectKey]:
    """The controllers whose pods the rollouts create, with the ReplicaSets of changed Deployments."""
    changed = {key for key in state.replaced if key.kind in _BUILDERS} - _managed_elsewhere(state)
    if not changed:
        return changed
    ownership = PodOwnership(state.inventory, state.controllers["ReplicaSet"])
    for deployment in state.controllers["Deployment"]:
        if isinstance(deployment, Controller) and key_of(deployment) in changed:
            changed.update(key_of(replica_set) for replica_set in ownership.replica_sets(deployment))
    return changed


def rollouts_of(state: DesiredState, taken: set[str]) -> list[Rollout]:
    """
    The controllers that existed before the change and are part of it, in the order of their kinds and the input.

    `taken` are names of pods, as `namespace/name`, to which those of new pods are added. Raises InputError instead of
    creating more pods than any cluster supports.
    """
    if not state.replaced:
        return []
    _check_limit(state)
    managed_elsewhere = _managed_elsewhere(state)
    builder = _Builder(state, PodOwnership(state.inventory, state.controllers["ReplicaSet"]), taken)
    found = [
        build(builder, key_of(controller), controller)
        for kind, build in _BUILDERS.items()
        for controller in state.controllers[kind]
        if key_of(controller) in state.replaced
        and controller.metadata.deletion_timestamp is None
        and key_of(controller) not in managed_elsewhere
    ]
    for rollout in found:
        rollout.is_held_back = rollout.note in _HELD_BACK
    return found


def _managed_elsewhere(state: DesiredState) -> set[ObjectKey]:
    """Jobs whose pods another controller makes, in a way that is not known."""
    listed = state.controllers["Job"]
    return {key_of(job) for job in listed if isinstance(job, Controller) and jobs.manager_of(job)}


def _check_limit(state: DesiredState) -> None:
    n_all, most = 0, pod_creation.MAX_CREATED_PODS
    for kind in _BUILDERS:
        for controller in state.controllers[kind]:
            if kind == "DaemonSet" or not _creates_pods(controller, state):
                continue
            n_pods, path = pod_templates.n_replicas(controller), "spec.replicas"
            if kind == "Job" and isinstance(controller, Controller):
                n_pods, path = controller.spec.parallelism or 0, "spec.parallelism"
            n_all += n_pods
            if n_all > most:
                message = f"expected at most {most:,} pods to be made from controllers in all, got {n_all:,}"
                raise InputError(state.fault(controller, message, path))


def _creates_pods(controller: AnyController, state: DesiredState) -> bool:
    """Whether it is changed, or is an old ReplicaSet of a Deployment that is: that one may lack pods of its own."""
    owner = controller_of(controller.metadata)
    key = key_of(controller)
    owned = owner is not None and ObjectKey(owner.kind, key.namespace, owner.name) in state.replaced
    return key in state.replaced or (key.kind == "ReplicaSet" and owned)


class _Builder(msgspec.Struct):
    """Puts each changed controller together with its pods."""

    state: DesiredState
    ownership: PodOwnership
    taken: set[str]

    def replicas(self, key: ObjectKey, controller: AnyController) -> ReplicasRollout:
        pods = self.ownership.members(controller)
        note = KEPT if key in self.state.rolled_out and any(pod.active for pod in pods) else ""
        return ReplicasRollout(**self._common(key, pods), controller=controller, note=note)

    def job(self, key: ObjectKey, controller: Controller) -> JobRollout:
        note = SUSPENDED if controller.spec.suspend else ""
        return JobRollout(**self._common(key, self.ownership.members(controller)), controller=controller, note=note)

    def deployment(self, key: ObjectKey, deployment: Controller) -> DeploymentRollout:
        former, is_new = self.state.replaced[key], key in self.state.rolled_out
        known = self.ownership.replica_sets(deployment)
        members = {s.metadata.name: self.ownership.members(s) for s in known}
        sets = {s.metadata.name: OwnedReplicaSet(s, _size_of(s)) for s in known}
        if known:
            present = _present_set(deployment, former, known, is_new=is_new)
        else:
            members = {name: pods for name, pods in self.ownership.members_by_set(deployment).items() if pods}
            sets, members = _mentioned_sets(former, members)
            present = "" if is_new else max(sets, key=lambda name: sets[name].size.replicas, default="")
        set_of = {pod.name: name for name, pods in members.items() for pod in pods}
        return DeploymentRollout(
            **self._common(key, [pod for pods in members.values() for pod in pods], set_of),
            deployment=deployment,
            size=deployments.size_of(deployment),
            sets=sets,
            set_of=set_of,
            present=present,
            note=PAUSED if deployment.spec.paused and (is_new or not sets) else self._note_if_empty(key, deployment),
        )

    def stateful_set(self, key: ObjectKey, controller: Controller) -> StatefulSetRollout:
        former, is_new = self.state.replaced[key], key in self.state.rolled_out
        pods = self.ownership.members(controller)
        status = former.status
        known = Counter(pod.revision for pod in pods if pod.revision)
        before = status.update_revision or (known.most_common(1)[0][0] if known else f"{key.name}-former")
        update = pod_templates.revision_name(controller) if is_new else before
        if not is_new:  # a pod without a revision was written by hand
            pods = [pod if pod.revision else msgspec.structs.replace(pod, revision=update) for pod in pods]
        state = stateful_sets.state_of(controller, status.current_revision or before, update)
        by_ordinal = PodsByOrdinal(state)
        return StatefulSetRollout(
            **self._common(key, pods, listener=by_ordinal),
            controller=controller,
            former=former,
            state=state,
            by_ordinal=by_ordinal,
            note=_held_back(state) if is_new and state.replicas else self._note_if_empty(key, controller),
        )

    def daemon_set(self, key: ObjectKey, controller: Controller) -> DaemonSetRollout:
        is_new, pods = key in self.state.rolled_out, self.ownership.members(controller)
        revision = pod_templates.template_hash(controller.spec.template)
        generation = "" if is_new else (controller.metadata.annotations or {}).get(GENERATION, "")
        if not is_new:
            # The hash of a pod that is up to date is the one that new pods get.
            current = next((pod.revision for pod in pods if generation and pod.generation == generation), "")
            revision = current or revision
        if not is_new and not generation:
            pods = [msgspec.structs.replace(pod, revision=revision) for pod in pods]
        spec = daemon_sets.with_tolerations(controller.spec.template.spec)
        nodes = {
            node.metadata.name: NodeState(
                daemon_sets.runs_on(spec, node), daemon_sets.runs_on(spec, node, (NO_EXECUTE,))
            )
            for node in sorted(self.state.nodes, key=lambda node: node.metadata.name)
        }
        state = daemon_set_updates.state_of(controller, revision, generation)
        by_node = PodsByNode(state, nodes)
        # Pods of a node that is gone are garbage, which another controller collects.
        present = [pod for pod in pods if not pod.assigned or pod.node in nodes]
        return DaemonSetRollout(
            **self._common(key, present, listener=by_node),
            controller=controller,
            state=state,
            nodes=nodes,
            by_node=by_node,
            note=ON_DELETE if state.on_delete and is_new else EMPTY if is_new and not _n_running(nodes) else "",
        )

    def _note_if_empty(self, key: ObjectKey, controller: AnyController) -> str:
        return EMPTY if key in self.state.rolled_out and not pod_templates.n_replicas(controller) else ""

    def _common(
        self,
        key: ObjectKey,
        pods: Iterable[PodEntry],
        set_of: Mapping[str, str] = rollout_pods.NO_SETS,
        listener: PodListener | None = None,
    ) -> dict[str, Any]:
        by_name = RolloutPods(pods, set_of, listener)
        now = deletion_order.newest_time(by_name.values())
        return {"key": key, "pods": by_name, "taken": self.taken, "now": now}


_BUILDERS: dict[str, Callable[[_Builder, ObjectKey, Any], Rollout]] = {
    "DaemonSet": _Builder.daemon_set,
    "ReplicaSet": _Builder.replicas,
    "Deployment": _Builder.deployment,
    "StatefulSet": _Builder.stateful_set,
    "Job": _Builder.job,
    "ReplicationController": _Builder.replicas,
}


def _held_back(state: StatefulSetState) -> str:
    """What keeps a StatefulSet's new template from some of its pods."""
    if state.on_delete:
        return ON_DELETE
    if state.partition >= state.replicas:
        return HELD_BACK
    return HELD_BACK_BELOW.format(f"{state.name}-{state.start + state.partition}") if state.partition else ""


def _n_running(nodes: Mapping[str, NodeState]) -> int:
    return sum(node.runs for node in nodes.values())


def _size_of(replica_set: Controller) -> ReplicaSetSize:
    meta = replica_set.metadata
    return ReplicaSetSize(
        meta.name,
        pod_templates.n_replicas(replica_set),
        meta.creation_timestamp or "",
        desired=_noted(replica_set, deployments.DESIRED),
        most=_noted(replica_set, deployments.MAX_REPLICAS),
    )


def _noted(replica_set: Controller, annotation: str) -> int | None:
    written = (replica_set.metadata.annotations or {}).get(annotation, "")
    is_number = written.isascii() and written.isdecimal() and len(written) <= len(str(2**31))
    return int(written) if is_number else None


def _present_set(deployment: Controller, former: Controller, known: Iterable[Controller], *, is_new: bool) -> str:
    """
    The ReplicaSet that has the Deployment's template, "" if none has.

    A template that changed is never the one of the revision before. The oldest of several is taken, as upstream.
    """
    ordered = sorted(known, key=lambda s: (s.metadata.creation_timestamp or "", s.metadata.name))
    equal = [s for s in ordered if _equal_ignoring_hash(s.spec.template, deployment.spec.template)]
    revision = (former.metadata.annotations or {}).get(deployments.REVISION)
    current = [s for s in ordered if revision and _revision_of(s) == revision]
    current = current or [s for s in ordered if _equal_ignoring_hash(s.spec.template, former.spec.template)]
    if is_new:
        return next((s.metadata.name for s in equal if s not in current), "")
    return (current or ordered[-1:])[0].metadata.name


def _revision_of(replica_set: Controller) -> str:
    return (replica_set.metadata.annotations or {}).get(deployments.REVISION, "")


def _equal_ignoring_hash(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Whether two templates are equal in all that is read of them, but for the hash (EqualIgnoreHash)."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: PodTemplateSpec) -> PodTemplateSpec:
    meta = template.metadata
    labels = {key: value for key, value in (meta.labels or {}).items() if key != TEMPLATE_HASH}
    return msgspec.structs.replace(
        template, metadata=msgspec.structs.replace(meta, labels=labels, annotations=meta.annotations or None)
    )


def _mentioned_sets(
    former: Controller, members: dict[str, list[PodEntry]]
) -> tuple[dict[str, OwnedReplicaSet], dict[str, list[PodEntry]]]:
    """ReplicaSets that only their pods mention, with the former template; pods without an owner are in one too."""
    size = deployments.size_of(former)
    sets: dict[str, OwnedReplicaSet] = {}
    named: dict[str, list[PodEntry]] = {}
    for name, pods in members.items():
        replica_set = pod_templates.replica_set_of(former, name)
        known = replica_set.metadata.name
        n_active = sum(pod.active for pod in pods)
        created = min((pod.created for pod in pods), default="")
        sets[known] = OwnedReplicaSet(
            replica_set, ReplicaSetSize(known, n_active, created, desired=size.replicas, most=size.most)
        )
        named[known] = pods
    return sets, named
