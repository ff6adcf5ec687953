"""
Applies watched objects to the placement index and the scheduling queue: one method for each kind of change.

Objects arrive decoded, and one whose content cannot be used raises InputError before anything is changed. What a change
means for the stage of a pending pod is up to the queue. Of a bound pod only its `Workload` is kept. A pod that this
scheduler has just placed is in the index before the API server reports it: `assume` puts it there and `forget` removes
it again.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan import schedule_pod
from bayplan.enforcing.quota import NO_LIMITS
from bayplan.errors import InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import disruption_budgets, groups, pod_size, pods, storage, targets
from bayplan.mapping.pods import DEFAULT_NAMESPACE, SpreadContext
from bayplan.model import quantities, timestamps
from bayplan.model.groups import GroupDeclaration, GroupSource
from bayplan.model.labels import Selector
from bayplan.model.targets import Target
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.queueing.pending_pod import PendingPod, QueueStage
from bayplan.queueing.scheduling_queue import SchedulingQueue
from bayplan.reading import quota_limits
from bayplan.watching.setting_aside import NodesSetAside, mapped, mapped_running
from bayplan.wire.controllers import PodDisruptionBudget, Service
from bayplan.wire.meta import ApiObject
from bayplan.wire.nodes import Node
from bayplan.wire.observed import ObservedConfigMap
from bayplan.wire.pods import CoschedulingPodGroup, Pod, PodGroup, PodSpec
from bayplan.wire.storage import CsiDriver, PersistentVolume

RESOURCE_CLAIMS_UNSUPPORTED = "pods with spec.resourceClaims (dynamic resource allocation) are left to kube-scheduler"
TOO_MANY_CONSTRAINTS = (
    "the pod has {n} scheduling constraints, more than the {most} that this scheduler accepts (--max-pod-constraints)"
)
MAX_CONSTRAINTS = 1000  # of a pod, by default; real pods have fewer than a hundred
LARGE_CONSTRAINTS = 100  # from which on a pod lets others go first
OUTDATED_GENERATION = -1  # equals no generation of the spread context


class LiveSpreadContext:
    """
    Services and controllers, from which the selector of default spread constraints is derived.

    Pending pods are read with `current`. `generation` rises with every change that may alter the reading of a pod.
    """

    def __init__(self) -> None:
        self.current = SpreadContext(services={}, controllers={}, priorities={})
        self.generation = 0
        self._services: dict[tuple[str, str], dict[str, str]] = {}  # their selectors, by namespace and name

    def put_service(self, service: Service) -> None:
        namespace, name = service.metadata.namespace or DEFAULT_NAMESPACE, service.metadata.name
        if self._services.get((namespace, name)) == (service.spec.selector or None):
            return  # the reports of a Service that say nothing new are the most frequent ones
        self.drop_service(namespace, name)
        if service.spec.selector:
            self._services[namespace, name] = service.spec.selector
            self.current.add_service(service)
            self.generation += 1

    def drop_service(self, namespace: str, name: str) -> None:
        selector = self._services.pop((namespace, name), None)
        if selector is not None:
            self.current.remove_service(namespace, selector)
            self.generation += 1

    def put_controller(self, kind: str, namespace: str, name: str, selector: Selector | None) -> None:
        """Set the selector of a ReplicaSet, StatefulSet or ReplicationController; None removes the controller."""
        key = (kind, namespace, name)
        before = self.current.controllers.pop(key, None)
        if selector is not None:
            self.current.controllers[key] = selector
        self.generation += selector != before

    def put_pod_group(self, declared: GroupDeclaration) -> bool:
        """Set what a PodGroup declares; returns whether that is new."""
        if self.current.pod_groups.get(declared.key) == declared:
            return False
        self.current.pod_groups[declared.key] = declared
        self.generation += 1
        return True

    def drop_pod_group(self, key: str, source: GroupSource) -> None:
        """Remove a PodGroup; one of the same name in another API group stays."""
        declared = self.current.pod_groups.get(key)
        if declared is not None and declared.source is source:
            del self.current.pod_groups[key]
            self.generation += 1


class ClusterState:
    """
    The cluster as this scheduler knows it.

    `is_responsible` says by scheduler name whether this scheduler places a pending pod. `assumed` holds the pods that
    it has placed and whose binding the API server has not confirmed yet. A pending pod with more than `max_constraints`
    is set aside; 0 stands for no limit.
    `on_binding_pod_removed` is called when a pod is removed or bound while its binding is in progress.
    """

    def __init__(
        self,
        index: PlacementIndex,
        queue: SchedulingQueue[PendingPod],
        budgets: DisruptionBudgets,
        *,
        is_responsible: Callable[[str], bool],
        max_constraints: int = MAX_CONSTRAINTS,
        on_binding_pod_removed: Callable[[PendingPod], None] = lambda _pending: None,
    ) -> None:
        self.index = index
        self.queue = queue
        self.spread_context = LiveSpreadContext()
        self.budgets = budgets
        self.quota_limits = NO_LIMITS
        self.assumed: dict[WorkloadKey, str] = {}
        self.volume_versions: dict[str, str] = {}  # resourceVersion by volume name, the precondition of a write
        self.nodes_set_aside = NodesSetAside(index)
        self._is_responsible = is_responsible
        self._max_constraints = max_constraints
        self._on_binding_pod_removed = on_binding_pod_removed

    # Pods

    def put_pod(self, pod: Pod) -> None:
        """Apply a pod that is new or changed."""
        key = _key_of(pod)
        if pod.status.phase in pods.FINISHED:
            self._drop(key)
        elif pod.spec.node_name:
            self._put_bound(key, pod)
        elif self._is_responsible(pod.spec.scheduler_name):
            self._put_pending(key, pod)
        else:
            self._drop(key)
        if key in self.nodes_set_aside.pods:
            self.nodes_set_aside.open_for(key)

    def size_of_large_pod(self, pod: Pod) -> int:
        """How large a pod is that runs and takes long to count; 0 for any other, and for one placed here just now."""
        if not pod.spec.node_name or pod.status.phase in pods.FINISHED or _key_of(pod) in self.assumed:
            return 0
        size = pod_size.n_constraints(pod)
        return size if size > LARGE_CONSTRAINTS else 0

    def is_counted(self, pod: Pod) -> bool:
        """Whether this very pod counts on its node already."""
        record = self.index.records.get(_key_of(pod))
        found = record is not None and record.workload.uid == pod.metadata.uid
        return found and record is not None and record.shares == ((pod.spec.node_name, 1),)

    def set_aside_pod(self, pod: Pod) -> None:
        """
        Apply a pod of which little more can be read than where it runs.

        One that is counted on its node already stays as it was last read. Another that runs closes its node, and one
        that is pending is not scheduled.
        """
        key, node_name = _key_of(pod), pod.spec.node_name
        record = self.index.records.get(key)
        is_counted = record is not None and record.workload.uid == pod.metadata.uid
        if is_counted and node_name and record is not None and record.shares != ((node_name, 1),):
            is_counted = False
        if pod.status.phase in pods.FINISHED or not is_counted:
            self._drop(key)
        elif node_name:
            self._remove_pending(key)
            self.assumed.pop(key, None)
        if node_name and pod.status.phase not in pods.FINISHED and not is_counted:
            self.nodes_set_aside.close_for(key, node_name)
        else:
            self.nodes_set_aside.open_for(key)

    def drop_pod(self, key: WorkloadKey, uid: str) -> None:
        """Remove a deleted pod. A later pod of the same name stays."""
        record, pending = self.index.records.get(key), self.queue.pods.get(key)
        known = record.workload.uid if record is not None else pending.uid if pending is not None else ""
        if not uid or not known or known == uid:
            self._drop(key)
            self.nodes_set_aside.open_for(key)

    def _put_bound(self, key: WorkloadKey, pod: Pod) -> None:
        workload = mapped_running(_bound_workload, pod)
        self._remove_pending(key)
        self.assumed.pop(key, None)
        record = self.index.records.get(key)
        if record is not None and record.shares == ((pod.spec.node_name, 1),):
            if bound_pod_unchanged(record.workload, workload):
                self.index.amend(workload)
            else:
                self.index.replace(workload)
            return
        if record is not None:
            self.index.remove(key)  # another pod of the same name, or bound to another node by another scheduler
        self.index.add(workload, pod.spec.node_name)

    def _put_pending(self, key: WorkloadKey, pod: Pod) -> None:
        workload = mapped(self._read, pod)
        if key in self.assumed:
            record = self.index.records[key]
            if record.workload.uid == pod.metadata.uid:
                self._update_while_binding(key, pod)
                return
            self.forget(key)
        elif key in self.index.records:
            self.index.remove(key)  # deleted and recreated between two reports
        known = self.queue.pods.get(key)
        if known is not None and known.uid != workload.uid:
            self._remove_pending(key)
            known = None
        if known is None:
            is_large = pod_size.n_constraints(pod) > LARGE_CONSTRAINTS
            self.queue.add(PendingPod(pod, workload, self.spread_context.generation, is_large=is_large))
        else:
            known.pod, known.context_generation = pod, self.spread_context.generation
            self.queue.update(known, workload)

    def _update_while_binding(self, key: WorkloadKey, pod: Pod) -> None:
        """Keep the unbound pod as reported. It matters only if the binding fails, and is then read again."""
        pending = self.queue.pods.get(key)
        if pending is not None:
            pending.pod, pending.context_generation = pod, OUTDATED_GENERATION

    def _read(self, pod: Pod) -> Workload:
        n = pod_size.n_constraints(pod)
        if n > self._max_constraints > 0:
            # Its terms are not even mapped: that is what takes so long.
            workload = pods.workload_of(_without_constraints(pod), self.spread_context.current)
            text = TOO_MANY_CONSTRAINTS.format(n=n, most=self._max_constraints)
            return msgspec.structs.replace(workload, unplaceable=text)
        _check_requests(pod)
        workload = pods.workload_of(pod, self.spread_context.current)
        if pod.spec.resource_claims:
            return msgspec.structs.replace(workload, unplaceable=RESOURCE_CLAIMS_UNSUPPORTED)
        return workload

    def refresh(self, pending: PendingPod) -> None:
        """Read a pending pod again if the spread context has changed since."""
        if pending.context_generation != self.spread_context.generation:
            pending.workload = self._read(pending.pod)
            pending.context_generation = self.spread_context.generation

    def _drop(self, key: WorkloadKey) -> None:
        self.assumed.pop(key, None)
        if key in self.index.records:
            self.index.remove(key)
        self._remove_pending(key)

    def _remove_pending(self, key: WorkloadKey) -> None:
        pending = self.queue.delete(key)
        if pending is not None and pending.stage is QueueStage.BINDING:
            self._on_binding_pod_removed(pending)

    # Pods that this scheduler places

    def assume(self, pending: PendingPod, slot: int) -> None:
        """Count a pod on a node before the API server reports it there."""
        self.assumed[pending.key] = schedule_pod.assume(self.index, pending.workload, slot)
        self.queue.assumed(pending)

    def forget(self, key: WorkloadKey) -> None:
        """Remove an assumed pod that the API server did not confirm."""
        if self.assumed.pop(key, None) is not None:
            self.index.remove(key)

    def requeue(self, pending: PendingPod) -> None:
        """Make a pod whose binding failed pending again, as it was last reported."""
        self.forget(pending.key)
        self.refresh(pending)
        self.queue.requeue(pending)

    def is_bound(self, uid: str, key: WorkloadKey, target: str) -> bool:
        """Whether the API server has reported the pod with this uid on this node."""
        record = self.index.records.get(key)
        found = record is not None and record.workload.uid == uid and record.shares == ((target, 1),)
        return found and key not in self.assumed

    # Other objects

    def put_node(self, node: Node) -> None:
        self.nodes_set_aside.put(mapped(_target_of, node))

    def set_aside_node(self, node: ApiObject) -> None:
        """Apply a node that cannot be read: its last readable state stays, and nothing more is placed on it."""
        self.nodes_set_aside.close_unreadable(node.metadata.name)

    def drop_node(self, name: str) -> None:
        self.nodes_set_aside.drop(name)

    def put_volume(self, written: PersistentVolume) -> None:
        name, volume = written.metadata.name, mapped(storage.volume_of, written)
        self.index.set_volume(name, volume)
        self.volume_versions[name] = written.metadata.resource_version

    def drop_volume(self, name: str) -> None:
        self.index.set_volume(name, None)
        self.volume_versions.pop(name, None)

    def put_driver(self, written: CsiDriver) -> None:
        name, spec = written.metadata.name, written.spec
        self.index.set_stored("metering_drivers", name, spec.storage_capacity or None)
        self.index.set_stored("required_drivers", name, spec.prevent_pod_scheduling_if_missing or None)

    def drop_driver(self, name: str) -> None:
        self.index.set_stored("metering_drivers", name, None)
        self.index.set_stored("required_drivers", name, None)

    def put_pod_group(self, written: PodGroup | CoschedulingPodGroup) -> None:
        declared = mapped(groups.declaration_of, written)
        if self.spread_context.put_pod_group(declared) and self.queue.groups is not None:
            self.queue.groups.touch(declared.key)

    def drop_pod_group(self, key: str, source: GroupSource) -> None:
        self.spread_context.drop_pod_group(key, source)
        if self.queue.groups is not None:
            self.queue.groups.touch(key)

    def put_budget(self, written: PodDisruptionBudget) -> None:
        self.budgets.put(mapped(disruption_budgets.budget_of, written))

    def put_quota(self, written: ObservedConfigMap) -> None:
        """Set the quota limits. Limits that cannot be read leave the previous ones in force."""
        self.quota_limits = mapped(quota_limits.limits_of, written.data or {})

    def drop_quota(self) -> None:
        self.quota_limits = NO_LIMITS


def _without_constraints(pod: Pod) -> Pod:
    """The pod with nothing but its identity, priority and gates."""
    spec = PodSpec(
        priority=pod.spec.priority,
        priority_class_name=pod.spec.priority_class_name,
        scheduler_name=pod.spec.scheduler_name,
        scheduling_gates=pod.spec.scheduling_gates,
    )
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=None), spec=spec)


def _key_of(pod: Pod) -> WorkloadKey:
    return WorkloadKey(f"{pod.metadata.namespace or DEFAULT_NAMESPACE}/{pod.metadata.name}")


def _bound_workload(pod: Pod) -> Workload:
    _check_requests(pod)
    workload = pods.workload_of(pod)
    if workload.started:
        timestamps.nanoseconds(workload.started)  # raises for what the index could not compare
    return workload


def _check_requests(pod: Pod) -> None:
    """An API server lets no negative request pass: it would make room."""
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        requests = container.resources.requests if container.resources is not None else None
        for resource, written in (requests or {}).items():
            if quantities.parse(written) < 0:
                raise InputError(f"requests of {resource}: expected 0 or more, got {written}")


def _target_of(node: Node) -> Target:
    target = targets.target_of_node(node)
    for resource, amount in target.allocatable:
        if amount < 0:
            raise InputError(f"status.allocatable[{resource}]: expected 0 or more, got {amount}")
    return target


def bound_pod_unchanged(before: Workload, after: Workload) -> bool:
    """Whether two reports of a bound pod are equal in everything that the index counts."""
    return (
        before.uid == after.uid
        and before.labels == after.labels
        and (before.needs is after.needs or _indexed_needs(before) == _indexed_needs(after))
        and before.terminating == after.terminating
        and before.priority == after.priority
    )


def _indexed_needs(workload: Workload) -> tuple[object, ...]:
    needs = workload.needs
    return needs.requests, needs.affinity, needs.host_ports, needs.claims
