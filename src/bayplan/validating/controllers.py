"""
What makes pods: how many, which pods it takes for its own, and the template that it makes them from.

Mirrors pkg/apis/apps/validation, pkg/apis/batch/validation and the part on ReplicationControllers in
pkg/apis/core/validation. Strategies, deadlines and policies for failed pods are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.model import labels as model
from bayplan.validating import causes, cron_schedules, go_structs, go_text, metadata, names, pods, selectors, shapes
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire.controllers import ControllerSpec, ReplicationControllerSpec
from bayplan.wire.meta import LabelSelector

MISMATCH = "`selector` does not match template `labels`"
NOT_GENERATED = "`selector` not auto-generated"
TO_BE_GENERATED = "`selector` will be auto-generated"
NOT_A_SELECTOR = "invalid label selector"
NO_DEADLINE = "activeDeadlineSeconds in {} is not Supported"
OF_JOBS = ("OnFailure", "Never")
REPLICATED = ("replicas", "selector", "template")
REPEATED = ("parallelism", "completions", "selector", "template")
CONCURRENCY = ("Allow", "Forbid", "Replace")
MAX_CRON_JOB = 52  # the time, which becomes a part of its Jobs' names, needs the rest


def deployment(field: Field) -> list[Cause]:
    """What is wrong with a Deployment or a ReplicaSet; upstream words it alike for both."""
    return _shape(field["spec"], REPLICATED) or [
        *metadata.causes_of(field["metadata"], names.dns_subdomain),
        *_selecting(field["spec"], "empty selector is invalid for deployment", NOT_A_SELECTOR, "ReplicaSet"),
    ]


def stateful_set(field: Field) -> list[Cause]:
    """What is wrong with a StatefulSet."""
    return _shape(field["spec"], REPLICATED) or [
        *metadata.causes_of(field["metadata"], names.dns_label),
        *_selecting(field["spec"], "empty selector is invalid for statefulset", "", "StatefulSet"),
    ]


def daemon_set(field: Field) -> list[Cause]:
    """What is wrong with a DaemonSet, of which nobody says that its selector is missing."""
    if misshapen := _shape(field["spec"], ("selector", "template")):
        return misshapen
    spec = field["spec"]
    selector, wrong = spec["selector"], selectors.selector(spec["selector"])
    return [
        *metadata.causes_of(field["metadata"], names.dns_subdomain),
        *wrong,
        *([] if wrong else _mismatch(selector, spec["template"])),
        *_empty(selector, "empty selector is invalid for daemonset"),
        *_template(spec["template"], "DaemonSet"),
    ]


def replication_controller(field: Field) -> list[Cause]:
    """What is wrong with a ReplicationController; without a selector it takes the labels of its template."""
    if misshapen := shapes.causes_of(field["spec"], ReplicationControllerSpec):
        return misshapen
    spec, template = field["spec"], field.under("spec", "template")
    wanted = spec["selector"].labels() or template.under("metadata", "labels").labels()
    return [
        *metadata.causes_of(field["metadata"], names.dns_subdomain),
        *([] if wanted else [causes.required(spec["selector"].path)]),
        *_count(spec["replicas"]),
        *([] if template.present else [causes.required(template.path)]),
        *([] if _has(template, model.equals(wanted)) else [_no_match(template)]),
        *(_template(template, "ReplicationController") if template.present else []),
    ]


def job(field: Field) -> list[Cause]:
    """What is wrong with a Job; its selector is made for it unless it says otherwise."""
    if misshapen := _shape_of_job(field["spec"]):
        return misshapen
    spec = field["spec"]
    selector, wrong = spec["selector"], selectors.selector(spec["selector"])
    return [
        *metadata.causes_of(field["metadata"], names.dns_subdomain),
        *([] if wrong or spec["manualSelector"].flag() else _not_generated(selector, field.under("metadata", "name"))),
        *_job_spec(spec),
        *([] if selector.present or not spec["manualSelector"].flag() else [causes.required(selector.path)]),
        *wrong,
        *([] if wrong or not spec["manualSelector"].flag() else _mismatch(selector, spec["template"])),
    ]


def cron_job(field: Field) -> list[Cause]:
    """What is wrong with a CronJob and with the Jobs that it makes."""
    spec, inner = field["spec"], field.under("spec", "jobTemplate", "spec")
    if misshapen := _shape_of_job(inner):
        return misshapen
    name, concurrency = field.under("metadata", "name"), spec["concurrencyPolicy"]
    selector, manual = inner["selector"], inner["manualSelector"]
    found = [*metadata.causes_of(field["metadata"], names.dns_subdomain), *cron_schedules.causes_of(spec["schedule"])]
    if concurrency.text() not in ("", *CONCURRENCY):
        found.append(causes.unsupported(concurrency.path, go_text.as_json(concurrency.text()), CONCURRENCY))
    found += _job_spec(inner)
    if selector.present:
        found.append(causes.invalid(selector.path, _shown(selector), TO_BE_GENERATED))
    if manual.flag():
        found.append(causes.unsupported(manual.path, "true", ("nil", "false")))
    if go_text.n_bytes(name.text()) > MAX_CRON_JOB:
        detail = f"must be no more than {MAX_CRON_JOB} characters"
        found.append(causes.invalid(name.path, go_text.quoted(name.text()), detail))
    return found


def _shape(spec: Field, known: tuple[str, ...]) -> list[Cause]:
    """What a server could not decode; it passes over fields that only other kinds have."""
    if not isinstance(spec.value, Mapping):
        return shapes.causes_of(spec, ControllerSpec)
    own = {name: value for name, value in spec.value.items() if name in known}
    return shapes.causes_of(Field(spec.path, own), ControllerSpec)


def _shape_of_job(spec: Field) -> list[Cause]:
    return [*_shape(spec, REPEATED), *shapes.causes_of(spec["manualSelector"], bool)]


def _selecting(spec: Field, empty: str, broken: str, named: str) -> list[Cause]:
    """The spec of what needs a selector; with one that means nothing, upstream does not look at the template."""
    selector, template = spec["selector"], spec["template"]
    found = _count(spec["replicas"])
    if not selector.present:
        found.append(causes.required(selector.path))
    wrong = selectors.selector(selector)
    found += [*wrong, *_empty(selector, empty)]
    if not wrong:
        return [*found, *_mismatch(selector, template), *_template(template, named)]
    shown = _shown(selector)
    found.append(causes.invalid(selector.path, shown, broken) if broken else causes.malformed(selector.path, shown))
    return found


def _template(template: Field, named: str) -> list[Cause]:
    """The template of pods that are to run for ever."""
    policy, deadline = template.under("spec", "restartPolicy"), template.under("spec", "activeDeadlineSeconds")
    found = pods.template(template)
    if policy.text() not in ("", "Always"):
        found.append(causes.unsupported(policy.path, go_text.as_json(policy.text()), ("Always",)))
    if deadline.present:
        found.append(causes.forbidden(deadline.path, NO_DEADLINE.format(named)))
    return found


def _job_spec(spec: Field) -> list[Cause]:
    policy = spec.under("template", "spec", "restartPolicy")
    found = [*_count(spec["parallelism"]), *_count(spec["completions"]), *pods.template(spec["template"])]
    if policy.text() in ("", "Always"):
        found.append(causes.required(policy.path, 'valid values: "OnFailure", "Never"'))
    elif policy.text() not in OF_JOBS:
        found.append(causes.unsupported(policy.path, go_text.as_json(policy.text()), OF_JOBS))
    return found


def _not_generated(selector: Field, name: Field) -> list[Cause]:
    """A selector that cannot be the one that will be made; the uid in it is not known before the Job is there."""
    made = {"job-name": name.text(), "batch.kubernetes.io/job-name": name.text()}
    matched = _selector_of(selector)
    if matched is None or all(requirement.matches(made) for requirement in matched.requirements):
        return []
    return [causes.invalid(selector.path, _shown(selector), NOT_GENERATED)]


def _count(field: Field) -> list[Cause]:
    if field.number() >= 0:
        return []
    return [causes.invalid(field.path, str(field.number()), "must be greater than or equal to 0")]


def _empty(selector: Field, detail: str) -> list[Cause]:
    says_something = selector["matchLabels"].names() or selector["matchExpressions"].items()
    return [causes.invalid(selector.path, "{}", detail)] if selector.present and not says_something else []


def _mismatch(selector: Field, template: Field) -> list[Cause]:
    """A selector that is missing matches nothing, an empty one everything."""
    wanted = _selector_of(selector)
    return [] if wanted is not None and _has(template, wanted) else [_no_match(template)]


def _no_match(template: Field) -> Cause:
    labels = template.under("metadata", "labels")
    return causes.invalid(labels.path, go_text.as_json(labels.labels() if labels.present else None), MISMATCH)


def _has(template: Field, wanted: model.Selector) -> bool:
    return wanted.matches(template.under("metadata", "labels").labels())


def _selector_of(field: Field) -> model.Selector | None:
    if not field.present:
        return None
    equal = (model.Requirement(key, model.IN, (value,)) for key, value in field["matchLabels"].labels().items())
    listed = (
        model.requirement(one["key"].text(), one["operator"].text(), one["values"].texts())
        for one in field["matchExpressions"].items()
    )
    return model.selector_of((*equal, *listed))


def _shown(selector: Field) -> str:
    return go_structs.shown(selector, LabelSelector)
