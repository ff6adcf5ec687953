"""
Resource templates: objects of any kind that a fleet propagates, with their replicas and the requests of one replica.

Mirrors Karmada's pkg/resourceinterpreter, with pkg/resourceinterpreter/default/native/replica.go for the kinds of
Kubernetes. Does not know policies, and runs no scripts: the answers of customizations in Lua are passed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from bayplan.controllers import configured_replicas, custom_kinds, interpreted_kinds
from bayplan.controllers.desired_state import DesiredState, TemplateKey
from bayplan.controllers.interpretation import Interpretation, NotInterpretedError
from bayplan.controllers.replica_requirements import requirements_of
from bayplan.mapping import bindings
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller
from bayplan.wire.fleets import BindingComponent, InterpreterRule, ReplicaRequirements
from bayplan.wire.kinds import ApiKind, Trait
from bayplan.wire.meta import ApiObject, ObjectMeta
from bayplan.wire.pods import Pod, PodSpec

ONLY_METADATA = "only its metadata is read"
COMPONENTS_NEED_GATE = "Karmada reads their components only with the feature gate MultiplePodTemplatesScheduling"
WEBHOOK_NOT_ASKED = "the webhook {} is not asked; customKinds in the configuration may replace it"
NOT_INTERPRETED = "Karmada does not read their replicas"
_METADATA_FIELDS = frozenset(("apiVersion", "kind", "metadata", "status"))
_REPLICAS, _COMPONENTS = "InterpretReplica", "InterpretComponent"


class ResourceTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """
    `interpreted`: Karmada knows the replica field of the kind, so that 0 replicas are meant as such.

    `components` are those of a workload that Karmada reads as several, else None. `unread` says why replicas or
    components are not known although Karmada may know them. `whole` says why Karmada propagates a workload as it is,
    without its replicas.
    """

    api_version: str
    kind: str
    metadata: ObjectMeta
    interpreted: bool = False
    replicas: int = 0
    requirements: ReplicaRequirements | None = None
    components: tuple[BindingComponent, ...] | None = None
    unread: str = ""
    whole: str = ""

    @property
    def key(self) -> TemplateKey:
        return self.api_version, self.kind, self.metadata.namespace, self.metadata.name

    @property
    def binding_name(self) -> str:
        return bindings.binding_name(self.metadata.name, self.kind)

    def as_written(self) -> dict[str, Any]:
        """The part of the object that bindings are mapped with."""
        meta = self.metadata
        return {"metadata": {"labels": meta.labels or {}, "annotations": meta.annotations or {}}}


class Answers(msgspec.Struct, frozen=True):
    """
    What the customizations of the input answered by template, or why they did not.

    `with_components`: the feature gate MultiplePodTemplatesScheduling is on.
    """

    by_template: Mapping[TemplateKey, Interpretation | str] = {}
    with_components: bool = False


NO_ANSWERS = Answers()


def templates_of(
    inputs: DesiredState, pods: Iterable[Pod] = (), answers: Answers = NO_ANSWERS
) -> Iterator[ResourceTemplate]:
    """Every object of the input that can be propagated, selected by a policy or not; `pods` are further ones."""
    for row in kinds.propagated():
        for written in inputs.list_of(row):
            if isinstance(written, row.wire_type or ApiObject):  # a list may hold kinds of two API groups
                yield _answered(_template_of(written, row), answers)
    for pod in pods:
        yield _answered(template_of_pod(pod), answers)
    for template in inputs.templates:
        yield _custom_template(template, inputs, answers)


def template_of_controller(controller: Any) -> ResourceTemplate:
    """The template of a controller with a replica field; absent replicas are those an API server defaults to."""
    assert isinstance(controller, Controller)
    spec = controller.spec
    replicas = 1 if spec.replicas is None else spec.replicas
    if controller.kind == "Job":
        replicas = 1 if spec.parallelism is None else spec.parallelism
        replicas = min(replicas, replicas if spec.completions is None else spec.completions)
    return _interpreted_template(controller, replicas, spec.template.spec)


def template_of_pod(pod: Pod) -> ResourceTemplate:
    """The template of a pod, which has one replica."""
    return _interpreted_template(pod, 1, pod.spec)


def _template_of(written: Any, row: ApiKind) -> ResourceTemplate:
    if row.key == kinds.POD:
        return template_of_pod(written)
    return template_of_controller(written) if Trait.INTERPRETED in row.traits else _uninterpreted_template(written)


def _interpreted_template(written: ApiObject, replicas: int, spec: PodSpec) -> ResourceTemplate:
    return ResourceTemplate(
        api_version=written.api_version,
        kind=written.kind,
        metadata=written.metadata,
        interpreted=True,
        replicas=replicas,
        requirements=requirements_of(spec),
    )


def _uninterpreted_template(written: ApiObject) -> ResourceTemplate:
    return ResourceTemplate(api_version=written.api_version, kind=written.kind, metadata=written.metadata)


# Custom kinds


def _custom_template(written: ApiObject, inputs: DesiredState, answers: Answers) -> ResourceTemplate:
    """The template of an object by the first interpreter that knows its kind."""
    template = _uninterpreted_template(written)
    if template.key in answers.by_template:
        return _answered(template, answers)
    content = inputs.template_contents.get(template.key)
    if content is None:  # of a kind of Kubernetes without replicas
        return template
    known = interpreted_kinds.INTERPRETED.get((written.api_version, written.kind))
    group_kind, gate = (written.api_version.rpartition("/")[0], written.kind), answers.with_components
    configured = custom_kinds.configured(group_kind, inputs.custom_kinds)
    webhook = _webhook_of(written, inputs, with_components=gate)
    if not (known or configured or webhook):
        makes_pods = group_kind in inputs.custom_kinds or custom_kinds.has_pod_template(content.get("spec"))
        return msgspec.structs.replace(template, whole=NOT_INTERPRETED if makes_pods else "")
    if is_metadata_only(content):
        return msgspec.structs.replace(template, unread=ONLY_METADATA)
    try:
        if configured is not None:
            return _with(template, configured_replicas.interpret(configured, content, with_components=gate))
        if webhook or known is None:
            return msgspec.structs.replace(template, unread=WEBHOOK_NOT_ASKED.format(webhook))
        found = _with(template, interpreted_kinds.interpret(known, content, with_components=gate))
    except NotInterpretedError as error:
        return msgspec.structs.replace(template, unread=str(error))
    needs_gate = known.replicas is None and not gate
    return msgspec.structs.replace(found, whole=COMPONENTS_NEED_GATE if needs_gate else "")


def is_metadata_only(content: Mapping[str, Any]) -> bool:
    """Whether it is only the metadata of an object that a server has, as in a snapshot; one by hand is whole."""
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping) or not content.keys() <= _METADATA_FIELDS:
        return False
    return bool(metadata.get("uid") or metadata.get("resourceVersion"))


def _answered(template: ResourceTemplate, answers: Answers) -> ResourceTemplate:
    """The template with the answer of a customization, which comes before all other interpreters."""
    answer = answers.by_template.get(template.key)
    if answer is None:
        return template
    return msgspec.structs.replace(template, unread=answer) if isinstance(answer, str) else _with(template, answer)


def _with(template: ResourceTemplate, found: Interpretation) -> ResourceTemplate:
    return msgspec.structs.replace(
        template,
        interpreted=found.has_replicas,
        replicas=found.replicas,
        requirements=found.requirements,
        components=found.components,
    )


def _webhook_of(written: ApiObject, inputs: DesiredState, *, with_components: bool) -> str:
    """The name of the webhook that Karmada would ask, empty if there is none."""
    group, _, version = written.api_version.rpartition("/")
    operations = {_REPLICAS, _COMPONENTS} if with_components else {_REPLICAS}
    for configuration in inputs.interpreter_webhooks:
        for webhook in configuration.webhooks or ():
            if any(_covers(rule, group, version, written.kind, operations) for rule in webhook.rules or ()):
                return webhook.name
    return ""


def _covers(rule: InterpreterRule, group: str, version: str, kind: str, operations: set[str]) -> bool:
    def names(listed: list[str] | None, *wanted: str) -> bool:
        return not {"*", *wanted}.isdisjoint(listed or ())

    return (
        names(rule.operations, *operations)
        and names(rule.api_groups, group)
        and names(rule.api_versions, version)
        and names(rule.kinds, kind)
    )
