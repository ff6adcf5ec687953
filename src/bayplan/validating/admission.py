"""
What an API server would refuse in an object, dispatched by its kind. Knows no rule itself.

A kind without rules is admitted. New kinds are new rows of `_KINDS`. How pods run once they are placed is not looked
at here: `complete` adds that.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan.validating import bindings, controllers, disruption, fields, placement_annotation, pods, policies
from bayplan.validating.causes import Cause
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


_KINDS: dict[str, _Kind] = {
    "Pod": _Kind("", pods.pod),
    "Deployment": _Kind("apps", controllers.deployment, _TEMPLATE),
    "ReplicaSet": _Kind("apps", controllers.deployment, _TEMPLATE),
    "StatefulSet": _Kind("apps", controllers.stateful_set, _TEMPLATE),
    "DaemonSet": _Kind("apps", controllers.daemon_set, _TEMPLATE),
    "Job": _Kind("batch", controllers.job, _TEMPLATE),
    "CronJob": _Kind("batch", controllers.cron_job, _CRON_TEMPLATE),
    "ReplicationController": _Kind("", controllers.replication_controller, _TEMPLATE),
    "PodDisruptionBudget": _Kind("policy", disruption.budget),
    "PropagationPolicy": _Kind("policy.karmada.io", policies.namespaced, placed=True),
    "ClusterPropagationPolicy": _Kind("policy.karmada.io", policies.cluster_wide, placed=True),
    "ResourceBinding": _Kind("work.karmada.io", bindings.namespaced, placed=True),
    "ClusterResourceBinding": _Kind("work.karmada.io", bindings.cluster_wide, placed=True),
}
