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

from bayplan.controllers import custom_kinds, daemon_sets, jobs
from bayplan.controllers.autoscalers import CURRENT, AssumedLoad, Autoscalers
from bayplan.controllers.created_objects import CreatedObjects, Roots, key_of
from bayplan.controllers.custom_kinds import CustomKind
from bayplan.controllers.desired_state import (
    INDEX_KEY,
    REVISION_HASH,
    TEMPLATE_HASH,
    DesiredState,
    ObjectKey,
    PodEntry,
    PodOwnership,
)
from bayplan.controllers.pod_admission import AdmittedPod, PodAdmission
from bayplan.errors import InputError
from bayplan.model.workloads import WorkloadKey
from bayplan.wire import kinds
from bayplan.wire.controllers import AnyController, Controller, ControllerSpec, CronJob, PodTemplateSpec
from bayplan.wire.custom import CustomObject
from bayplan.wire.meta import ApiObject, LabelSelector, ObjectMeta, OwnerReference
from bayplan.wire.pods import PersistentVolumeClaimVolumeSource, Pod, PodSpec, PodStatus, WireVolume
from bayplan.wire.storage import PersistentVolumeClaim

MAX_CREATED_PODS = 1_000_000  # several times what a Kubernetes cluster supports; only a typing error requests more
PODS_PER_PROGRESS_REPORT = 1000
NUMBER_NOT_KNOWN = "it has a pod template, and how many pods are made from it is not known"
_API_VERSION = {row.kind: row.api_version for row in kinds.held_in(kinds.CONTROLLERS)}
# apimachinery/pkg/util/rand/rand.go: no vowels and no look-alikes, so that no name forms a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
MAX_BASE_LENGTH = 63 - _SUFFIX_LENGTH  # apiserver/pkg/storage/names/generate.go


def create_missing_pods(
    inputs: DesiredState,
    *,
    admission: PodAdmission | None = None,
    load: AssumedLoad = CURRENT,
    except_for: Container[ObjectKey] = (),
    progress: Callable[[int], None] | None = None,
) -> CreatedObjects:
    """
    Everything that the input's controllers would still create; the input is not changed.

    `admission` has admitted the pods that come first, and admits the created ones in order; `load` is what autoscalers
    of custom objects assume. `except_for` are controllers whose pods are created step by step, with their ReplicaSets.
    `progress` receives the number of pods now and then. Raises InputError if objects of the change own each
    other, and instead of creating more pods than any cluster supports.
    """
    factory = _PodFactory(
        inputs,
        progress,
        PodOwnership(inputs.inventory, inputs.controllers["ReplicaSet"]),
        taken=set(inputs.inventory.names),
        claims={(claim.metadata.namespace, claim.metadata.name) for claim in inputs.claims},
        admission=admission or PodAdmission(inputs),
        roots=Roots(inputs),
        autoscalers=Autoscalers(inputs.autoscalers, load),
    )
    factory.created.notes += factory.roots.check(inputs)
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
            if controller.metadata.deletion_timestamp is None and key_of(controller) not in except_for:
                factory.root = factory.roots.of(controller)
                create(controller)
    for cron_job in inputs.cron_jobs:
        # The runs of one that the cluster has already are in the state.
        if cron_job.metadata.deletion_timestamp is None and inputs.is_changed(cron_job):
            factory.cron_job(cron_job)
    factory.custom_objects()
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
    admission: PodAdmission
    roots: Roots
    autoscalers: Autoscalers
    root: ObjectKey = ObjectKey("", "", "")
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
            name = f"{deployment.metadata.namespace}/{deployment.metadata.name}"
            self.created.notes.append(f"Deployment {name} is paused: no pods are created for it")
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
            unknown = [claim for claim in claims if (meta.namespace, claim.metadata.name) not in self.claims]
            self.created.claims.extend(unknown)
            # Without its claims the StatefulSet creates no pod.
            refused = next(filter(None, map(self.admission.admit_claim, unknown)), "")
            self._add(pod, refused)

    def job(self, job: Controller) -> None:
        members = self.ownership.members(job)
        self._check_limit(job, jobs.n_missing(job, members), "spec.parallelism")
        for pod in job_pods(job, members, self.taken):
            self._add(pod)

    def cron_job(self, cron_job: CronJob) -> None:
        """One run, now."""
        meta, template = cron_job.metadata, cron_job.spec.job_template
        if cron_job.spec.suspend:
            self.created.notes.append(f"CronJob {meta.namespace}/{meta.name} is suspended: no pods are created for it")
            return
        # The controller appends the minute of the run; without a clock it is a number that depends on the name.
        name = f"{meta.name}-{fnv32(f'{meta.namespace}/{meta.name}'.encode()) % 10**8:08}"
        metadata = ObjectMeta(
            name=name,
            namespace=meta.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=[_owner_reference(cron_job)],
            creation_timestamp=meta.creation_timestamp,
        )
        self.root = key_of(cron_job)
        self.job(Controller(api_version="batch/v1", kind="Job", metadata=metadata, spec=template.spec))

    def custom_objects(self) -> None:
        """The pods of custom objects that are new; of one that runs already it is not known how it replaces pods."""
        unread = self.created.not_judged_objects
        running = {key_of(one): one for one in self.inputs.custom_objects if one.of_state}
        replaced: dict[ObjectKey, Any] = {**self.inputs.replaced, **running}
        for written in self.inputs.unread_objects:
            if not custom_kinds.has_the_same_spec(written, replaced.get(key_of(written))):
                unread.append((key_of(written), NUMBER_NOT_KNOWN))
        for written in self.inputs.custom_objects:
            self.root = key = key_of(written)
            if written.of_state or self.roots.has_made(key, self.inputs):
                continue
            kind = self.inputs.custom_kinds[written.api_version.rpartition("/")[0], written.kind]
            if key not in replaced:
                try:
                    self._custom(written, kind)
                except msgspec.ValidationError as error:
                    unread.append((key, f"its pod template cannot be read: {error}"))
            elif not custom_kinds.makes_the_same(kind, written, replaced[key]):
                unread.append((key, f"how a {written.kind} replaces its pods is not known"))

    def _custom(self, written: CustomObject, kind: CustomKind) -> None:
        if kind.like:
            spec = msgspec.convert(written.content.get("spec") or {}, ControllerSpec)
            spec.replicas = self.autoscalers.replicas(self.root, spec.replicas)
            like = Controller(api_version=written.api_version, kind=written.kind, metadata=written.metadata, spec=spec)
            (self.daemon_set if kind.like == "DaemonSet" else self.stateful_set)(like)
            return
        found = list(custom_kinds.templates_of(kind, written.content))
        if not found:
            self.created.not_judged_objects.append((self.root, "it has no pod template where one is expected"))
        for one in found:
            n_pods = self.autoscalers.replicas(self.root, one.n_pods) if len(found) == 1 else one.n_pods
            template = msgspec.convert(one.content, PodTemplateSpec)
            owner = Controller(
                api_version=written.api_version,
                kind=written.kind,
                metadata=written.metadata,
                spec=ControllerSpec(template=template),
            )
            self._check_limit(owner, n_pods or 0, one.path)
            self._add_identical(owner, n_pods or 0, part=one.part)

    def daemon_set(self, controller: Controller) -> None:
        spec = daemon_sets.with_tolerations(controller.spec.template.spec)
        served = {member.node for member in self.ownership.members(controller) if member.active}
        labels = {REVISION_HASH: template_hash(controller.spec.template)}
        names = self._names(controller)
        for node in self.inputs.nodes:
            if node.metadata.name not in served and daemon_sets.runs_on(spec, node):
                bound = daemon_sets.bound_to(spec, node.metadata.name)
                self._add(pod_of(controller, next(names), labels, spec=bound))

    def _add_identical(self, controller: AnyController, n_missing: int, part: str = "") -> None:
        names = self._names(controller, part)
        for _ in range(n_missing):
            self._add(pod_of(controller, next(names), {}))

    def _add(self, pod: Pod, refused: str = "") -> None:
        """Create the pod if the server admits it; `refused` says that it does not get to the server."""
        self.created.made_for[WorkloadKey(f"{pod.metadata.namespace}/{pod.metadata.name}")] = self.root
        self.created.add(AdmittedPod(pod, refused=refused) if refused else self.admission.admit(pod))
        if self.progress is not None and len(self.created.pods) % PODS_PER_PROGRESS_REPORT == 0:
            self.progress(len(self.created.pods))

    def _check_limit(self, controller: AnyController, n_missing: int, path: str = "spec.replicas") -> None:
        n_all = len(self.created.pods) + n_missing
        if n_all > MAX_CREATED_PODS:
            message = f"expected at most {MAX_CREATED_PODS:,} pods to be made from controllers in all, got {n_all:,}"
            raise InputError(self.inputs.fault(controller, message, path))

    def _names(self, controller: AnyController, part: str = "") -> Iterator[str]:
        base = f"{controller.metadata.name}-{part.lower()}-" if part else f"{controller.metadata.name}-"
        return unique_names(base, self.taken, controller.metadata.namespace)


def n_replicas(controller: AnyController) -> int:
    """How many replicas the controller should have; 1 if it does not say so."""
    return 1 if controller.spec.replicas is None else controller.spec.replicas


def _owner_reference(controller: ApiObject) -> OwnerReference:
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
