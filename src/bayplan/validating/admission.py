"""
What an API server would refuse in an object, dispatched by its kind. Knows no rule itself.

A kind without rules is admitted. New kinds are new rows of `_KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from bayplan.validating import fields, metadata, names, pods
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

_TEMPLATE = ("spec", "template")
_CRON_TEMPLATE = ("spec", "jobTemplate", "spec", "template")


class _Kind(msgspec.Struct, frozen=True):
    """`group` is the API version's part before the slash; `template` leads to the pod template, if there is one."""

    group: str
    check: Callable[[Field], list[Cause]]
    template: tuple[str, ...] = ()


def causes(obj: dict[str, object]) -> list[Cause]:
    """Everything that an API server would hold against the decoded object: none if it would be admitted."""
    kind = _kind(obj)
    return kind.check(fields.root(obj)) if kind else []


def pod_like(obj: dict[str, object]) -> Field | None:
    """The pod in the object, or the template of its pods; none if it makes no pods."""
    kind = _kind(obj)
    if kind is None or not (kind.template or kind.check is pods.pod):
        return None
    return fields.root(obj).under(*kind.template)


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
        return [*metadata.causes_of(field["metadata"], name_rule), *pods.template(field.under(*template))]

    return check


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


_KINDS: dict[str, _Kind] = {"Pod": _Kind("", pods.pod), **dict(_workloads())}
