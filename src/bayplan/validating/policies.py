"""
A PropagationPolicy or ClusterPropagationPolicy: which rule looks at which field.

Mirrors `ValidatePropagationSpec` in Karmada's pkg/util/validation/validation.go, for a policy that somebody creates. Of
what Karmada's mutating webhook fills in first, a missing namespace of a selector counts and so does what
`placements.strategy` says; without the namespace, hardly any policy that people write would pass.
"""

from __future__ import annotations

from bayplan.validating import (
    causes,
    go_structs,
    go_text,
    metadata,
    names,
    placement_annotation,
    placements,
    selectors,
    shapes,
)
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import meta as wire_meta
from bayplan.wire import placements as wire

PREEMPT_ALWAYS = "Always"
SERVICE_IMPORT = ("multicluster.x-k8s.io/v1alpha1", "ServiceImport")

NO_DEPENDENCIES = "application failover is set, propagateDeps must be true"
OTHER_NAMESPACE = "namespace of resource selector must be the same as the namespace of the policy"
PREEMPTS_ALL = "name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption"
SUSPENDED_TWICE = "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"


def namespaced(field: Field) -> list[Cause]:
    """What is wrong with a PropagationPolicy; one without a namespace gets it from the request, so any will do."""
    return _policy(field, field.under("metadata", "namespace").text())


def cluster_wide(field: Field) -> list[Cause]:
    """What is wrong with a ClusterPropagationPolicy, which may select in any namespace."""
    return _policy(field, "")


def _policy(field: Field, namespace: str) -> list[Cause]:
    if misshapen := _shape(field):
        return misshapen
    spec = field["spec"]
    return [
        *metadata.causes_of(field["metadata"], names.dns_subdomain),
        *placements.causes_of(spec["placement"]),
        *_dependencies(spec),
        *failover_causes(spec["failover"]),
        *_namespaces(spec["resourceSelectors"], namespace),
        *_preemption(spec),
        *_suspension(spec["suspension"]),
        *placement_annotation.causes_of(field["metadata"], spec["placement"]),
    ]


def _shape(field: Field) -> list[Cause]:
    return [
        *shapes.causes_of(field["metadata"], wire_meta.ObjectMeta),
        *shapes.causes_of(field["spec"], wire.PropagationSpec),
    ]


def _dependencies(spec: Field) -> list[Cause]:
    field = spec["propagateDeps"]
    # For a ServiceImport Karmada switches it on by itself.
    if not spec["failover"]["application"].present or field.flag() or _imports_service(spec["resourceSelectors"]):
        return []
    return [causes.invalid(field.path, "false", NO_DEPENDENCIES)]


def _imports_service(listed: Field) -> bool:
    return any((item["apiVersion"].text(), item["kind"].text()) == SERVICE_IMPORT for item in listed.items())


def _namespaces(listed: Field, namespace: str) -> list[Cause]:
    return [
        causes.invalid(field.path, go_text.quoted(field.text()), OTHER_NAMESPACE)
        for field in (selector["namespace"] for selector in listed.items())
        if namespace and field.text() not in ("", namespace)
    ]


def _preemption(spec: Field) -> list[Cause]:
    if spec["preemption"].text() != PREEMPT_ALWAYS:
        return []
    unnamed = (item["name"] for item in spec["resourceSelectors"].items() if not item["name"].text())
    return [causes.invalid(field.path, '""', PREEMPTS_ALL) for field in unnamed]


def _suspension(suspension: Field) -> list[Cause]:
    if suspension["dispatching"].flag() and suspension.under("dispatchingOnClusters", "clusterNames").items():
        shown = go_structs.shown(suspension, wire.Suspension)
        # Upstream names the field twice.
        return [causes.invalid(suspension["suspension"].path, shown, SUSPENDED_TWICE)]
    return []


# RF merged from validating.failover: What a policy does when an application or a cluster fails. Mirrors
# `ValidateFailover` in Karmada's pkg/util/validation/validation.go. An absent purge mode is graceful by the policies'
# schema. The grace period that Karmada's mutating webhook then fills in counts only where no mode was written: a mode
# that was is judged as it stands in the recorded answers.

GRACEFUL = ("Gracefully", "Graciously")

NEGATIVE = "must be greater than or equal to 0"
NOT_GRACEFUL = "only takes effect when purgeMode is gracefully"
NO_GRACE = "should not be empty when purgeMode is gracefully"
NOT_POSITIVE = "must be greater than 0"


def failover_causes(failover: Field) -> list[Cause]:
    """What is wrong with the failover behaviour; nothing if there is none."""
    found = _application(failover["application"]) if failover["application"].present else []
    for kind in ("application", "cluster"):
        for rule in failover.under(kind, "statePreservation", "rules").items():
            found += selectors.label_key(rule["aliasLabelName"])
    return found


def _application(behaviour: Field) -> list[Cause]:
    tolerated = behaviour.under("decisionConditions", "tolerationSeconds")
    grace = behaviour["gracePeriodSeconds"]
    mode = behaviour["purgeMode"]
    graceful = mode.text() in GRACEFUL
    found: list[Cause] = []
    if tolerated.number() < 0:
        found.append(causes.invalid(tolerated.path, str(tolerated.number()), NEGATIVE))
    if grace.present and mode.present and not graceful:
        found.append(causes.invalid(grace.path, str(grace.number()), NOT_GRACEFUL))
    if graceful and not grace.present:
        found.append(causes.invalid(grace.path, "null", NO_GRACE))
    if grace.present and grace.number() <= 0:
        found.append(causes.invalid(grace.path, str(grace.number()), NOT_POSITIVE))
    return found
