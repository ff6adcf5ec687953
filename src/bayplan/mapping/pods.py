"""Pods as written → workloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

import msgspec

from bayplan.mapping import selectors
from bayplan.model import labels as label_model
from bayplan.model import quantities
from bayplan.model.taints import Toleration
from bayplan.model.terms import NO_TERMS, AffinityTerms, PodTerm
from bayplan.model.workloads import (
    Claims,
    HostPort,
    Images,
    Needs,
    Requests,
    SpreadConstraint,
    SpreadRequirements,
    Workload,
)
from bayplan.validating import affinity_annotation as checking
from bayplan.validating.fields import Field
from bayplan.wire.controllers import Controller, PriorityClass, ReplicationController, Service
from bayplan.wire.meta import OwnerReference, Quantities
from bayplan.wire.pods import (
    Affinity,
    Container,
    ContainerStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    TopologySpreadConstraint,
)

DEFAULT_NAMESPACE = "default"
FINISHED = ("Succeeded", "Failed")
DISRUPTION_TARGET, PREEMPTION = "DisruptionTarget", "PreemptionByScheduler"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (compared, never bound)
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OWN_LABELS = b"atchLabelKeys"  # matchLabelKeys or mismatchLabelKeys: terms that look at the pod's own labels


class SpreadContext(msgspec.Struct):
    """What the selector of default spread constraints is made from, and what priority classes are worth."""

    services: dict[str, list[Service]] = {}
    controllers: dict[tuple[str, str, str], label_model.Selector] = {}  # (kind, namespace, name) → its selector
    priorities: dict[str, int] = {}
    default_priority: int = 0

    def add_service(self, service: Service) -> None:
        if service.spec.selector:  # without one it selects nothing, not everything
            self.services.setdefault(service.metadata.namespace or DEFAULT_NAMESPACE, []).append(service)

    def add_controller(self, written: Controller | ReplicationController) -> None:
        if isinstance(written, ReplicationController):
            selector: label_model.Selector | None = label_model.equals(written.spec.selector or {})
        else:
            selector = selectors.selector_of(written.spec.selector)
        if selector is not None:
            namespace = written.metadata.namespace or DEFAULT_NAMESPACE
            self.controllers[written.kind, namespace, written.metadata.name] = selector

    def add_priority_class(self, written: PriorityClass) -> None:
        self.priorities[written.metadata.name] = written.value
        if written.global_default:
            self.default_priority = written.value


EMPTY_SPREAD_CONTEXT = SpreadContext()
NO_CLAIMS = Claims()


def finished(pod: Pod) -> bool:
    """Whether the pod has ended: then it counts nowhere."""
    return pod.status.phase in FINISHED


def workload_of(pod: Pod, spread_context: SpreadContext | None = None) -> Workload:
    """The pod as a workload. Its node, if it has one, is the caller's business."""
    meta, spec = pod.metadata, pod.spec
    labels = meta.labels or {}
    namespace = meta.namespace or DEFAULT_NAMESPACE
    around = spread_context or EMPTY_SPREAD_CONTEXT
    needs, fault = _needs(_shape(pod))
    claims = _claims(pod)
    if claims.names:
        needs = msgspec.structs.replace(needs, claims=claims)
    if not needs.spread.constraints:
        selector = default_selector(labels, namespace, meta.owner_references, around)
        if selector is not None:
            needs = msgspec.structs.replace(needs, spread=SpreadRequirements(default_selector=selector))
    priority = spec.priority
    if priority is None:
        priority = around.priorities.get(spec.priority_class_name, around.default_priority)
    return Workload(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid,
        labels=labels,
        needs=needs,
        priority=priority,
        created=meta.creation_timestamp or "",
        started=pod.status.start_time or "",
        terminating=meta.deletion_timestamp is not None,
        preempted=_is_preempted(pod),
        nominated_target=pod.status.nominated_node_name,
        preempts=spec.preemption_policy != "Never",
        gates=tuple([gate.name for gate in spec.scheduling_gates or ()]),
        scheduler_name=spec.scheduler_name,
        unplaceable=fault,
    )


def _is_preempted(pod: Pod) -> bool:
    """Whether a scheduler asked the pod to make room and it is on its way out."""
    if pod.metadata.deletion_timestamp is None:
        return False
    target = next((each for each in pod.status.conditions or () if each.type == DISRUPTION_TARGET), None)
    return target is not None and (target.status, target.reason) == ("True", PREEMPTION)


def _shape(pod: Pod) -> bytes:
    """
    Everything that the pod's needs are read from, as bytes: pods of one template have the same.

    Encoding them costs a tenth of reading them again. What tells pods of a template apart is left out, unless their
    rules look at it.
    """
    noted = (pod.metadata.annotations or {}).get(AFFINITY)
    # Nearly every pod has a volume that no other has, the one with its token; only images are of interest here.
    volumes = [volume for volume in pod.spec.volumes or () if volume.image is not None] or None
    spec = msgspec.structs.replace(pod.spec, node_name="", priority=None, scheduling_gates=None, volumes=volumes)
    status = pod.status
    shape = (spec, status.container_statuses, status.init_container_statuses, noted)
    encoded = _encode((*shape, None))
    return _encode((*shape, pod.metadata.labels)) if OWN_LABELS in encoded else encoded


_Statuses = list[ContainerStatus] | None
_encode = msgspec.json.Encoder().encode
_decode_shape = msgspec.json.Decoder(tuple[PodSpec, _Statuses, _Statuses, str | None, dict[str, str] | None]).decode


@lru_cache(maxsize=16384)
def _needs(shape: bytes) -> tuple[Needs, str]:
    """What pods of this shape need but for claims and default spread; and what is wrong with their annotation."""
    spec, statuses, init_statuses, noted, own_labels = _decode_shape(shape)
    pod = Pod(spec=spec, status=PodStatus(container_statuses=statuses, init_container_statuses=init_statuses))
    labels = own_labels or {}
    annotations = None if noted is None else {AFFINITY: noted}
    annotated, fault = annotated_affinity(annotations, labels)
    needs = Needs(
        requests=requests_of(pod),
        tolerations=tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in spec.tolerations or ()),
        node_affinity=selectors.node_affinity_of(
            spec.affinity.node_affinity if spec.affinity else None, spec.node_selector
        ),
        host_ports=_host_ports(pod),
        images=_images(pod),
        spread=SpreadRequirements(tuple(spread_constraint(c, labels) for c in spec.topology_spread_constraints or ())),
        affinity=affinity_terms(spec.affinity, annotated, labels),
    )
    return needs, fault


def affinity_terms(written: Affinity | None, annotated: Annotated | None, labels: label_model.Labels) -> AffinityTerms:
    """All terms of the pod: those of its spec, then those of its annotation."""
    sources = [("spec.affinity", written), (f"metadata.annotations[{AFFINITY}]", annotated)]
    found: dict[str, list[PodTerm]] = {"required": [], "anti_required": [], "preferred": [], "anti_preferred": []}
    for path, affinity in sources:
        if affinity is None:
            continue
        for sign, side, name in (
            ("", affinity.pod_affinity, "podAffinity"),
            ("anti_", affinity.pod_anti_affinity, "podAntiAffinity"),
        ):
            if side is not None:
                found[f"{sign}required"] += _required(side, f"{path}.{name}", labels)
                found[f"{sign}preferred"] += _preferred(side, f"{path}.{name}", labels)
    if not any(found.values()):
        return NO_TERMS
    return AffinityTerms(**{role: tuple(terms) for role, terms in found.items()})


def _required(side: PodAffinity, path: str, labels: label_model.Labels) -> list[PodTerm]:
    execution = side.required_during_scheduling_required_during_execution or ()
    scheduling = side.required_during_scheduling_ignored_during_execution or ()
    return [
        *(_term(t, f"{path}.{EXECUTION}[{i}]", labels, during_execution=True) for i, t in enumerate(execution)),
        *(_term(t, f"{path}.{SCHEDULING}[{i}]", labels) for i, t in enumerate(scheduling)),
    ]


def _preferred(side: PodAffinity, path: str, labels: label_model.Labels) -> list[PodTerm]:
    wishes = side.preferred_during_scheduling_ignored_during_execution or ()
    return [
        _term(w.pod_affinity_term, f"{path}.{PREFERRED}[{i}].podAffinityTerm", labels, weight=w.weight)
        for i, w in enumerate(wishes)
    ]


def _term(
    term: PodAffinityTerm, path: str, labels: label_model.Labels, *, weight: int = 0, during_execution: bool = False
) -> PodTerm:
    selector = selectors.selector_of(term.label_selector)
    return PodTerm(
        selectors.with_label_keys(selector, labels, term.match_label_keys, term.mismatch_label_keys),
        term.topology_key,
        None if term.namespaces is None else tuple(term.namespaces),
        selectors.selector_of(term.namespace_selector),
        tuple(term.tolerate_namespaces or ()),
        weight,
        term.limit or 0,
        during_execution,
        path,
    )


def spread_constraint(written: TopologySpreadConstraint, labels: label_model.Labels) -> SpreadConstraint:
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


def default_selector(
    labels: label_model.Labels, namespace: str, owners: list[OwnerReference] | None, around: SpreadContext
) -> label_model.Selector | None:
    """Whom default spread constraints count: the Services that select the pod and its controller; None if nobody."""
    if not around.services and not around.controllers:
        return None
    merged: dict[str, str] = {}
    for service in around.services.get(namespace, ()):
        selector = service.spec.selector or {}
        if all(labels.get(key) == value for key, value in selector.items()):
            merged.update(selector)
    found = label_model.equals(merged)
    owner = next((owner for owner in owners or () if owner.controller), None)
    if owner is not None and _is_spread_by(owner):
        selected = around.controllers.get((owner.kind, namespace, owner.name))
        if selected is not None:
            found = found.and_also(selected.requirements)
    return found if found.requirements else None


def _is_spread_by(owner: OwnerReference) -> bool:
    return (owner.api_version, owner.kind) in (
        ("v1", "ReplicationController"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
    )


def _host_ports(pod: Pod) -> tuple[HostPort, ...]:
    sidecars = [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
    return tuple(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)
        for container in (*(pod.spec.containers or ()), *sidecars)
        for port in container.ports or ()
        if port.host_port > 0
    )


def _images(pod: Pod) -> Images:
    containers: list[Container] = [*(pod.spec.init_containers or ()), *(pod.spec.containers or ())]
    volumes = [v.image.reference for v in pod.spec.volumes or () if v.image is not None]
    names = [*(c.image for c in containers), *volumes]
    return Images(tuple(_tagged(name) for name in names), len(containers))


def _tagged(image: str) -> str:
    """The image's name with a tag, as nodes report it."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _claims(pod: Pod) -> Claims:
    named, ephemeral = [], []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            named.append(volume.persistent_volume_claim.claim_name)
        if volume.ephemeral is not None:
            ephemeral.append(f"{pod.metadata.name}-{volume.name}")
    return Claims((*named, *ephemeral), tuple(ephemeral)) if named or ephemeral else NO_CLAIMS


# RF merged from reading.annotated_rules: Rules that Kubernetes has no field for, read from annotations.

AFFINITY = checking.AFFINITY
Annotated = checking.AnnotatedAffinity
_SHORT = 4096  # characters; longer ones are rare, and remembering them would take room


def annotated_affinity(
    annotations: dict[str, str] | None, labels: dict[str, str] | None
) -> tuple[Annotated | None, str]:
    """The terms that the annotation adds, and what is wrong with it; a faulty one is never read in part."""
    if not annotations or AFFINITY not in annotations:
        return None, ""
    text = annotations[AFFINITY]
    read = _read if len(text) <= _SHORT else _read.__wrapped__
    return read(text, tuple(sorted((labels or {}).items())))


@lru_cache(maxsize=4096)
def _read(text: str, labels: tuple[tuple[str, str], ...]) -> tuple[Annotated | None, str]:
    """Pods of one template have the same text, and reading YAML takes longer than all else about a pod."""
    causes = checking.causes_of(Field("metadata", {"annotations": {AFFINITY: text}}), dict(labels))
    if causes:
        return None, "; ".join(str(cause) for cause in causes)
    return checking.read(text), ""


# RF merged from mapping.requests: What a pod asks of resources, summed as kube-scheduler sums it.

ResourceAmounts = dict[str, Fraction]
# What a container weighs in scores if it does not say: pkg/scheduler/util/pod_resources.go.
ASSUMED: ResourceAmounts = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 2**20)}
MOST = 2**62  # of a resource: less than 64 bits hold, so that what is missing of it can be computed
POD_LEVEL = ("cpu", "memory")


def requests_of(pod: Pod) -> Requests:
    """The pod's requests for fitting and for scoring."""
    pod_level = _pod_level(pod)
    real = _with_overhead(pod, {**_sum(pod, {}), **pod_level})
    # The allocation score of an incoming pod does not look at pod-level requests: an oversight upstream, and kept.
    scored = _with_overhead(pod, _sum(pod, ASSUMED))
    counted = scored
    if pod_level:  # once it runs, such a pod has defaults only for what it leaves out
        missing = {name: amount for name, amount in ASSUMED.items() if name not in real}
        counted = _with_overhead(pod, {**_sum(pod, missing), **pod_level})
    return _requests(_frozen(real), _frozen(scored), _frozen({r: counted.get(r, Fraction()) for r in ASSUMED}))


@lru_cache(maxsize=65536)
def _requests(real: _Frozen, scored: _Frozen, counted: _Frozen) -> Requests:
    return Requests(*(tuple((r, _whole(r, a)) for r, a in part) for part in (real, scored, counted)))


_Frozen = tuple[tuple[str, Fraction], ...]


def _frozen(amounts: ResourceAmounts) -> _Frozen:
    return tuple(sorted(amounts.items()))


def _whole(resource: str, amount: Fraction) -> int:
    scaled = amount * 1000 if resource == "cpu" else amount
    return min(-(-scaled.numerator // scaled.denominator), MOST)


def _sum(pod: Pod, assumed: ResourceAmounts) -> ResourceAmounts:
    """Containers run together; init containers one by one, with the restartable ones before them still running."""
    status = pod.status
    running = _added(_container(c, status.container_statuses, assumed) for c in pod.spec.containers or ())
    sidecars: ResourceAmounts = {}
    peak: ResourceAmounts = {}
    for container in pod.spec.init_containers or ():
        asked = _container(container, status.init_container_statuses, assumed)
        if container.restart_policy == "Always":
            running = _added((running, asked))
            sidecars = _added((sidecars, asked))
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, _added((sidecars, asked)))
    return _larger(running, peak)


def _container(
    container: Container, statuses: list[ContainerStatus] | None, assumed: ResourceAmounts
) -> ResourceAmounts:
    asked = {**assumed, **_parsed(container.resources.requests if container.resources else None)}
    for status in statuses or ():
        if status.name == container.name:  # resized in place: whatever is larger is what the node must hold
            asked = _larger(asked, _parsed(status.allocated_resources))
            asked = _larger(asked, _parsed(status.resources.requests if status.resources else None))
    return asked


def _pod_level(pod: Pod) -> ResourceAmounts:
    level = _parsed(pod.spec.resources.requests if pod.spec.resources else None)
    return {name: amount for name, amount in level.items() if name in POD_LEVEL or name.startswith("hugepages-")}


def _with_overhead(pod: Pod, amounts: ResourceAmounts) -> ResourceAmounts:
    return _added((amounts, _parsed(pod.spec.overhead))) if pod.spec.overhead else amounts


def _parsed(written: Quantities | None) -> ResourceAmounts:
    return {name: quantities.parse(text) for name, text in written.items()} if written else {}


def _added(parts: Iterable[Mapping[str, Fraction]]) -> ResourceAmounts:
    total: ResourceAmounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _larger(one: ResourceAmounts, other: Mapping[str, Fraction]) -> ResourceAmounts:
    merged = dict(one)
    for name, amount in other.items():
        if name not in merged or amount > merged[name]:
            merged[name] = amount
    return merged
