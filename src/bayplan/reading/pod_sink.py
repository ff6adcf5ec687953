"""Where pods go as they are read: running ones are reduced at once to what a decision needs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from bayplan.controllers import pod_defaults, resource_quotas
from bayplan.controllers.desired_state import ObjectKey
from bayplan.controllers.resource_quotas import ChargedShape
from bayplan.mapping import pod_shapes, pods
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.wire.pods import Pod


class PodSink(msgspec.Struct, eq=False):
    """
    Receives pods as they are read. Running pods are reduced at once, pending pods are kept as written.

    `charged` has what each of the running pods is charged by if there are quotas, in their order. `priority_class_of`
    has the priority classes of running pods that were written by hand, without a priority, by their positions;
    `unplaceable` says of running pods that no API server checked what is wrong with them. `unscheduled` are pods on a
    node that no server has stored.
    """

    running: list[tuple[Workload, str]] = []
    pending: list[Pod] = []
    charged: list[ChargedShape] = []
    priority_class_of: dict[int, str] = {}
    unplaceable: dict[WorkloadKey, str] = {}
    unscheduled: dict[WorkloadKey, Pod] = {}

    def __call__(self, pod: Pod) -> None:
        if pod.status.phase in pods.FINISHED:
            return
        if not pod.spec.node_name:
            self.pending.append(pod)
            return
        shape, spec = pod_shapes.shape_of(pod_defaults.defaulted(pod)), pod.spec
        workload = pods.workload_of(pod, shape=shape)
        if spec.priority is None:
            self.priority_class_of[len(self.running)] = spec.priority_class_name
        self.charged.append(
            resource_quotas.charged_shape(shape, spec.active_deadline_seconds, spec.priority_class_name)
        )
        self.running.append((workload, spec.node_name))
        if workload.unplaceable:
            self.unplaceable[workload.key] = workload.unplaceable
        if not pod.metadata.uid:
            self.unscheduled[workload.key] = pod

    def hold_back(self, is_created: Callable[[ObjectKey], bool]) -> None:
        """Let pods wait that the change creates, although they name their node: it may be gone, or full."""
        created = {
            key: pod
            for key, pod in self.unscheduled.items()
            if is_created(ObjectKey("Pod", pod.metadata.namespace, pod.metadata.name))
        }
        if created:
            kept = [n for n, (workload, _) in enumerate(self.running) if workload.key not in created]
            self.running, self.charged = [self.running[n] for n in kept], [self.charged[n] for n in kept]
            classes = self.priority_class_of
            self.priority_class_of = {after: classes[n] for after, n in enumerate(kept) if n in classes}
            self.pending.extend(created.values())

    def prioritised(self, context: pods.SpreadContext) -> Iterator[tuple[Workload, str]]:
        """The running pods with their nodes, each with the priority that admission gives it."""
        classes = self.priority_class_of if context.priorities else {}
        for position, (written, target) in enumerate(self.running):
            workload = pods.with_declared_group(written, context) if context.pod_groups else written
            if position in classes:
                priority = context.priority_of(classes[position])
                yield msgspec.structs.replace(workload, priority=priority), target
            else:
                yield workload, target
