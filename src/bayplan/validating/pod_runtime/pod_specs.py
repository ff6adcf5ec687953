"""
A pod, or the template that pods are made from, as far as how they run goes: which rule looks at which field.

Mirrors `ValidatePodSpec` in pkg/apis/core/validation/validation.go and, for what a StatefulSet adds to its template,
`ValidateStatefulSetSpec` in pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

import re

from bayplan.validating import causes, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.pod_runtime import claims, containers, device_claims, host_names, security, volumes, windows

MAX_SECONDS = 2**31 - 1
ON_CREATE = "cannot be set on create"
IN_TEMPLATE = "ephemeral containers not allowed in pod template"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
NO_COST = "must be a 32bit integer"
# What the rules here have nothing to say about, unless it is within containers; most pods have little more than that.
PLAIN = frozenset({
    "affinity", "automountServiceAccountToken", "containers", "enableServiceLinks", "initContainers", "nodeName",
    "nodeSelector", "overhead", "preemptionPolicy", "priority", "priorityClassName", "restartPolicy",
    "schedulerName", "schedulingGates", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
})  # fmt: skip


def pod(field: Field) -> list[Cause]:
    """What is wrong with how a pod is to run."""
    written = field["metadata"]
    owner = volumes.Owner(is_pod=True, name=written["name"].text())
    return _deletion_cost(written["annotations"]) + _spec(field["spec"], owner)


def template(field: Field) -> list[Cause]:
    """What is wrong with how the pods of a template are to run."""
    cost = _deletion_cost(field["metadata"].at("annotations", field["annotations"].path))
    return cost + _spec(field["spec"], volumes.Owner(is_pod=False))


def of_stateful_set(field: Field) -> list[Cause]:
    """What is wrong with how the pods of a StatefulSet are to run: they have its claims, and names of their own."""
    made, listed = field.under("spec", "template"), field.under("spec", "volumeClaimTemplates")
    spec = made["spec"]
    value = {key: spec[key].value for key in spec.names() if key not in ("subdomain", "hostname")}
    if listed.items():
        value["volumes"] = _with_claims(listed, spec["volumes"])
    return template(Field(made.path, {"metadata": made["metadata"].value, "spec": value}))


def claims_of_stateful_set(field: Field) -> list[Cause]:
    """What is wrong with the claims that a StatefulSet makes for each of its pods."""
    listed = field.under("spec", "volumeClaimTemplates").items()
    return [cause for claim in listed for cause in claims.spec(claim["spec"])]


def _with_claims(listed: Field, own: Field) -> list[object]:
    """The volumes that pods will have: those of claims, which take the place of others of the same name, come first."""
    named = dict.fromkeys(claim.under("metadata", "name").text() for claim in listed.items())
    first: list[object] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in named]
    return first + [volume.value for volume in own.items() if volume["name"].text() not in named]


def _spec(spec: Field, owner: volumes.Owner) -> list[Cause]:
    wrong, sound = volumes.causes_of(spec["volumes"], owner)
    around = containers.ContainerContext(spec, owner.is_pod, volumes.by_name(spec["volumes"]), sound)
    found = [*wrong, *containers.causes_of(around), *windows.host_processes(spec)]
    if PLAIN.issuperset(spec.names()):
        return found
    account = spec["serviceAccountName"] if spec["serviceAccountName"].text() else spec["serviceAccount"]
    return [
        *found,
        *_ephemeral_containers(spec["ephemeralContainers"], is_pod=owner.is_pod),
        *device_claims.of_pod(spec),
        *security.of_pod(spec),
        *host_names.causes_of(spec),
        *_readiness_gates(spec["readinessGates"]),
        *_subdomain(Field(spec["serviceAccountName"].path, account.value)),
        *_deadline(spec["activeDeadlineSeconds"]),
        *_runtime_class(spec["runtimeClassName"]),
        *windows.of_system(spec),
    ]


def _ephemeral_containers(listed: Field, *, is_pod: bool) -> list[Cause]:
    """Those come later, into pods that run; what is in them is not looked at."""
    if not listed.items():
        return []
    return [causes.forbidden(listed.path, ON_CREATE if is_pod else IN_TEMPLATE)]


def _readiness_gates(gates: Field) -> list[Cause]:
    found: list[Cause] = []
    for gate in gates.items():
        kind = gate["conditionType"]
        found += names.invalid(kind.path, kind.text(), names.label_key(kind.text()))
    return found


def _subdomain(field: Field) -> list[Cause]:
    return names.invalid(field.path, field.text(), names.dns_subdomain(field.text())) if field.text() else []


def _runtime_class(field: Field) -> list[Cause]:
    return names.invalid(field.path, field.text(), names.dns_subdomain(field.text())) if field.present else []


def _deadline(seconds: Field) -> list[Cause]:
    return causes.within(seconds, 1, MAX_SECONDS) if seconds.present else []


def _deletion_cost(annotations: Field) -> list[Cause]:
    cost = annotations.entry(DELETION_COST)
    if not cost.present or _is_int32(cost.text()):
        return []
    return [causes.invalid(cost.path, go_text.quoted(cost.text()), NO_COST)]


def _is_int32(text: str) -> bool:
    """Whether the text is such a number, without a plus and without zeros at the front, unless after a minus."""
    return bool(re.fullmatch("0|-0*[0-9]{1,10}|[1-9][0-9]{0,9}", text)) and -(2**31) <= int(text) < 2**31
