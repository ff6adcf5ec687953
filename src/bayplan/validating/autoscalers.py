"""
HorizontalPodAutoscalers: what they scale, between which numbers, by which metrics and how fast.

Mirrors pkg/apis/autoscaling/validation/validation.go. Feature gates have their defaults, so no autoscaler scales to
zero before 1.37. An autoscaler of the earlier version autoscaling/v1 has one metric, which an API server converts
first.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.model.kubernetes_versions import V1_37
from bayplan.validating import go_text, names, resources, type_checks
from bayplan.validating.fields import NEGATIVE, Cause, Field
from bayplan.wire.controllers import HorizontalPodAutoscalerSpec
from bayplan.wire.meta import Int32, WireObject

NO_MAXIMUM, TOO_SMALL = "must be set and greater than 0", "must be greater than or equal to {}"
BELOW_MINIMUM = "must be greater than or equal to `minReplicas`"
NO_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"
NO_GROUP = "apiVersion must specify API group"
METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
TARGET_TYPES = ("Utilization", "Value", "AverageValue")
SELECT_POLICIES, POLICY_TYPES = ("Disabled", "Max", "Min"), ("Percent", "Pods")
MAX_PERIOD_SECONDS, MAX_WINDOW_SECONDS = 1800, 3600
NO_SOURCE = "must populate information for the given metric source"
OTHER_SOURCE = "must populate the given metric source only"
NEEDS_RAW_OR_UTILIZATION = "must set either a target raw value or a target utilization"
RAW_AND_UTILIZATION = "may not set both a target raw value and a target utilization"


class MetricTarget(WireObject):
    type: str = ""
    value: int | float | str | None = None
    average_value: int | float | str | None = None
    average_utilization: Int32 | None = None


class MetricName(WireObject):
    name: str = ""


class CrossVersionObjectReference(WireObject):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class MetricSource(WireObject):
    """The union of the sources of metrics."""

    name: str = ""
    container: str = ""
    described_object: CrossVersionObjectReference | None = None
    metric: MetricName | None = None
    target: MetricTarget | None = None


class Metric(WireObject):
    type: str = ""
    object: MetricSource | None = None
    external: MetricSource | None = None
    pods: MetricSource | None = None
    resource: MetricSource | None = None
    container_resource: MetricSource | None = None


class ScalingPolicy(WireObject):
    type: str = ""
    value: Int32 = 0
    period_seconds: Int32 = 0


class ScalingRules(WireObject):
    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None
    policies: list[ScalingPolicy] | None = None
    tolerance: int | float | str | None = None


class ScalingBehavior(WireObject):
    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class ScalingFields(WireObject):
    """The types of the fields that are validated here and not read for placing."""

    metrics: list[Metric] | None = None
    behavior: ScalingBehavior | None = None
    target_cpu_utilization_percentage: Int32 | None = msgspec.field(name="targetCPUUtilizationPercentage", default=None)


def validate_autoscaler(autoscaler: Field) -> list[Cause]:
    """The causes for rejecting a HorizontalPodAutoscaler."""
    spec = autoscaler["spec"]
    undecodable = type_checks.validate_types(spec, HorizontalPodAutoscalerSpec)
    undecodable += type_checks.validate_types(spec, ScalingFields) or resources.unparsable(_quantities_of(spec))
    if undecodable:
        return undecodable
    least, most, target = spec["minReplicas"], spec["maxReplicas"], spec["scaleTargetRef"]
    found = names.validate_metadata(autoscaler["metadata"], names.dns_subdomain)
    lowest, no_maximum = (0, "") if spec.version >= V1_37 else (1, NO_MAXIMUM)
    if least.present and least.number() < lowest:
        found.append(least.invalid_number(TOO_SMALL.format(lowest)))
    if not most.number():
        found.append(most.required(no_maximum))
    elif most.number() < 0:
        found.append(most.invalid_number(TOO_SMALL.format(1)))
    minimum = least.number() if least.present else 1
    if most.number() < minimum:
        found.append(most.invalid_number(BELOW_MINIMUM))
    found += _validate_reference(target, needs_group=target["kind"].text() != "ReplicationController")
    for metric in _metrics_of(spec):
        found += _validate_metric(metric)
    if minimum == 0 and not any(one["type"].text() in ("Object", "External") for one in _metrics_of(spec)):
        found.append(spec["metrics"].forbidden(NO_ZERO))
    for direction in ("scaleUp", "scaleDown"):
        found += _validate_rules(spec["behavior"][direction])
    return found


def _quantities_of(spec: Field) -> Iterator[Field]:
    for metric in spec["metrics"].items():
        for source in _SOURCES:
            yield from (metric[source]["target"][name] for name in ("value", "averageValue"))
    for direction in ("scaleUp", "scaleDown"):
        yield spec["behavior"][direction]["tolerance"]


def _metrics_of(spec: Field) -> list[Field]:
    """The metrics; that of the earlier version is a share of the requested cpu."""
    share = spec["targetCPUUtilizationPercentage"]
    if not share.present or spec["metrics"].present:
        return spec["metrics"].items()
    target = {"type": "Utilization", "averageUtilization": share.value}
    return [Field(f"{spec.path}.metrics[0]", {"type": "Resource", "resource": {"name": "cpu", "target": target}})]


def _validate_reference(reference: Field, *, needs_group: bool) -> Iterator[Cause]:
    for field in (reference["kind"], reference["name"]):
        if field.text():
            yield from field.check_text(names.path_segment)
        else:
            yield field.required()
    version = reference["apiVersion"]
    if version.text().count("/") > 1:
        yield version.invalid(f"unexpected GroupVersion string: {version.text()}")
    elif needs_group and not version.text().rpartition("/")[0]:
        yield version.invalid(NO_GROUP)


def _validate_metric(metric: Field) -> Iterator[Cause]:
    kind = metric["type"]
    if not kind.text():
        yield kind.required("must specify a metric source type")
    if kind.text() not in METRIC_TYPES:
        yield kind.unsupported(METRIC_TYPES)
    present = [name for name in _SOURCES if metric[name].present]
    if present:
        yield from _validate_source(metric[present[0]], present[0])
    expected = f"{kind.text()[:1].lower()}{kind.text()[1:]}" if kind.text() in METRIC_TYPES else ""
    if expected and expected not in present:
        yield metric[expected].required(NO_SOURCE)
    if len(present) != 1:
        yield from (metric[name].forbidden(OTHER_SOURCE) for name in present if name != expected)


# In the order in which upstream looks for them: only the first one is validated.
_SOURCES = ("object", "external", "pods", "resource", "containerResource")


def _validate_source(source: Field, kind: str) -> Iterator[Cause]:
    target = source["target"]
    value, average, share = target["value"], target["averageValue"], target["averageUtilization"]
    if kind == "object":
        yield from _validate_reference(source["describedObject"], needs_group=False)
    if kind in ("object", "external", "pods"):
        named = source["metric"]["name"]
        yield from (
            named.check_text(names.path_segment) if named.text() else [named.required("must specify a metric name")]
        )
    elif not source["name"].text():
        yield source["name"].required("must specify a resource name")
    elif kind == "containerResource":
        yield from resources.validate_resource_name(source["name"])
    if kind == "containerResource":
        container = source["container"]
        yield from (
            container.check_text(names.dns_label)
            if container.text()
            else [container.required("must specify a container")]
        )
    yield from _validate_target(target)
    if kind == "object" and not value.present and not average.present:
        yield average.required("must set either a target value or averageValue")
    elif kind == "external" and not value.present and not average.present:
        yield average.required("must set either a target value for metric or a per-pod target")
    elif kind == "external" and value.present and average.present:
        yield value.forbidden("may not set both a target value for metric and a per-pod target")
    elif kind == "pods" and not average.present:
        yield average.required("must specify a positive target averageValue")
    elif kind in ("resource", "containerResource") and share.present == average.present:
        yield average.forbidden(RAW_AND_UTILIZATION) if share.present else share.required(NEEDS_RAW_OR_UTILIZATION)


def _validate_target(target: Field) -> Iterator[Cause]:
    kind, share = target["type"], target["averageUtilization"]
    if not kind.text():
        yield kind.required("must specify a metric target type")
    if kind.text() not in TARGET_TYPES:
        yield kind.invalid("must be either Utilization, Value, or AverageValue", go_text.as_json(kind.text()))
    for amount in (target["value"], target["averageValue"]):
        if amount.present and go_text.rounded_quantity(amount.value) <= 0:
            yield amount.invalid("must be positive", go_text.as_json(go_text.quantity_text(amount.value)))
    if share.present and share.number() < 1:
        yield share.invalid_number("must be greater than 0")


def _validate_rules(rules: Field) -> Iterator[Cause]:
    window, chosen, policies, tolerance = (
        rules[name] for name in ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
    )
    if window.number() < 0:
        yield window.invalid_number("must be greater than or equal to zero")
    if window.number() > MAX_WINDOW_SECONDS:
        yield window.invalid_number(f"must be less than or equal to {MAX_WINDOW_SECONDS}")
    yield from chosen.check_enum(SELECT_POLICIES, empty_is_default=False)
    if policies.present and not policies.items():  # absent ones are filled in
        yield policies.required("must specify at least one Policy")
    for policy in policies.items():
        yield from _validate_policy(policy)
    if tolerance.present and go_text.rounded_quantity(tolerance.value) < 0:
        yield tolerance.invalid(NEGATIVE, go_text.as_json(go_text.quantity_text(tolerance.value)))


def _validate_policy(policy: Field) -> Iterator[Cause]:
    kind, period = policy["type"], policy["periodSeconds"]
    if kind.text() not in POLICY_TYPES:
        yield kind.unsupported(POLICY_TYPES)
    for number in (policy["value"], period):
        if number.number() <= 0:
            yield number.invalid_number("must be greater than zero")
    if period.number() > MAX_PERIOD_SECONDS:
        yield period.invalid_number(f"must be less than or equal to {MAX_PERIOD_SECONDS}")
