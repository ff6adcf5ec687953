"""
Pods as they are created from a manifest: by their controller, and completed by the API server.

A change of the manifest may not reach the pod: a RuntimeClass adds its node selector again, a LimitRange refuses what
is too little. Knows the objects of the input as they were read, and no files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.controllers import daemon_sets
from bayplan.controllers.created_objects import key_of
from bayplan.controllers.desired_state import ObjectKey
from bayplan.controllers.pod_admission import PodAdmission
from bayplan.mapping import pods
from bayplan.mapping.pods import SpreadContext
from bayplan.model.groups import MEMBER_OF
from bayplan.model.workloads import DAEMON_SET, Needs, Workload, WorkloadKey
from bayplan.wire.controllers import CronJob, PodTemplateSpec
from bayplan.wire.meta import ApiObject, ObjectMeta, OwnerReference
from bayplan.wire.pods import Pod, PodSpec

if TYPE_CHECKING:
    from bayplan.rules.remedies import Revise

Manifest = dict[str, Any]


class PodRemaker:
    """
    Makes pods of revised manifests.

    `made_for` leads from pods that do not exist yet to their controllers; `written` are pods without one, as they are
    written.
    """

    def __init__(
        self,
        admission: PodAdmission,
        context: SpreadContext,
        made_for: Mapping[WorkloadKey, ObjectKey],
        written: Mapping[WorkloadKey, Pod],
    ) -> None:
        self._admission, self._context, self._made_for, self._written = admission, context, made_for, written

    def revised(self, workload: Workload, edited: Workload, revise: Sequence[Revise]) -> Workload | None:
        """
        The workload once what it is created from has been revised; as `edited`, if that is not known.

        None if it is not created then, or is as it was.
        """
        template = self._template(workload)
        before = None if template is None else self._needs(workload, template)
        if template is None or before is None or edited.needs == workload.needs:
            return edited
        content = msgspec.to_builtins(template)
        original, changed = self.completed(workload.namespace, content), deepcopy(content)
        for one in revise:
            one(changed, original)
        after = self._needs(workload, msgspec.convert(changed, PodTemplateSpec))
        if after is None:
            return None
        fields = {name: getattr(after, name) for name in Needs.__struct_fields__}
        differing = {name: value for name, value in fields.items() if value != getattr(before, name)}
        if not differing:
            return None
        return msgspec.structs.replace(edited, needs=msgspec.structs.replace(workload.needs, **differing))

    def completed(self, namespace: str, pod: Manifest) -> Manifest:
        """A pod or a pod template with the overhead and the requests of containers that the API server adds."""
        with contextlib.suppress(msgspec.ValidationError):
            spec = self._admission.completed(namespace, msgspec.convert(pod.get("spec") or {}, PodSpec))
            if spec is not None:
                added = msgspec.to_builtins(spec)
                kept = {name: added[name] for name in ("containers", "initContainers", "overhead") if name in added}
                return {**pod, "spec": {**(pod.get("spec") or {}), **kept}}
        return pod

    def _template(self, workload: Workload) -> PodTemplateSpec | None:
        """What the pod is created from: the template of the outermost controller that is known, or itself."""
        written = self._written.get(workload.key)
        if written is not None:
            return PodTemplateSpec(metadata=written.metadata, spec=written.spec)
        key = self._made_for.get(workload.key)
        if key is None and workload.controller is not None:
            key = ObjectKey(workload.controller.kind, workload.namespace, workload.controller.name)
        found = None
        while key is not None and (owner := self._controllers.get(key)) is not None and owner is not found:
            found = owner
            reference = pods.controller_of(found.metadata)
            key = None if reference is None else ObjectKey(reference.kind, found.metadata.namespace, reference.name)
        if isinstance(found, CronJob):
            return found.spec.job_template.spec.template
        return getattr(getattr(found, "spec", None), "template", None)

    @cached_property
    def _controllers(self) -> dict[ObjectKey, ApiObject]:
        state = self._admission.state
        listed = (*(one for every in state.controllers.values() for one in every), *state.cron_jobs)
        return {key_of(one): one for one in listed}

    def _needs(self, workload: Workload, template: PodTemplateSpec) -> Needs | None:
        """What the pod needs if it is created from this; None if the API server does not create it."""
        spec, owner = template.spec, workload.controller
        if owner is not None and owner.kind == DAEMON_SET:
            # Any name: a template does not say which node the pod is for.
            spec = daemon_sets.bound_to(daemon_sets.with_tolerations(spec), "node")
        admitted = self._admission.completed(workload.namespace, spec)
        if admitted is None:
            return None
        metadata = ObjectMeta(
            name=workload.name,
            namespace=workload.namespace,
            labels={key: value for key, value in workload.labels.items() if key != MEMBER_OF},
            annotations=template.metadata.annotations,
            owner_references=None
            if owner is None
            else [OwnerReference(api_version=owner.api_version, kind=owner.kind, name=owner.name, controller=True)],
        )
        return pods.workload_of(Pod(metadata=metadata, spec=admitted), self._context).needs
