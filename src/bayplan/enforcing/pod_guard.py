"""
The verdict of the guard on pods and pod templates, for every entry point.

Reads only what the guard needs; what an API server would reject anyway is checked by `validating.admission`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.mapping import pods
from bayplan.model.labels import Labels
from bayplan.model.semantics import Semantics
from bayplan.model.terms import NO_TERMS, AffinityTerms
from bayplan.validating import affinity as affinity_rules
from bayplan.validating import guard
from bayplan.validating import warnings as admission_warnings
from bayplan.validating.fields import Cause, Field
from bayplan.validating.guard import GuardSettings, Requester
from bayplan.wire import conversion, kinds
from bayplan.wire.controllers import PodTemplateSpec
from bayplan.wire.meta import ApiObject, ObjectMeta, WireObject
from bayplan.wire.pods import Affinity, Pod, TopologySpreadConstraint

TEMPLATE_HASH = "pod-template-hash"
ROLLING = ("", "RollingUpdate")
NO_REQUESTER = Requester()
_PERCENT = re.compile(r"(\d{1,9})%")


class _RollingUpdate(WireObject):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class _Strategy(WireObject):
    type: str = ""
    rolling_update: _RollingUpdate = msgspec.field(default_factory=_RollingUpdate)


class _PodControllerSpec(WireObject):
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)
    replicas: int = 1
    strategy: _Strategy = msgspec.field(default_factory=_Strategy)


class _PodController(ApiObject):
    """Any controller with a pod template; only a Deployment has a `strategy`."""

    spec: _PodControllerSpec = msgspec.field(default_factory=_PodControllerSpec)


class _JobTemplate(WireObject):
    spec: _PodControllerSpec = msgspec.field(default_factory=_PodControllerSpec)


class _CronJobSpec(WireObject):
    job_template: _JobTemplate = msgspec.field(default_factory=_JobTemplate)


class _CronJob(ApiObject):
    spec: _CronJobSpec = msgspec.field(default_factory=_CronJobSpec)


class PodLike(msgspec.Struct, frozen=True):
    """
    A pod or a pod template.

    `path` is its path within the object. `old` are the labels of the pods that exist beside new ones in a rolling
    update; None where that cannot happen.
    """

    metadata: ObjectMeta
    affinity: Affinity | None
    namespace: str
    path: str = ""
    old: dict[str, str] | None = None
    spread: list[TopologySpreadConstraint] | None = None


class GuardVerdict(msgspec.Struct, frozen=True):
    """The causes for rejection, and the warnings, each as `path: message`."""

    causes: list[Cause] = []
    warnings: list[str] = []


_TYPES: dict[tuple[str, ...], type[ApiObject]] = {
    (): Pod,
    kinds.TEMPLATE: _PodController,
    kinds.CRON_TEMPLATE: _CronJob,
}  # by where the pod is in the object


def wire_type(group: str, kind: str) -> type[ApiObject] | None:
    """The wire type of the kind; None for kinds that create no pods."""
    row = kinds.KINDS.get((group, kind))
    return None if row is None or row.pod_path is None else _TYPES[row.pod_path]


def read_pod_like(obj: dict[str, Any], namespace: str) -> PodLike | None:
    """The pod or template in a decoded object; None if it has none, or if it is malformed and rejected elsewhere."""
    version = str(obj.get("apiVersion") or "")
    found = wire_type(version.rpartition("/")[0], str(obj.get("kind")))
    if found is None:
        return None
    try:
        return pod_like(conversion.converted(obj, found), namespace)
    except msgspec.ValidationError:
        return None


def pod_like(written: ApiObject, namespace: str) -> PodLike:
    """The pod or template in a typed object of one of the wire types; its own namespace wins if it has one."""
    namespace = written.metadata.namespace or namespace
    if isinstance(written, Pod):
        return PodLike(
            written.metadata, written.spec.affinity, namespace, spread=written.spec.topology_spread_constraints
        )
    if isinstance(written, _CronJob):
        template = written.spec.job_template.spec.template
        path = "spec.jobTemplate.spec.template."
        spread = template.spec.topology_spread_constraints
        return PodLike(template.metadata, template.spec.affinity, namespace, path, spread=spread)
    assert isinstance(written, _PodController)
    template, old = written.spec.template, None
    metadata = template.metadata
    if written.kind == "Deployment":
        # Its ReplicaSets distinguish their pods by this label, which rules may select.
        metadata = msgspec.structs.replace(metadata, labels={**(metadata.labels or {}), TEMPLATE_HASH: "new"})
        old = {**(metadata.labels or {}), TEMPLATE_HASH: "old"} if _surges_first(written.spec) else None
    spread = template.spec.topology_spread_constraints
    return PodLike(metadata, template.spec.affinity, namespace, "spec.template.", old, spread)


def guard_verdict(
    pod: PodLike,
    semantics: Semantics,
    settings: GuardSettings,
    requester: Requester = NO_REQUESTER,
    *,
    annotated: bool = False,
    before: PodLike | None = None,
    namespaces: Mapping[str, Labels] = guard.NO_NAMESPACES,
) -> GuardVerdict:
    """
    The verdict of the guard; with `annotated` also the errors of the annotation, where nothing else validates it.

    `before` is the previous version of the object: errors that it had already are accepted. `namespaces` are
    those that exist, if that is known.
    """
    labels = pod.metadata.labels or {}
    affinity, fault = terms_of(pod, labels)
    causes = _malformed(pod, before) if fault and annotated else []
    if not settings.exempts(requester, pod.namespace):
        # With the present labels, so that a term that depends on them is the same when only they have changed.
        existing = NO_TERMS if before is None else terms_of(before, labels)[0]
        causes += guard.validate_anti_affinity(
            affinity, pod.namespace, semantics, settings, before=existing, namespaces=namespaces
        )
    warnings = admission_warnings.affinity_pitfalls(affinity, pod.namespace, semantics)
    if pod.old is not None and affinity.anti_required:
        warnings += admission_warnings.rolling_update_pitfalls(affinity, pod.namespace, pod.old, semantics)
    placed = [msgspec.structs.replace(cause, field=pod.path + cause.field) for cause in causes]
    return GuardVerdict(placed, [pod.path + warning for warning in warnings])


def terms_of(pod: PodLike, labels: dict[str, str]) -> tuple[AffinityTerms, str]:
    """All terms of the pod with these labels, and the error of its annotation."""
    added, fault = pods.annotated_affinity(pod.metadata.annotations, labels)
    return pods.affinity_terms(pod.affinity, added, labels), fault


def _malformed(pod: PodLike, before: PodLike | None) -> list[Cause]:
    known = [] if before is None else _malformed(before, None)
    labels = None if pod.path else pod.metadata.labels or {}
    found = affinity_rules.validate_annotation(Field("metadata", {"annotations": pod.metadata.annotations}), labels)
    return [cause for cause in found if cause not in known]


def _surges_first(spec: _PodControllerSpec) -> bool:
    """Whether an update removes no old pod before a new one runs: ResolveFenceposts of the Deployment controller."""
    if spec.strategy.type not in ROLLING or spec.replicas < 1:
        return False
    update = spec.strategy.rolling_update
    surge = _share("25%" if update.max_surge is None else update.max_surge, spec.replicas, up=True)
    unavailable = _share("25%" if update.max_unavailable is None else update.max_unavailable, spec.replicas, up=False)
    return unavailable == 0 and surge > 0


def _share(written: int | str, replicas: int, *, up: bool) -> int:
    """A number of replicas, or a percentage such as "25%" of them; anything else is rejected elsewhere."""
    if isinstance(written, int):
        return written
    percent = _PERCENT.fullmatch(written)
    if percent is None:
        return 1
    share = int(percent[1]) * replicas
    return -(-share // 100) if up else share // 100
