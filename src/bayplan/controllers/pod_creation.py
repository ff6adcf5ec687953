"""
The pods that the controllers of the input would create and that it does not contain, pending and with generated names.

A Deployment creates a ReplicaSet, which creates the pods; ReplicaSets in the input take the Deployment's place.
Does not schedule the pods.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.controllers import daemon_sets, jobs
from bayplan.controllers.desired_state import (
    INDEX_KEY,
    REVISION_HASH,
    TEMPLATE_HASH,
    DesiredState,
    ObjectKey,
    PodEntry,
    PodOwnership,
)
from bayplan.errors import InputError
from bayplan.wire import kinds
from bayplan.wire.controllers import AnyController, Controller, ControllerSpec, PodTemplateSpec
from bayplan.wire.meta import LabelSelector, ObjectMeta, OwnerReference
from bayplan.wire.pods import PersistentVolumeClaimVolumeSource, Pod, PodSpec, PodStatus, WireVolume
from bayplan.wire.storage import PersistentVolumeClaim

MAX_CREATED_PODS = 1_000_000  # several times what a Kubernetes cluster supports; only a typing error requests more
PODS_PER_PROGRESS_REPORT = 1000
_API_VERSION = {row.kind: row.api_version for row in kinds.held_in(kinds.CONTROLLERS)}
# apimachinery/pkg/util/rand/rand.go: no vowels and no look-alikes, so that no name forms a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
MAX_BASE_LENGTH = 63 - _SUFFIX_LENGTH  # apiserver/pkg/storage/names/generate.go


class CreatedObjects(msgspec.Struct):
    """What controllers would create: pods, the ReplicaSets of Deployments, the claims of StatefulSets."""

    pods: list[Pod] = msgspec.field(default_factory=list)
    replica_sets: list[Controller] = msgspec.field(default_factory=list)
    claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)


def create_missing_pods(
    inputs: DesiredState,
    *,
    except_for: Container[ObjectKey] = (),
    progress: Callable[[int], None] | None = None,
) -> CreatedObjects:
    """
    Everything that the input's controllers would still create; the input is not changed.

    `except_for` are controllers whose pods are created step by step, with their ReplicaSets. `progress` receives the
    number of pods now and then. Raises InputError instead of creating more pods than any cluster supports.
    """
    factory = _PodFactory(
        inputs,
        progress,
        PodOwnership(inputs.inventory, inputs.controllers["ReplicaSet"]),
        taken=set(inputs.inventory.names),
        claims={(claim.metadata.namespace, claim.metadata.name) for claim in inputs.claims},
    )
    creators: dict[str, Callable[[Any], None]] = {
        "DaemonSet": factory.daemon_set,
        "ReplicaSet": factory.replicas,  # ReplicaSets adopt pods without an owner before Deployments do
        "Deployment": factory.deployment,
        "StatefulSet": factory.stateful_set,
        "Job": factory.job,
        "ReplicationController": factory.replicas,
    }
    for kind, create in creators.items():
        for controller in inputs.controllers[kind]:
            meta = controller.metadata
            if meta.deletion_timestamp is None and ObjectKey(kind, meta.namespace, meta.name) not in except_for:
                create(controller)
    return factory.created


class _PodFactory(msgspec.Struct, eq=False):
    """
    Creates the missing pods of one controller after another in `created`.

    `taken` are the names of pods, as `namespace/name`; `claims` are the namespaces and names of those in the input.
    """

    inputs: DesiredState
    progress: Callable[[int], None] | None
    ownership: PodOwnership
    taken: set[str]
    claims: set[tuple[str, str]]
    created: CreatedObjects = msgspec.field(default_factory=CreatedObjects)

    def replicas(self, controller: AnyController) -> None:
        """Identical pods, as many as are missing."""
        n_missing = n_replicas(controller) - sum(member.active for member in self.ownership.members(controller))
        self._check_limit(controller, n_missing)
        self._add_identical(controller, n_missing)

    def deployment(self, deployment: Controller) -> None:
        sets = self.ownership.replica_sets(deployment)
        if sets:
            newest = max(sets, key=lambda s: s.metadata.creation_timestamp or "")
            n_missing = n_replicas(deployment) - sum(n_replicas(s) for s in sets)
            self._check_limit(deployment, n_missing)
            self._add_identical(newest, n_missing)
            return
        found = self.ownership.members_by_set(deployment)
        n_active = sum(member.active for members in found.values() for member in members)
        # A paused Deployment scales its ReplicaSets but does not create the first one.
        if deployment.spec.paused and not n_active:
            return
        n_missing = n_replicas(deployment) - n_active
        self._check_limit(deployment, n_missing)
        largest = max(found, key=lambda name: (name != "", len(found[name])))
        replica_set = replica_set_of(deployment, largest)
        self.created.replica_sets.append(replica_set)
        self._add_identical(replica_set, n_missing)

    def stateful_set(self, controller: Controller) -> None:
        meta, spec = controller.metadata, controller.spec
        start, revision = (spec.ordinals or {}).get("start", 0), revision_name(controller)
        self._check_limit(controller, n_replicas(controller))
        for ordinal in range(start, start + n_replicas(controller)):
            if f"{meta.namespace}/{meta.name}-{ordinal}" in self.taken:
                continue
            pod, claims = stateful_pod(controller, ordinal, revision)
            unknown = (claim for claim in claims if (meta.namespace, claim.metadata.name) not in self.claims)
            self.created.claims.extend(unknown)
            self._add(pod)

    def job(self, job: Controller) -> None:
        members = self.ownership.members(job)
        self._check_limit(job, jobs.n_missing(job, members), "spec.parallelism")
        for pod in job_pods(job, members, self.taken):
            self._add(pod)

    def daemon_set(self, controller: Controller) -> None:
        spec = daemon_sets.with_tolerations(controller.spec.template.spec)
        served = {member.node for member in self.ownership.members(controller) if member.active}
        labels = {REVISION_HASH: template_hash(controller.spec.template)}
        names = self._names(controller)
        for node in self.inputs.nodes:
            if node.metadata.name not in served and daemon_sets.runs_on(spec, node):
                bound = daemon_sets.bound_to(spec, node.metadata.name)
                self._add(pod_of(controller, next(names), labels, spec=bound))

    def _add_identical(self, controller: AnyController, n_missing: int) -> None:
        names = self._names(controller)
        for _ in range(n_missing):
            self._add(pod_of(controller, next(names), {}))

    def _add(self, pod: Pod) -> None:
        self.created.pods.append(pod)
        if self.progress is not None and len(self.created.pods) % PODS_PER_PROGRESS_REPORT == 0:
            self.progress(len(self.created.pods))

    def _check_limit(self, controller: AnyController, n_missing: int, path: str = "spec.replicas") -> None:
        n_all = len(self.created.pods) + n_missing
        if n_all > MAX_CREATED_PODS:
            message = f"expected at most {MAX_CREATED_PODS:,} pods to be made from controllers in all, got {n_all:,}"
            raise InputError(self.inputs.fault(controller, message, path))

    def _names(self, controller: AnyController) -> Iterator[str]:
        return unique_names(f"{controller.metadata.name}-", self.taken, controller.metadata.namespace)


def n_replicas(controller: AnyController) -> int:
    """How many replicas the controller should have; 1 if it does not say so."""
    return 1 if controller.spec.replicas is None else controller.spec.replicas


def _owner_reference(controller: AnyController) -> OwnerReference:
    """The reference to a pod's controller, whose uid is derived from its name if it has none yet."""
    kind, meta = controller.kind, controller.metadata
    return OwnerReference(
        api_version=_API_VERSION[kind],
        kind=kind,
        name=meta.name,
        uid=meta.uid or str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}/{meta.namespace}/{meta.name}")),
        controller=True,
    )


def pod_of(
    controller: AnyController,
    name: str,
    labels: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """A pending pod from the controller's template; identical pods share their spec."""
    template = controller.spec.template
    metadata = ObjectMeta(
        name=name,
        namespace=controller.metadata.namespace,
        labels={**(template.metadata.labels or {}), **labels},
        annotations={**(template.metadata.annotations or {}), **(annotations or {})} or None,
        owner_references=[_owner_reference(controller)],
        creation_timestamp=controller.metadata.creation_timestamp,
    )
    return Pod(
        api_version="v1", kind="Pod", metadata=metadata, spec=spec or template.spec, status=PodStatus(phase="Pending")
    )


def stateful_pod(controller: Controller, ordinal: int, revision: str) -> tuple[Pod, list[PersistentVolumeClaim]]:
    """The pod of one ordinal, with a volume for each claim template, and the claims that it needs."""
    name, spec = f"{controller.metadata.name}-{ordinal}", controller.spec.template.spec
    labels = {
        REVISION_HASH: revision,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    templates = controller.spec.volume_claim_templates or []
    if not templates:
        return pod_of(controller, name, labels), []
    replaced = {template.metadata.name for template in templates}
    volumes = [volume for volume in spec.volumes or () if volume.name not in replaced]
    claims = []
    for template in templates:
        claim = f"{template.metadata.name}-{name}"
        source = PersistentVolumeClaimVolumeSource(claim_name=claim)
        volumes.append(WireVolume(name=template.metadata.name, persistent_volume_claim=source))
        claims.append(_claim(template, controller, claim))
    return pod_of(controller, name, labels, spec=msgspec.structs.replace(spec, volumes=volumes)), claims


def revision_name(controller: AnyController) -> str:
    """The name of the ControllerRevision of the present template, which a StatefulSet's pods have as a label."""
    return f"{controller.metadata.name}-{template_hash(controller.spec.template)}"


def job_pods(job: Controller, members: Sequence[PodEntry], taken: set[str]) -> Iterator[Pod]:
    """The pods of a Job that are missing; their names are added to `taken`."""
    uid, namespace = _owner_reference(job).uid, job.metadata.namespace
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": job.metadata.name,
        "controller-uid": uid,
        "job-name": job.metadata.name,
    }
    if not jobs.is_indexed(job):
        names = unique_names(f"{job.metadata.name}-", taken, namespace)
        for _ in range(jobs.n_missing(job, members)):
            yield pod_of(job, next(names), labels)
        return
    for index in jobs.missing_indexes(job, members):
        mark = {INDEX_KEY: str(index)}
        middle = f"-{index}-"
        base = job.metadata.name[: MAX_BASE_LENGTH - len(middle)] + middle
        yield pod_of(job, next(unique_names(base, taken, namespace)), {**labels, **mark}, annotations=mark)


def replica_set_of(deployment: Controller, name: str) -> Controller:
    """The Deployment's ReplicaSet: the one called `name` if only its pods are in the input, else a new one."""
    spec, meta = deployment.spec, deployment.metadata
    hashed = name.rpartition("-")[2] or template_hash(spec.template)
    labels = {**(spec.template.metadata.labels or {}), TEMPLATE_HASH: hashed}
    written = spec.selector or LabelSelector(match_labels=spec.template.metadata.labels)
    selector = LabelSelector(
        match_labels={**(written.match_labels or {}), TEMPLATE_HASH: hashed},
        match_expressions=written.match_expressions,
    )
    template_meta = msgspec.structs.replace(spec.template.metadata, labels=labels)
    return Controller(
        api_version="apps/v1",
        kind="ReplicaSet",
        metadata=ObjectMeta(
            name=name or f"{meta.name}-{hashed}",
            namespace=meta.namespace,
            labels=labels,
            owner_references=[_owner_reference(deployment)],
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=ControllerSpec(
            replicas=n_replicas(deployment),
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


def unique_names(base: str, taken: set[str], namespace: str) -> Iterator[str]:
    """
    Unused names that begin with `base`, as for `generateName`; each is added to `taken` as `namespace/name`.

    Unlike an API server's, the names depend only on the input.
    """
    base = base[:MAX_BASE_LENGTH]
    for attempt in itertools.count():
        number, suffix = fnv32(f"{namespace}/{base}/{attempt}".encode()), ""
        for _ in range(_SUFFIX_LENGTH):
            number, position = divmod(number, len(_ALPHABET))
            suffix += _ALPHABET[position]
        if f"{namespace}/{base}{suffix}" not in taken:
            taken.add(f"{namespace}/{base}{suffix}")
            yield base + suffix


def template_hash(template: object) -> str:
    """The hash of a pod template in names and labels: equal templates have equal hashes."""
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(fnv32(msgspec.json.encode(template))))


def fnv32(data: bytes) -> int:
    """FNV-1a of 32 bits, the hash that controllers use for templates."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
