"""
A pod, or the template that pods are made from: which rule looks at which field.

Mirrors `ValidatePodCreate` and `ValidatePodTemplateSpec` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from bayplan.validating import annotations as own_annotations
from bayplan.validating import (
    causes,
    choices,
    containers,
    go_text,
    metadata,
    names,
    node_affinity,
    pod_affinity,
    resources,
    selectors,
    shapes,
    tolerations,
    topology_spread,
)
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import meta as wire_meta
from bayplan.wire import pods as wire_pods

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
GATED = "cannot be set until all schedulingGates have been cleared"


def pod(field: Field) -> list[Cause]:
    """What is wrong with a pod that somebody creates."""
    if misshapen := _shape(field):
        return misshapen
    labels = field.under("metadata", "labels").labels()
    return [
        *metadata.causes_of(field["metadata"], names.dns_subdomain),
        *_spec(field["spec"], labels),
        *_gated(field["spec"]),
        *own_annotations.causes_of(field["metadata"], labels),
    ]


def template(field: Field) -> list[Cause]:
    """What is wrong with a pod template; nobody has merged its label keys into its selectors yet."""
    if misshapen := _shape(field):
        return misshapen
    written = field["metadata"]
    return [
        # Upstream leaves "metadata" out of these two paths.
        *selectors.labels(written.at("labels", field["labels"].path)),
        *metadata.annotated(written.at("annotations", field["annotations"].path)),
        *_spec(field["spec"], None),
        *own_annotations.causes_of(written, None),
    ]


def _shape(field: Field) -> list[Cause]:
    return [
        *shapes.causes_of(field["metadata"], wire_meta.ObjectMeta),
        *(shapes.causes_of(field["spec"], wire_pods.PodSpec) or resources.unreadable(field["spec"])),
        *shapes.causes_of(field.under("spec", "restartPolicy"), str),
    ]


def _spec(spec: Field, pod_labels: dict[str, str] | None) -> list[Cause]:
    affinity = spec["affinity"]
    return [
        *containers.causes_of(spec, template=pod_labels is None),
        *choices.defaulted(spec["restartPolicy"], RESTART_POLICIES),
        *selectors.labels(spec["nodeSelector"]),
        *node_affinity.causes_of(affinity["nodeAffinity"]),
        *pod_affinity.causes_of(affinity, pod_affinity.Rules(pod_labels)),
        *_gates(spec["schedulingGates"]),
        *topology_spread.causes_of(spec["topologySpreadConstraints"], pod_labels),
        *_subdomain(spec["nodeName"]),
        *tolerations.causes_of(spec["tolerations"]),
        *_subdomain(spec["priorityClassName"]),
        *_preemption(spec["preemptionPolicy"]),
        *resources.overhead(spec["overhead"]),
    ]


def _subdomain(field: Field) -> list[Cause]:
    return names.invalid(field.path, field.text(), names.dns_subdomain(field.text())) if field.text() else []


def _gates(gates: Field) -> list[Cause]:
    seen: set[str] = set()
    found: list[Cause] = []
    for gate in gates.items():
        name = gate["name"].text()
        found += names.invalid(gate.path, name, names.label_key(name))
        if name in seen:
            found.append(causes.duplicate(gate.path, go_text.quoted(name)))
        seen.add(name)
    return found


def _gated(spec: Field) -> list[Cause]:
    if spec["nodeName"].text() and spec["schedulingGates"].items():
        return [causes.forbidden(spec["nodeName"].path, GATED)]
    return []


def _preemption(field: Field) -> list[Cause]:
    if not field.present or field.text() in PREEMPTION_POLICIES:
        return []
    return choices.defaulted(field, PREEMPTION_POLICIES) if field.text() else [causes.required(field.path)]
