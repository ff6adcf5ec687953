"""
Controllers that create pods: their replicas, their selector, their pod template and how they replace pods.

Mirrors pkg/apis/apps/validation, pkg/apis/batch/validation and the part on ReplicationControllers in
pkg/apis/core/validation. The rules on update strategies and on the policies of Jobs have modules of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.model import labels as model
from bayplan.validating import (
    cron_schedules,
    go_text,
    job_policies,
    names,
    pods,
    selectors,
    type_checks,
    update_strategies,
)
from bayplan.validating.fields import Cause, Field
from bayplan.validating.job_policies import JobFields
from bayplan.validating.update_strategies import UpdateFields
from bayplan.wire.controllers import ControllerSpec, ReplicationControllerSpec
from bayplan.wire.meta import Int32, Int64, LabelSelector, WireObject

MISMATCH = "`selector` does not match template `labels`"
NOT_GENERATED = "`selector` not auto-generated"
TO_BE_GENERATED = "`selector` will be auto-generated"
NOT_A_SELECTOR = "invalid label selector"
NO_DEADLINE = "activeDeadlineSeconds in {} is not Supported"
JOB_RESTART_POLICIES = ("OnFailure", "Never")
REPLICA_FIELDS = ("replicas", "selector", "template")
JOB_FIELDS = ("selector", "template")
CONCURRENCY_POLICIES = ("Allow", "Forbid", "Replace")
MAX_CRON_JOB_NAME = 52  # the rest is for the time that becomes part of the names of its Jobs


class CronJobFields(WireObject):
    """The types of a CronJob's fields, but for the template of its Jobs."""

    schedule: str = ""
    time_zone: str | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    starting_deadline_seconds: Int64 | None = None
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


def validate_deployment(deployment: Field) -> list[Cause]:
    """The causes for rejecting a Deployment."""
    spec = deployment["spec"]
    return _validate_types(spec, REPLICA_FIELDS, update_strategies.DEPLOYMENT_FIELDS) or [
        *names.validate_metadata(deployment["metadata"], names.dns_subdomain),
        *_validate_replicated_spec(spec, "deployment", "ReplicaSet"),
        *update_strategies.validate_deployment_updates(spec),
    ]


def validate_replica_set(replica_set: Field) -> list[Cause]:
    """The causes for rejecting a ReplicaSet; upstream words them as for a Deployment."""
    spec = replica_set["spec"]
    return _validate_types(spec, REPLICA_FIELDS, ("minReadySeconds",)) or [
        *names.validate_metadata(replica_set["metadata"], names.dns_subdomain),
        *_validate_replicated_spec(spec, "deployment", "ReplicaSet"),
        *spec["minReadySeconds"].check_not_negative(),
    ]


def validate_stateful_set(stateful_set: Field) -> list[Cause]:
    """The causes for rejecting a StatefulSet."""
    spec = stateful_set["spec"]
    return _validate_types(spec, (*REPLICA_FIELDS, "serviceName"), update_strategies.STATEFUL_SET_FIELDS) or [
        *names.validate_metadata(stateful_set["metadata"], names.dns_label),
        *_validate_replicated_spec(spec, "statefulset", "StatefulSet"),
        *update_strategies.validate_stateful_set_updates(spec),
        *spec["serviceName"].check_text(names.dns_label, optional=True),
    ]


def validate_daemon_set(daemon_set: Field) -> list[Cause]:
    """The causes for rejecting a DaemonSet; upstream does not report a missing selector as such."""
    spec = daemon_set["spec"]
    if undecodable := _validate_types(spec, ("selector", "template"), update_strategies.DAEMON_SET_FIELDS):
        return undecodable
    selector, template = spec["selector"], spec["template"]
    return [
        *names.validate_metadata(daemon_set["metadata"], names.dns_subdomain),
        *(selectors.validate_selector(selector) or _validate_match(selector, template, "daemonset")),
        *_validate_template(template, "DaemonSet"),
        *update_strategies.validate_daemon_set_updates(spec),
    ]


def validate_replication_controller(controller: Field) -> list[Cause]:
    """The causes for rejecting a ReplicationController; its selector defaults to the labels of its template."""
    spec, template = controller["spec"], controller["spec"]["template"]
    undecodable = type_checks.validate_types(spec, ReplicationControllerSpec)
    if undecodable := [*undecodable, *_validate_types(spec, (), ("minReadySeconds",))]:
        return undecodable
    selected = spec["selector"].labels() or template["metadata"]["labels"].labels()
    return [
        *names.validate_metadata(controller["metadata"], names.dns_subdomain),
        *([] if selected else [spec["selector"].required()]),
        *spec["replicas"].check_not_negative(),
        *spec["minReadySeconds"].check_not_negative(),
        *([] if template.present else [template.required()]),
        *_validate_match(Field("", {"matchLabels": selected}), template),
        *(_validate_template(template, "ReplicationController") if template.present else []),
    ]


def validate_job(job: Field) -> list[Cause]:
    """The causes for rejecting a Job; its selector is generated unless `manualSelector` is set."""
    spec = job["spec"]
    if undecodable := _validate_job_types(spec):
        return undecodable
    selector, manual = spec["selector"], spec["manualSelector"].is_true()
    wrong = selectors.validate_selector(selector)
    return [
        *names.validate_metadata(job["metadata"], names.dns_subdomain),
        *([] if wrong or manual else _validate_generated_selector(selector, job["metadata"]["name"].text())),
        *_validate_job_spec(spec),
        *job_policies.validate_host_names(job["metadata"]["name"], spec),
        *([selector.required()] if manual and not selector.present else []),
        *wrong,
        *(_validate_match(selector, spec["template"]) if manual and not wrong else []),
    ]


def validate_cron_job(cron_job: Field) -> list[Cause]:
    """The causes for rejecting a CronJob and the Jobs that it creates."""
    spec, job_spec = cron_job["spec"], cron_job["spec"]["jobTemplate"]["spec"]
    if undecodable := [*type_checks.validate_types(spec, CronJobFields), *_validate_job_types(job_spec)]:
        return undecodable
    name, selector, manual = cron_job["metadata"]["name"], job_spec["selector"], job_spec["manualSelector"]
    found = names.validate_metadata(cron_job["metadata"], names.dns_subdomain)
    found += cron_schedules.validate_schedule(spec["schedule"])
    found += cron_schedules.validate_time_zone(spec["timeZone"])
    for name_of_count in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        found += spec[name_of_count].check_not_negative()
    found += spec["concurrencyPolicy"].check_enum(CONCURRENCY_POLICIES)
    found += _validate_job_spec(job_spec)
    if selector.present:
        found.append(selector.invalid(TO_BE_GENERATED, _selector_json(selector)))
    if manual.is_true():
        found.append(manual.unsupported(("nil", "false"), "true"))
    if go_text.n_bytes(name.text()) > MAX_CRON_JOB_NAME:
        found.append(name.invalid(f"must be no more than {MAX_CRON_JOB_NAME} characters"))
    return found


def _validate_types(spec: Field, known: tuple[str, ...], updating: tuple[str, ...] = ()) -> list[Cause]:
    """The values that an API server could not decode; it ignores the fields of other kinds."""
    return [
        *type_checks.validate_types(_only(spec, known), ControllerSpec),
        *type_checks.validate_types(_only(spec, updating), UpdateFields),
    ]


def _only(spec: Field, known: tuple[str, ...]) -> Field:
    value = spec.value
    own = {name: value[name] for name in value if name in known} if isinstance(value, Mapping) else value
    return Field(spec.path, own, spec.version)


def _validate_job_types(spec: Field) -> list[Cause]:
    return [*_validate_types(spec, JOB_FIELDS), *type_checks.validate_types(spec, JobFields)]


def _validate_replicated_spec(spec: Field, kind: str, pod_owner: str) -> list[Cause]:
    """The spec of a kind that needs a selector; with an invalid selector, upstream does not validate the template."""
    selector, template = spec["selector"], spec["template"]
    wrong = selectors.validate_selector(selector)
    found = [
        *spec["replicas"].check_not_negative(),
        *([] if selector.present else [selector.required()]),
        *wrong,
    ]
    if not wrong:
        return [*found, *_validate_match(selector, template, kind), *_validate_template(template, pod_owner)]
    shown = _selector_json(selector)
    return [*found, selector.malformed(shown) if kind == "statefulset" else selector.invalid(NOT_A_SELECTOR, shown)]


def _validate_template(template: Field, pod_owner: str) -> list[Cause]:
    """The template of pods that always restart."""
    policy, deadline = template["spec"]["restartPolicy"], template["spec"]["activeDeadlineSeconds"]
    found = pods.validate_pod_template(template) + policy.check_enum(("Always",))
    return [*found, deadline.forbidden(NO_DEADLINE.format(pod_owner))] if deadline.present else found


def _validate_job_spec(spec: Field) -> list[Cause]:
    policy = spec["template"]["spec"]["restartPolicy"]
    return [
        *job_policies.validate_policies(spec),
        *pods.validate_pod_template(spec["template"]),
        *(
            [policy.required('valid values: "OnFailure", "Never"')]
            if policy.text() in ("", "Always")
            else policy.check_enum(JOB_RESTART_POLICIES)
        ),
    ]


def _validate_generated_selector(selector: Field, name: str) -> list[Cause]:
    """A written selector must match the one that is generated; the uid in that is unknown before the Job exists."""
    generated = {"job-name": name, "batch.kubernetes.io/job-name": name}
    written = _selector_of(selector)
    if written is None or all(requirement.matches(generated) for requirement in written.requirements):
        return []
    return [selector.invalid(NOT_GENERATED, _selector_json(selector))]


def _validate_match(selector: Field, template: Field, kind: str = "") -> list[Cause]:
    """
    Whether the selector matches the template; a missing one matches nothing.

    An empty one matches everything, which is not valid if `kind` is given.
    """
    selected, labels = _selector_of(selector), template["metadata"]["labels"]
    if kind and selected is not None and not selected.requirements:
        return [selector.invalid(f"empty selector is invalid for {kind}", "{}")]
    if selected is not None and selected.matches(labels.labels()):
        return []
    return [labels.invalid(MISMATCH, go_text.as_json(labels.labels() if labels.present else None))]


def _selector_of(field: Field) -> model.Selector | None:
    if not field.present:
        return None
    equal = (model.Requirement(key, model.IN, (value,)) for key, value in field["matchLabels"].labels().items())
    listed = (
        model.requirement(one["key"].text(), one["operator"].text(), one["values"].texts())
        for one in field["matchExpressions"].items()
    )
    return model.selector_of((*equal, *listed))


def _selector_json(selector: Field) -> str:
    return go_text.struct_json(selector.value, LabelSelector)
