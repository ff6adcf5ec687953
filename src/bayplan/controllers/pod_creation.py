"""
The pods that controllers in the input would make and that are not in it yet, pending, named as they would be.

A Deployment makes a ReplicaSet and that the pods; where the input has the ReplicaSets, they speak for the Deployment.
Knows nothing of where pods go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from bayplan.controllers import daemon_sets, generated_names, jobs
from bayplan.controllers.desired_state import DesiredState
from bayplan.controllers.pod_ownership import INDEX_KEY, PodEntry, PodOwnership
from bayplan.errors import InputError
from bayplan.wire.controllers import AnyController, Controller, ControllerSpec, PodTemplateSpec
from bayplan.wire.meta import LabelSelector, ObjectMeta, OwnerReference
from bayplan.wire.nodes import Node
from bayplan.wire.pods import ClaimSource, Pod, PodSpec, PodStatus, WireVolume
from bayplan.wire.storage import PersistentVolumeClaim

TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
MOST_MADE = 1_000_000  # several times what a cluster of Kubernetes may hold; a typing error asks for more
TELL_EVERY = 1000
_API_VERSION = {"Job": "batch/v1", "ReplicationController": "v1"}


class CreatedObjects(msgspec.Struct):
    """What controllers would add: pods, the ReplicaSets between Deployments and pods, the claims of StatefulSets."""

    pods: list[Pod] = msgspec.field(default_factory=list)
    replica_sets: list[Controller] = msgspec.field(default_factory=list)
    claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)


def expand(
    inputs: DesiredState, nodes: Sequence[Node] | None = None, *, tell: Callable[[int], None] | None = None
) -> CreatedObjects:
    """
    Everything that the input's controllers would still make; the input stays as it is.

    DaemonSets look at `nodes`, else at those of the input. `tell` hears now and then how many pods there are. Raises
    InputError rather than make more pods than any cluster could hold.
    """
    maker = _PodFactory(inputs, inputs.nodes if nodes is None else nodes, tell)
    for kind, make in (
        ("DaemonSet", maker.daemon_set),
        # A ReplicaSet's own pods are counted before a Deployment may look for pods without an owner.
        ("ReplicaSet", maker.replica_set),
        ("Deployment", maker.deployment),
        ("StatefulSet", maker.stateful_set),
        ("Job", maker.job),
    ):
        for controller in inputs.controllers[kind]:
            if controller.metadata.deletion_timestamp is None:
                assert isinstance(controller, Controller)
                make(controller)
    for controller in inputs.controllers["ReplicationController"]:
        if controller.metadata.deletion_timestamp is None:
            maker.replicas(controller, maker.ownership.members(controller))
    return maker.made


class _PodFactory:
    def __init__(self, inputs: DesiredState, nodes: Sequence[Node], tell: Callable[[int], None] | None) -> None:
        self.made = CreatedObjects()
        self.ownership = PodOwnership(inputs.inventory, inputs.controllers["ReplicaSet"])
        self._inputs, self._nodes, self._tell = inputs, nodes, tell
        self._taken = set(inputs.inventory.names)
        self._claims = {(claim.metadata.namespace, claim.metadata.name) for claim in inputs.claims}

    def replica_set(self, controller: Controller) -> None:
        self.replicas(controller, self.ownership.members(controller))

    def replicas(self, controller: AnyController, members: Sequence[PodEntry]) -> None:
        """Pods that are all alike, as many as are missing."""
        n_missing = _n_replicas(controller) - sum(member.active for member in members)
        self._check_room(controller, n_missing)
        self._alike(controller, n_missing)

    def deployment(self, deployment: Controller) -> None:
        sets = self.ownership.replica_sets(deployment)
        if sets:
            newest = max(sets, key=lambda s: s.metadata.creation_timestamp or "")
            n_missing = _n_replicas(deployment) - sum(_n_replicas(s) for s in sets)
            self._check_room(deployment, n_missing)
            self._alike(newest, n_missing)
            return
        found = self.ownership.members_by_set(deployment)
        n_active = sum(member.active for members in found.values() for member in members)
        # A paused Deployment scales the ReplicaSets that it has but makes no first one.
        if deployment.spec.paused and not n_active:
            return
        n_missing = _n_replicas(deployment) - n_active
        self._check_room(deployment, n_missing)
        largest = max(found, key=lambda name: (name != "", len(found[name])))
        replica_set = _replica_set_of(deployment, largest)
        self.made.replica_sets.append(replica_set)
        self._alike(replica_set, n_missing)

    def stateful_set(self, controller: Controller) -> None:
        meta, spec = controller.metadata, controller.spec
        revision = f"{meta.name}-{generated_names.template_hash(spec.template)}"
        start = (spec.ordinals or {}).get("start", 0)
        self._check_room(controller, _n_replicas(controller))
        for ordinal in range(start, start + _n_replicas(controller)):
            name = f"{meta.name}-{ordinal}"
            if f"{meta.namespace}/{name}" in self._taken:
                continue
            labels = {
                REVISION_HASH: revision,
                "statefulset.kubernetes.io/pod-name": name,
                "apps.kubernetes.io/pod-index": str(ordinal),
            }
            self._add(_pod(controller, name, labels, spec=self._with_claims(controller, name)))

    def job(self, job: Controller) -> None:
        members = self.ownership.members(job)
        n_missing, uid = jobs.n_missing(job, members), _uid(job)
        self._check_room(job, n_missing, "spec.parallelism")
        labels = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": job.metadata.name,
            "controller-uid": uid,
            "job-name": job.metadata.name,
        }
        if not jobs.is_indexed(job):
            self._alike(job, n_missing, labels)
            return
        for index in jobs.missing_indexes(job, members):
            mark = {INDEX_KEY: str(index)}
            middle = f"-{index}-"
            base = job.metadata.name[: generated_names.LONGEST_BASE - len(middle)] + middle
            name = next(generated_names.unique(base, self._taken, job.metadata.namespace))
            self._add(_pod(job, name, {**labels, **mark}, annotations=mark))

    def daemon_set(self, controller: Controller) -> None:
        spec = daemon_sets.with_tolerations(controller.spec.template.spec)
        served = {member.node for member in self.ownership.members(controller) if member.active}
        labels = {REVISION_HASH: generated_names.template_hash(controller.spec.template)}
        names = self._names(controller)
        for node in self._nodes:
            if node.metadata.name not in served and daemon_sets.runs_on(spec, node):
                bound = daemon_sets.bound_to(spec, node.metadata.name)
                self._add(_pod(controller, next(names), labels, spec=bound))

    def _alike(self, controller: AnyController, n_missing: int, labels: Mapping[str, str] | None = None) -> None:
        names = self._names(controller)
        for _ in range(n_missing):
            self._add(_pod(controller, next(names), labels or {}))

    def _add(self, pod: Pod) -> None:
        self.made.pods.append(pod)
        if self._tell is not None and len(self.made.pods) % TELL_EVERY == 0:
            self._tell(len(self.made.pods))

    def _check_room(self, controller: AnyController, n_missing: int, path: str = "spec.replicas") -> None:
        n_all = len(self.made.pods) + n_missing
        if n_all > MOST_MADE:
            message = f"expected at most {MOST_MADE:,} pods to be made from controllers in all, got {n_all:,}"
            raise InputError(self._inputs.fault(controller, message, path))

    def _names(self, controller: AnyController) -> Iterator[str]:
        return generated_names.unique(f"{controller.metadata.name}-", self._taken, controller.metadata.namespace)

    def _with_claims(self, controller: Controller, pod_name: str) -> PodSpec:
        """The template's spec with a volume per claim template; claims that are not in the input are made."""
        spec, templates = controller.spec.template.spec, controller.spec.volume_claim_templates or []
        if not templates:
            return spec
        replaced = {template.metadata.name for template in templates}
        volumes = [volume for volume in spec.volumes or () if volume.name not in replaced]
        for template in templates:
            claim = f"{template.metadata.name}-{pod_name}"
            source = ClaimSource(claim_name=claim)
            volumes.append(WireVolume(name=template.metadata.name, persistent_volume_claim=source))
            if (controller.metadata.namespace, claim) not in self._claims:
                self.made.claims.append(_claim(template, controller, claim))
        return msgspec.structs.replace(spec, volumes=volumes)


def _n_replicas(controller: AnyController) -> int:
    return 1 if controller.spec.replicas is None else controller.spec.replicas


def _uid(controller: AnyController) -> str:
    meta = controller.metadata
    return meta.uid or generated_names.uid(controller.kind, meta.namespace, meta.name)


def _owned_by(controller: AnyController) -> list[OwnerReference]:
    version = _API_VERSION.get(controller.kind, "apps/v1")
    owner = OwnerReference(api_version=version, kind=controller.kind, name=controller.metadata.name, controller=True)
    owner.uid = _uid(controller)
    return [owner]


def _pod(
    controller: AnyController,
    name: str,
    labels: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """A pending pod of the controller's template; equal pods share their spec."""
    template = controller.spec.template
    metadata = ObjectMeta(
        name=name,
        namespace=controller.metadata.namespace,
        labels={**(template.metadata.labels or {}), **labels},
        annotations={**(template.metadata.annotations or {}), **(annotations or {})} or None,
        owner_references=_owned_by(controller),
        creation_timestamp=controller.metadata.creation_timestamp,
    )
    return Pod(
        api_version="v1", kind="Pod", metadata=metadata, spec=spec or template.spec, status=PodStatus(phase="Pending")
    )


def _replica_set_of(deployment: Controller, name: str) -> Controller:
    """The Deployment's ReplicaSet: the one called `name`, of which only pods are known, else a new one."""
    spec, meta = deployment.spec, deployment.metadata
    stamp = name.rpartition("-")[2] or generated_names.template_hash(spec.template)
    labels = {**(spec.template.metadata.labels or {}), TEMPLATE_HASH: stamp}
    written = spec.selector or LabelSelector(match_labels=spec.template.metadata.labels)
    selector = LabelSelector(
        match_labels={**(written.match_labels or {}), TEMPLATE_HASH: stamp}, match_expressions=written.match_expressions
    )
    template_meta = msgspec.structs.replace(spec.template.metadata, labels=labels)
    return Controller(
        api_version="apps/v1",
        kind="ReplicaSet",
        metadata=ObjectMeta(
            name=name or f"{meta.name}-{stamp}",
            namespace=meta.namespace,
            labels=labels,
            owner_references=_owned_by(deployment),
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=ControllerSpec(
            replicas=_n_replicas(deployment),
            selector=selector,
            template=PodTemplateSpec(metadata=template_meta, spec=spec.template.spec),
        ),
    )


def _claim(template: PersistentVolumeClaim, controller: Controller, name: str) -> PersistentVolumeClaim:
    selector = controller.spec.selector
    labels = {**(template.metadata.labels or {}), **((selector.match_labels if selector else None) or {})}
    metadata = ObjectMeta(
        name=name,
        namespace=controller.metadata.namespace,
        labels=labels or None,
        annotations=template.metadata.annotations,
    )
    return PersistentVolumeClaim(api_version="v1", kind="PersistentVolumeClaim", metadata=metadata, spec=template.spec)
