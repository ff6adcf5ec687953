"""
Pods, mapped to workloads.

Pods of one template share one `Needs`, found by the bytes it is computed from. Requests are summed as kube-scheduler
sums them. Does not know nodes or the index.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.caching import METER, memoised
from bayplan.mapping import disks, pod_requests, pod_shapes, selectors
from bayplan.mapping.service_selectors import ServiceSelectors
from bayplan.model import labels as label_model
from bayplan.model import timestamps
from bayplan.model.groups import (
    COSCHEDULING_LABEL,
    GROUP_ANNOTATIONS,
    MEMBER_OF,
    GroupDeclaration,
    GroupMembership,
    GroupTopology,
)
from bayplan.model.labels import Toleration
from bayplan.model.terms import NO_TERMS, AffinityTerms, PodTerm
from bayplan.model.workloads import (
    Claims,
    ControllerReference,
    HostPort,
    Images,
    Needs,
    SpreadConstraint,
    SpreadRequirements,
    Workload,
)
from bayplan.validating import affinity as affinity_rules
from bayplan.validating.affinity import AFFINITY_ANNOTATION, AnnotatedAffinity
from bayplan.validating.fields import Field
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller, PriorityClass, ReplicationController, Service
from bayplan.wire.meta import ObjectMeta, OwnerReference
from bayplan.wire.pods import (
    Affinity,
    CoschedulingPodGroup,
    Pod,
    PodAffinityTerm,
    PodGroup,
    TopologySpreadConstraint,
    WireVolume,
)

DEFAULT_NAMESPACE = "default"
FINISHED = ("Succeeded", "Failed")  # phases of pods that have terminated and count nowhere
DISRUPTION_TARGET, PREEMPTION = "DisruptionTarget", "PreemptionByScheduler"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (compared, never bound)
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# The controllers whose selector default spread constraints use: pkg/scheduler/framework/plugins/helper/spread.go.
_SPREAD_BY_DEFAULT = frozenset((row.api_version, row.kind) for row in kinds.having(kinds.Trait.SPREADS))
_REPLICATION_CONTROLLER = "ReplicationController"
_MAX_CACHED_ANNOTATION_LENGTH = 4096  # longer ones are rare, and caching them would take memory


class SpreadContext(msgspec.Struct):
    """The selectors of Services and controllers, which default spread constraints use, priority classes, PodGroups."""

    services: dict[str, ServiceSelectors] = {}  # by namespace
    controllers: dict[tuple[str, str, str], label_model.Selector] = {}  # (kind, namespace, name) → its selector
    priorities: dict[str, int] = {}
    default_priority: int = 0
    pod_groups: dict[str, GroupDeclaration] = {}  # by NAMESPACE/NAME

    def add_service(self, service: Service) -> None:
        if service.spec.selector:  # a Service without a selector selects nothing
            namespace = service.metadata.namespace or DEFAULT_NAMESPACE
            self.services.setdefault(namespace, ServiceSelectors()).add(service.spec.selector)

    def remove_service(self, namespace: str, selector: Mapping[str, str]) -> None:
        """Remove a Service with this selector, which is not empty."""
        selectors_there = self.services[namespace]
        selectors_there.remove(selector)
        if not selectors_there:
            del self.services[namespace]

    def add_controller(self, written: Controller | ReplicationController) -> None:
        if isinstance(written, ReplicationController):
            # By default an API server selects the labels of the template.
            matched = written.spec.selector or written.spec.template.metadata.labels or {}
            selector: label_model.Selector | None = label_model.equals(matched)
        else:
            selector = selectors.selector_of(written.spec.selector)
        if selector is not None:
            namespace = written.metadata.namespace or DEFAULT_NAMESPACE
            self.controllers[written.kind, namespace, written.metadata.name] = selector

    def add_priority_class(self, written: PriorityClass) -> None:
        self.priorities[written.metadata.name] = written.value
        if written.global_default:
            self.default_priority = written.value

    def add_pod_group(self, written: PodGroup | CoschedulingPodGroup) -> None:
        from bayplan.mapping import groups  # few clusters have them

        declared = groups.declaration_of(written)
        self.pod_groups[declared.key] = declared

    def priority_of(self, priority_class_name: str) -> int:
        """The priority that admission gives a pod."""
        return self.priorities.get(priority_class_name, self.default_priority)


EMPTY_SPREAD_CONTEXT = SpreadContext()


def workload_of(pod: Pod, spread_context: SpreadContext | None = None, shape: bytes | None = None) -> Workload:
    """The pod as a workload. Its node, if it has one, is not part of it. `shape` is the pod's, if it is known."""
    meta, spec = pod.metadata, pod.spec
    labels = meta.labels or {}
    namespace = meta.namespace or DEFAULT_NAMESPACE
    context = spread_context or EMPTY_SPREAD_CONTEXT
    needs, fault = _needs(pod_shapes.shape_of(pod) if shape is None else shape)
    claims = _claims(meta, spec.volumes) if spec.volumes else None
    if claims is not None:
        needs = msgspec.structs.replace(needs, claims=claims)
    owner = controller_of(meta) if meta.owner_references else None
    controller = None if owner is None else _controller_reference(owner.api_version, owner.kind, owner.name)
    if context.services or context.controllers:
        needs = _with_default_spread(needs, labels, namespace, controller, context)
    membership, member_fault = None, ""
    # Nearly all pods are in no group, and this is called for every pod of a dump.
    has_annotation = meta.annotations and not GROUP_ANNOTATIONS.isdisjoint(meta.annotations)
    if has_annotation or spec.scheduling_group is not None or COSCHEDULING_LABEL in labels:
        from bayplan.mapping import groups

        member = groups.member_of(pod)
        membership, member_fault = member.membership, member.fault
        if membership is not None:
            group = f"{namespace}/{membership.name}"
            topology = _topology_of(membership, group, context)
            needs = groups.needs_of_member(needs, group, topology, member.between_groups, labels)
            labels = {**labels, MEMBER_OF: group}
    return Workload(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid,
        labels=labels,
        needs=needs,
        priority=context.priority_of(spec.priority_class_name) if spec.priority is None else spec.priority,
        created=meta.creation_timestamp or "",
        started=timestamps.checked(pod.status.start_time, "status.startTime") if pod.status.start_time else "",
        terminating=meta.deletion_timestamp is not None,
        preempted=meta.deletion_timestamp is not None and _is_preempted(pod),
        nominated_target=pod.status.nominated_node_name,
        preempts=spec.preemption_policy != "Never",
        gates=tuple([gate.name for gate in spec.scheduling_gates]) if spec.scheduling_gates else (),
        scheduler_name=spec.scheduler_name,
        unplaceable=fault or needs.node_affinity.fault or member_fault,
        controller=controller,
        group=membership,
    )


def _topology_of(membership: GroupMembership, group: str, context: SpreadContext) -> GroupTopology:
    declared = context.pod_groups.get(group)
    return membership.topology if declared is None or declared.source is not membership.source else declared.topology


def with_declared_group(workload: Workload, context: SpreadContext) -> Workload:
    """The pod with the terms of its PodGroup, which was not known when it was mapped."""
    if workload.group is None:
        return workload
    from bayplan.mapping import groups

    group = workload.labels[MEMBER_OF]
    topology = _topology_of(workload.group, group, context)
    if topology is workload.group.topology:
        return workload
    return msgspec.structs.replace(
        workload, needs=groups.needs_of_member(workload.needs, group, topology, "", workload.labels)
    )


def waiting(pod: Pod, spread_context: SpreadContext | None = None) -> Workload:
    """The pod as a workload that has no place yet; a node that it names itself is the only one for it."""
    workload = workload_of(pod, spread_context)
    named = pod.spec.node_name
    return msgspec.structs.replace(workload, requested_target=named) if named else workload


def with_spread_context(workload: Workload, context: SpreadContext) -> Workload:
    """The pod with the default spread constraints that the Services and controllers of the context give a new pod."""
    needs = _with_default_spread(workload.needs, workload.labels, workload.namespace, workload.controller, context)
    return workload if needs is workload.needs else msgspec.structs.replace(workload, needs=needs)


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object, as `metav1.GetControllerOf`."""
    for owner in metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


_controller_reference = memoised(16384)(ControllerReference)  # one for all pods of a controller


def _is_preempted(pod: Pod) -> bool:
    """Whether the terminating pod was chosen as a preemption victim."""
    target = next((each for each in pod.status.conditions or () if each.type == DISRUPTION_TARGET), None)
    return target is not None and (target.status, target.reason) == ("True", PREEMPTION)


def _claims(meta: ObjectMeta, volumes: list[WireVolume]) -> Claims | None:
    names: list[str] = []
    ephemeral: list[str] = []
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            ephemeral.append(f"{meta.name}-{volume.name}")
            names.append(ephemeral[-1])
    found = disks.inline_disks(volumes)
    if not names and not found:  # nearly all pods have volumes, and few have claims
        return None
    owner = (meta.name, meta.uid) if ephemeral else ("", "")
    return Claims(tuple(names), tuple(ephemeral), owner, found)


def _with_default_spread(
    needs: Needs,
    labels: label_model.Labels,
    namespace: str,
    controller: ControllerReference | None,
    context: SpreadContext,
) -> Needs:
    """
    The needs with the selector of default spread constraints, which apply only if the pod has none of its own.

    The selector joins those of the pod's Services and its controller; without either there are no constraints.
    """
    if needs.spread.constraints or not (context.services or context.controllers):
        return needs
    services = context.services.get(namespace)
    merged = {} if services is None else services.merged(labels)
    required = [label_model.Requirement(key, label_model.IN, (value,)) for key, value in merged.items()]
    if controller is not None and (controller.api_version, controller.kind) in _SPREAD_BY_DEFAULT:
        selected = context.controllers.get((controller.kind, namespace, controller.name))
        if selected is not None and controller.kind == _REPLICATION_CONTROLLER:
            # A map of labels, as the selectors of Services are: where both have a key, its value counts.
            own = {requirement.key for requirement in selected.requirements}
            required = [requirement for requirement in required if requirement.key not in own]
        if selected is not None:
            required += selected.requirements
    return _spread_by_default(needs, label_model.selector_of(required)) if required else needs


@memoised(16384)
def _spread_by_default(needs: Needs, selector: label_model.Selector) -> Needs:
    """Cached, so that pods of one template share their needs."""
    return msgspec.structs.replace(needs, spread=SpreadRequirements(default_selector=selector))


@memoised(16384)
def _needs(shape: bytes) -> tuple[Needs, str]:
    """The needs of pods of this shape, without claims and default spread, and what is wrong with their annotation."""
    METER.charge(len(shape))
    found = pod_shapes.decoded(shape)
    pod, labels, annotation = found.pod(), found.labels or {}, found.annotation
    spec = pod.spec
    annotated, fault = (
        (None, "") if annotation is None else annotated_affinity({AFFINITY_ANNOTATION: annotation}, labels)
    )
    containers = [*(spec.init_containers or ()), *(spec.containers or ())]
    sidecars = [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    images = [*(c.image for c in containers), *(v.image.reference for v in spec.volumes or () if v.image is not None)]
    needs = Needs(
        requests=pod_requests.requests_of(pod),
        tolerations=tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in spec.tolerations or ()),
        node_affinity=selectors.node_affinity_of(
            spec.affinity.node_affinity if spec.affinity else None, spec.node_selector
        ),
        host_ports=tuple(
            HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)
            for container in (*(spec.containers or ()), *sidecars)
            for port in container.ports or ()
            if port.host_port > 0
        ),
        # Nodes report images with a tag.
        images=Images(
            tuple(name if name.rfind(":") > name.rfind("/") else f"{name}:latest" for name in images), len(containers)
        ),
        spread=SpreadRequirements(tuple(spread_constraint(c, labels) for c in spec.topology_spread_constraints or ())),
        affinity=affinity_terms(spec.affinity, annotated, labels, is_stored=found.is_stored),
    )
    return needs, fault


def spread_constraint(written: TopologySpreadConstraint, labels: label_model.Labels) -> SpreadConstraint:
    """The constraint of a pod with these labels, which `matchLabelKeys` reads."""
    selector = selectors.selector_of(written.label_selector)
    return SpreadConstraint(
        written.max_skew,
        written.topology_key,
        written.when_unsatisfiable == "DoNotSchedule",
        selectors.with_label_keys(selector, labels, written.match_label_keys),
        1 if written.min_domains is None else written.min_domains,
        written.node_affinity_policy != "Ignore",
        written.node_taints_policy == "Honor",
    )


def affinity_terms(
    written: Affinity | None,
    annotated: AnnotatedAffinity | None,
    labels: label_model.Labels,
    *,
    is_stored: bool = False,
) -> AffinityTerms:
    """
    All terms of the pod: those of its spec, then those of its annotation.

    Those in the spec of a pod that `is_stored` by an API server have the labels that it was created with.
    """
    required: list[PodTerm] = []
    anti_required: list[PodTerm] = []
    preferred: list[PodTerm] = []
    anti_preferred: list[PodTerm] = []
    for source, affinity, own in (
        ("spec.affinity", written, {} if is_stored else labels),
        (f"metadata.annotations[{AFFINITY_ANNOTATION}]", annotated, labels),
    ):
        if affinity is None:
            continue
        for name, side, hard, soft in (
            ("podAffinity", affinity.pod_affinity, required, preferred),
            ("podAntiAffinity", affinity.pod_anti_affinity, anti_required, anti_preferred),
        ):
            if side is None:
                continue
            path = f"{source}.{name}"
            for i, term in enumerate(side.required_during_scheduling_required_during_execution or ()):
                hard.append(_term(term, f"{path}.{EXECUTION}[{i}]", own, during_execution=True))
            for i, term in enumerate(side.required_during_scheduling_ignored_during_execution or ()):
                hard.append(_term(term, f"{path}.{SCHEDULING}[{i}]", own))
            for i, weighted in enumerate(side.preferred_during_scheduling_ignored_during_execution or ()):
                at = f"{path}.{PREFERRED}[{i}].podAffinityTerm"
                soft.append(_term(weighted.pod_affinity_term, at, own, weight=weighted.weight))
    found = AffinityTerms(tuple(required), tuple(anti_required), tuple(preferred), tuple(anti_preferred))
    return found or NO_TERMS


def _term(
    term: PodAffinityTerm, path: str, labels: label_model.Labels, *, weight: int = 0, during_execution: bool = False
) -> PodTerm:
    selector = selectors.selector_of(term.label_selector)
    if selector is not None and (term.match_label_keys or term.mismatch_label_keys):
        # As an API server merges them at creation. It refuses a pod whose own selector has a key of matchLabelKeys too;
        # one of mismatchLabelKeys may stand beside, like `tenant Exists`.
        written = {one.key for one in selector.requirements}
        merged = {
            one.key for one in selector.requirements if one.operator == label_model.NOT_IN and len(one.values) == 1
        }
        same = [key for key in term.match_label_keys or () if key not in written]
        other = [key for key in term.mismatch_label_keys or () if key not in merged]
        selector = selectors.with_label_keys(selector, labels, same, other)
    return PodTerm(
        selector,
        term.topology_key,
        None if term.namespaces is None else tuple(term.namespaces),
        selectors.selector_of(term.namespace_selector),
        tuple(term.tolerate_namespaces or ()),
        weight,
        term.limit or 0,
        during_execution,
        path,
    )


def annotated_affinity(
    annotations: dict[str, str] | None, labels: dict[str, str] | None
) -> tuple[AnnotatedAffinity | None, str]:
    """The terms that the annotation adds, and what is wrong with it; a faulty annotation is not read in part."""
    if not annotations or AFFINITY_ANNOTATION not in annotations:
        return None, ""
    text = annotations[AFFINITY_ANNOTATION]
    # Pods of one template have the same text, and reading YAML takes longer than everything else about a pod.
    read = _remembered_annotation if len(text) <= _MAX_CACHED_ANNOTATION_LENGTH else _read_annotation
    return read(text, tuple(sorted((labels or {}).items())))


def _read_annotation(text: str, labels: tuple[tuple[str, str], ...]) -> tuple[AnnotatedAffinity | None, str]:
    field = Field("metadata", {"annotations": {AFFINITY_ANNOTATION: text}})
    causes = affinity_rules.validate_annotation(field, dict(labels))
    if causes:
        return None, "; ".join(str(cause) for cause in causes)
    return affinity_rules.read_annotation(text), ""


_remembered_annotation = memoised(4096)(_read_annotation)
