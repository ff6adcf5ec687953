"""
Pods, ReplicaSets and claims as controllers make them from their templates, with generated names.

Does not know how many of them are made, nor when.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bayplan.controllers import jobs
from bayplan.controllers.desired_state import INDEX_KEY, REVISION_HASH, TEMPLATE_HASH, PodEntry
from bayplan.wire import kinds
from bayplan.wire.controllers import AnyController, Controller, ControllerSpec, PodTemplateSpec
from bayplan.wire.meta import ApiObject, LabelSelector, ObjectMeta, OwnerReference
from bayplan.wire.pods import PersistentVolumeClaimVolumeSource, Pod, PodSpec, PodStatus, WireVolume
from bayplan.wire.storage import PersistentVolumeClaim

_API_VERSION = {row.kind: row.api_version for row in kinds.held_in(kinds.CONTROLLERS)}
# apimachinery/pkg/util/rand/rand.go: no vowels and no look-alikes, so that no name forms a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
MAX_BASE_LENGTH = 63 - _SUFFIX_LENGTH  # apiserver/pkg/storage/names/generate.go


def n_replicas(controller: AnyController) -> int:
    """How many replicas the controller should have; 1 if it does not say so."""
    return 1 if controller.spec.replicas is None else controller.spec.replicas


def owner_reference(controller: ApiObject) -> OwnerReference:
    """The reference to a pod's controller, whose uid is derived from its name if it has none yet."""
    kind, meta = controller.kind, controller.metadata
    return OwnerReference(
        api_version=_API_VERSION[kind] if _is_of_kubernetes(controller) else controller.api_version,
        kind=kind,
        name=meta.name,
        uid=meta.uid or str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}/{meta.namespace}/{meta.name}")),
        controller=True,
    )


def _is_of_kubernetes(controller: ApiObject) -> bool:
    """Whether the kind is one of Kubernetes' own controllers; other groups may reuse their names."""
    group = controller.api_version.rpartition("/")[0]
    known = group in kinds.FORMER_GROUPS or (group, controller.kind) in kinds.KINDS or not controller.api_version
    return known and controller.kind in _API_VERSION


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
        owner_references=[owner_reference(controller)],
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
    uid, namespace = owner_reference(job).uid, job.metadata.namespace
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
            owner_references=[owner_reference(deployment)],
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
