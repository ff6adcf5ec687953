"""Nodes and Karmada clusters, mapped to targets."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from bayplan.model import quantities
from bayplan.model import targets as model
from bayplan.model.labels import Taint
from bayplan.model.targets import Target, TargetName
from bayplan.wire.fleets import Cluster, WireResourceSummary
from bayplan.wire.meta import Quantities, Quantity
from bayplan.wire.nodes import Node


def target_of_node(node: Node) -> Target:
    """The node as a target; its capacity is allocatable if it reports no allocatable."""
    allocatable = node.status.allocatable or node.status.capacity or {}
    return Target(
        name=TargetName(node.metadata.name),
        labels=node.metadata.labels or {},
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints or ()),
        unschedulable=node.spec.unschedulable,
        allocatable=tuple((name, quantities.amount(name, text)) for name, text in allocatable.items()),
        images=tuple((name, image.size_bytes) for image in node.status.images or () for name in image.names or ()),
    )


def target_of_cluster(cluster: Cluster) -> Target:
    """The cluster as a target; provider, region and zones are topology domains, as labels are."""
    spec = cluster.spec
    fields = [(model.PROVIDER, spec.provider), (model.REGION, spec.region)]
    fields += [(model.ZONE, zone) for zone in spec.zones or ()]
    return Target(
        name=TargetName(cluster.metadata.name),
        labels=cluster.metadata.labels or {},
        further_labels=tuple((model.FIELD_KEYS[name], value) for name, value in fields if value),
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in spec.taints or ()),
        cluster=_facts(cluster),
    )


def _facts(cluster: Cluster) -> model.ClusterFacts:
    spec, summary = cluster.spec, cluster.status.resource_summary
    apis = (
        (_group_version(enabled.group_version), resource.kind)
        for enabled in cluster.status.api_enablements or ()
        for resource in enabled.resources or ()
    )
    return model.ClusterFacts(
        provider=spec.provider,
        region=spec.region,
        zones=tuple(spec.zones or ()),
        apis=frozenset(apis),
        terminating=cluster.metadata.deletion_timestamp is not None,
        summary=None
        if summary is None
        else model.ResourceSummary(
            amounts_of(summary.allocatable),
            amounts_of(summary.allocated),
            amounts_of(summary.allocating),
            frozenset(name for name in summary.allocatable or () if _is_left_in_binary_form(name, summary)),
        ),
        grades=None if summary is None else _grades(cluster, summary),
    )


def _group_version(text: str) -> str:
    """As Karmada parses it before comparing: `/v1` is `v1`, and a text with two slashes is empty."""
    return "" if text.count("/") > 1 else text.removeprefix("/")


def amounts_of(written: Quantities | None) -> model.Amounts:
    """Exact amounts by resource."""
    return tuple((name, quantities.parse(text)) for name, text in (written or {}).items())


def is_binary(text: Quantity) -> bool:
    """Whether a quantity is written in binary form, such as 4Gi."""
    return str(text).endswith("i")


def _is_left_in_binary_form(resource: str, summary: WireResourceSummary) -> bool:
    """Whether what is left is in binary form: a difference keeps the form of the first number that is not 0."""
    left, binary = Fraction(), False
    for part, sign in ((summary.allocatable, 1), (summary.allocated, -1), (summary.allocating, -1)):
        text = (part or {}).get(resource)
        if text is not None:
            binary = binary if left else is_binary(text)
            left += sign * quantities.parse(text)
    return binary


def _grades(cluster: Cluster, summary: WireResourceSummary) -> tuple[model.NodeGrade, ...] | None:
    """The nodes that the cluster's resource models assume; None if there are no models or a count is invalid."""
    counted, models = summary.allocatable_modelings, cluster.spec.resource_models
    if not counted or not models or any(grade.count < 0 for grade in counted):
        return None
    counts: Counter[int] = Counter()
    for grade in counted:
        counts[grade.grade] += grade.count
    sizes = {m.grade: {r.name: quantities.parse(r.min) for r in m.ranges or ()} for m in models}
    return tuple(model.NodeGrade(counts[grade], tuple(sizes[grade].items())) for grade in sorted(sizes))
