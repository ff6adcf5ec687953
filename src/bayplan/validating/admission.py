"""
What an API server would refuse in an object, dispatched by its kind. Knows no rule itself.

A kind without rules is admitted. New kinds are new rows of `_KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from bayplan.validating import bindings, fields, metadata, names, placement_annotation, pods, policies
from bayplan.validating.causes import Cause, invalid
from bayplan.validating.fields import Field

_TEMPLATE = ("spec", "template")
_CRON_TEMPLATE = ("spec", "jobTemplate", "spec", "template")


class _Kind(msgspec.Struct, frozen=True):
    """
    `group` is the API version's part before the slash; `template` leads to the pod template, if there is one; `placed`
    kinds have a placement.
    """

    group: str
    check: Callable[[Field], list[Cause]]
    template: tuple[str, ...] = ()
    placed: bool = False


def causes(obj: dict[str, object]) -> list[Cause]:
    """Everything that an API server would hold against the decoded object: none if it would be admitted."""
    kind, field = _kind(obj), fields.root(obj)
    found = kind.check(field) if kind else []
    # Whatever has no placement of its own may be a resource template that brings one along.
    brought = [] if kind and kind.placed else placement_annotation.causes_of(field["metadata"])
    return found + [cause for cause in brought if cause not in found]


def pod_like(obj: dict[str, object]) -> Field | None:
    """The pod in the object, or the template of its pods; none if it makes no pods."""
    kind = _kind(obj)
    if kind is None or not (kind.template or kind.check is pods.pod):
        return None
    return fields.root(obj).under(*kind.template)


def placed(obj: dict[str, object]) -> Field | None:
    """The object, if it is of a kind that has a placement."""
    kind = _kind(obj)
    return fields.root(obj) if kind and kind.placed else None


def _kind(obj: dict[str, object]) -> _Kind | None:
    """The row of the object's kind; kinds of the same name in other groups are somebody else's."""
    kind = _KINDS.get(str(obj.get("kind")))
    version = obj.get("apiVersion")
    if kind is None or not isinstance(version, str):
        return kind
    group = version.split("/")[0] if "/" in version else ""
    return kind if group == kind.group else None


def _workload(name_rule: metadata.NameRule, template: tuple[str, ...]) -> Callable[[Field], list[Cause]]:
    def check(field: Field) -> list[Cause]:
        return [
            *metadata.causes_of(field["metadata"], name_rule),
            *_counts(field["spec"]),
            *pods.template(field.under(*template)),
        ]

    return check


def _counts(spec: Field) -> list[Cause]:
    counted = (spec[name] for name in ("replicas", "parallelism", "completions"))
    return [
        invalid(field.path, str(field.number()), "must be greater than or equal to 0")
        for field in counted
        if field.number() < 0
    ]


def _workloads() -> Iterator[tuple[str, _Kind]]:
    for kind, group, name_rule, template in (
        ("Deployment", "apps", names.dns_subdomain, _TEMPLATE),
        ("ReplicaSet", "apps", names.dns_subdomain, _TEMPLATE),
        ("StatefulSet", "apps", names.dns_label, _TEMPLATE),
        ("DaemonSet", "apps", names.dns_subdomain, _TEMPLATE),
        ("Job", "batch", names.dns_subdomain, _TEMPLATE),
        ("CronJob", "batch", names.dns_subdomain, _CRON_TEMPLATE),
        ("ReplicationController", "", names.dns_subdomain, _TEMPLATE),
    ):
        yield kind, _Kind(group, _workload(name_rule, template), template)


_KINDS: dict[str, _Kind] = {
    "Pod": _Kind("", pods.pod),
    **dict(_workloads()),
    "PropagationPolicy": _Kind("policy.karmada.io", policies.namespaced, placed=True),
    "ClusterPropagationPolicy": _Kind("policy.karmada.io", policies.cluster_wide, placed=True),
    "ResourceBinding": _Kind("work.karmada.io", bindings.namespaced, placed=True),
    "ClusterResourceBinding": _Kind("work.karmada.io", bindings.cluster_wide, placed=True),
}
