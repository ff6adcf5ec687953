"""
The pods that the controllers of the input would create and that it does not contain, pending and with generated names.

A Deployment creates a ReplicaSet, which creates the pods; ReplicaSets in the input take the Deployment's place.
Does not schedule the pods.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

import msgspec

from bayplan.controllers import autoscalers, custom_kinds, daemon_sets, jobs, pod_templates, stateful_sets
from bayplan.controllers.autoscalers import CURRENT, AssumedLoad, Autoscalers
from bayplan.controllers.created_objects import CreatedObjects, Roots, key_of
from bayplan.controllers.custom_kinds import CustomKind
from bayplan.controllers.desired_state import (
    REVISION_HASH,
    DesiredState,
    ObjectKey,
    PodOwnership,
)
from bayplan.controllers.pod_admission import AdmittedPod, PodAdmission
from bayplan.errors import InputError
from bayplan.model.workloads import WorkloadKey
from bayplan.wire.controllers import AnyController, Controller, ControllerSpec, CronJob, PodTemplateSpec
from bayplan.wire.custom import CustomObject
from bayplan.wire.meta import ApiObject, ObjectMeta
from bayplan.wire.pods import Pod

MAX_CREATED_PODS = 1_000_000  # several times what a Kubernetes cluster supports; only a typing error requests more
PODS_PER_PROGRESS_REPORT = 1000
NOT_IN_STATE = "the state has pods of it, but not what it was before the change"
MANAGED_ELSEWHERE = "they are made by {}, not by Kubernetes' own Job controller"
NUMBER_NOT_KNOWN = "it has a pod template, and how many pods are made from it is not known"


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
                factory.note_if_empty(controller)
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
        active = [member for member in self.ownership.members(controller) if member.active]
        n_missing = pod_templates.n_replicas(controller) - len(active)
        for member in active if n_missing < 0 else ():
            if self.inputs.is_created(ObjectKey("Pod", controller.metadata.namespace, member.name)):
                key = WorkloadKey(f"{controller.metadata.namespace}/{member.name}")
                why = f"{controller.kind} {controller.metadata.name} adopts it, and deletes a pod that is one too many"
                self.created.not_judged[key] = why
        self._check_limit(controller, n_missing)
        self._add_identical(controller, n_missing)

    def deployment(self, deployment: Controller) -> None:
        sets = self.ownership.replica_sets(deployment)
        if sets:
            newest = max(sets, key=lambda s: s.metadata.creation_timestamp or "")
            n_missing = pod_templates.n_replicas(deployment) - sum(pod_templates.n_replicas(s) for s in sets)
            self._check_limit(deployment, n_missing)
            self._add_identical(newest, n_missing)
            return
        found = self.ownership.members_by_set(deployment)
        n_active = sum(member.active for members in found.values() for member in members)
        # A paused Deployment scales its ReplicaSets but does not create the first one.
        if deployment.spec.paused and not n_active:
            self._note_none(deployment, "is paused")
            return
        n_missing = pod_templates.n_replicas(deployment) - n_active
        self._check_limit(deployment, n_missing)
        largest = max(found, key=lambda name: (name != "", len(found[name])))
        replica_set = pod_templates.replica_set_of(deployment, largest)
        self.created.replica_sets.append(replica_set)
        self._add_identical(replica_set, n_missing)

    def stateful_set(self, controller: Controller) -> None:
        meta = controller.metadata
        start, revision = stateful_sets.start_of(controller), pod_templates.revision_name(controller)
        self._check_limit(controller, pod_templates.n_replicas(controller))
        own = {member.name for member in self.ownership.members(controller)}
        for ordinal in range(start, start + pod_templates.n_replicas(controller)):
            name = f"{meta.name}-{ordinal}"
            if name in own:
                continue
            pod, claims = pod_templates.stateful_pod(controller, ordinal, revision)
            if f"{meta.namespace}/{name}" in self.taken:
                self._add(pod, f'pods "{name}" already exists')
                continue
            unknown = [claim for claim in claims if (meta.namespace, claim.metadata.name) not in self.claims]
            self.created.claims.extend(unknown)
            # Without its claims the StatefulSet creates no pod.
            refused = next(filter(None, map(self.admission.admit_claim, unknown)), "")
            self._add(pod, refused)

    def job(self, job: Controller) -> None:
        is_changed = self.inputs.is_changed(job) or self.root in (self.inputs.change or ())
        if manager := jobs.manager_of(job):
            if is_changed:
                self.created.not_judged_objects.append((self.root, MANAGED_ELSEWHERE.format(manager)))
            return
        if job.spec.suspend and is_changed:
            self._note_none(job, "is suspended")
        members = self.ownership.members(job)
        self._check_limit(job, jobs.n_missing(job, members), "spec.parallelism")
        for pod in pod_templates.job_pods(job, members, self.taken):
            self._add(pod)

    def cron_job(self, cron_job: CronJob) -> None:
        """One run, now."""
        meta, template = cron_job.metadata, cron_job.spec.job_template
        if cron_job.spec.suspend:
            self._note_none(cron_job, "is suspended")
            return
        # The controller appends the minute of the run; without a clock it is a number that depends on the name.
        name = f"{meta.name}-{pod_templates.fnv32(f'{meta.namespace}/{meta.name}'.encode()) % 10**8:08}"
        metadata = ObjectMeta(
            name=name,
            namespace=meta.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=[pod_templates.owner_reference(cron_job)],
            creation_timestamp=meta.creation_timestamp,
        )
        self.root = key_of(cron_job)
        self.job(Controller(api_version="batch/v1", kind="Job", metadata=metadata, spec=template.spec))

    def note_if_empty(self, controller: AnyController) -> None:
        """Say of a controller of the change that it asks for no pods, so that its template is not tried."""
        if not self.inputs.is_changed(controller):
            return
        spec = controller.spec
        if isinstance(spec, ControllerSpec) and controller.kind == "Job":
            if not spec.suspend and spec.parallelism == 0:
                self._note_none(controller, "has a parallelism of 0")
        elif isinstance(spec, ControllerSpec) and controller.kind == "DaemonSet":
            tolerating = daemon_sets.with_tolerations(spec.template.spec)
            if self.inputs.nodes and not any(daemon_sets.runs_on(tolerating, node) for node in self.inputs.nodes):
                self._note_none(controller, "runs on no node of the input")
        elif pod_templates.n_replicas(controller) == 0:
            self._note_none(controller, "has 0 replicas")

    def custom_objects(self) -> None:
        """The pods of custom objects that are new; of one that runs already it is not known how it replaces pods."""
        unread = self.created.not_judged_objects
        running = {key_of(one): one for one in self.inputs.custom_objects if one.of_state}
        replaced: dict[ObjectKey, Any] = {**self.inputs.replaced, **running}
        for written in self.inputs.unread_objects:
            if not custom_kinds.has_the_same_spec(written, replaced.get(key_of(written))):
                unread.append((key_of(written), NUMBER_NOT_KNOWN))
        changed = [one for one in self.inputs.autoscalers if self.inputs.is_changed(one)]
        scaled = autoscalers.targets_of(changed) if changed else set()
        for written in self.inputs.custom_objects:
            self.root = key = key_of(written)
            kind = self.inputs.custom_kinds[written.api_version.rpartition("/")[0], written.kind]
            if written.of_state or key in replaced:
                if not written.of_state and not custom_kinds.makes_the_same(kind, written, replaced[key]):
                    unread.append((key, f"how a {written.kind} replaces its pods is not known"))
                elif self.inputs.change is not None and key in scaled and self._is_rescaled(written, kind):
                    unread.append((key, f"how a {written.kind} is scaled is not known"))
            elif self.roots.has_made(key, self.inputs):
                if self.inputs.change is not None:
                    unread.append((key, NOT_IN_STATE))
            else:
                if custom_kinds.is_suspended(kind, written.content):
                    self._note_none(written, "is suspended")
                    continue
                try:
                    self._custom(written, kind)
                except msgspec.ValidationError as error:
                    unread.append((key, f"its pod template cannot be read: {error}"))

    def _is_rescaled(self, written: CustomObject, kind: CustomKind) -> bool:
        """Whether the autoscaler of a custom object wants another number of pods than the object asks for."""
        found = [one.n_pods for one in custom_kinds.templates_of(kind, written.content)]
        return len(found) != 1 or self.autoscalers.replicas(self.root, found[0]) != found[0]

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
        labels = {REVISION_HASH: pod_templates.template_hash(controller.spec.template)}
        names = self._names(controller)
        for node in self.inputs.nodes:
            if node.metadata.name not in served and daemon_sets.runs_on(spec, node):
                bound = daemon_sets.bound_to(spec, node.metadata.name)
                self._add(pod_templates.pod_of(controller, next(names), labels, spec=bound))

    def _add_identical(self, controller: AnyController, n_missing: int, part: str = "") -> None:
        names = self._names(controller, part)
        for _ in range(n_missing):
            self._add(pod_templates.pod_of(controller, next(names), {}))

    def _add(self, pod: Pod, refused: str = "") -> None:
        """Create the pod if the server admits it; `refused` says that it does not get to the server."""
        self.created.made_for[WorkloadKey(f"{pod.metadata.namespace}/{pod.metadata.name}")] = self.root
        self.created.add(AdmittedPod(pod, refused=refused) if refused else self.admission.admit(pod))
        if self.progress is not None and len(self.created.pods) % PODS_PER_PROGRESS_REPORT == 0:
            self.progress(len(self.created.pods))

    def _note_none(self, owner: ApiObject, why: str) -> None:
        name = f"{owner.kind} {owner.metadata.namespace}/{owner.metadata.name}"
        self.created.notes.append(f"{name} {why}: no pods are created for it")

    def _check_limit(self, controller: AnyController, n_missing: int, path: str = "spec.replicas") -> None:
        n_all = len(self.created.pods) + n_missing
        if n_all > MAX_CREATED_PODS:
            message = f"expected at most {MAX_CREATED_PODS:,} pods to be made from controllers in all, got {n_all:,}"
            raise InputError(self.inputs.fault(controller, message, path))

    def _names(self, controller: AnyController, part: str = "") -> Iterator[str]:
        base = f"{controller.metadata.name}-{part.lower()}-" if part else f"{controller.metadata.name}-"
        return pod_templates.unique_names(base, self.taken, controller.metadata.namespace)
