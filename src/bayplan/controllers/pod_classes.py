"""
The PriorityClass and the RuntimeClass that a new pod names, and what they add to it.

Mirrors plugin/pkg/admission/priority and plugin/pkg/admission/runtimeclass. Whether a class that is not here exists
elsewhere is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.validating import pod_resources
from bayplan.wire.admission import RuntimeClass
from bayplan.wire.controllers import PriorityClass
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.pods import PodSpec, WireToleration

# pkg/apis/scheduling/types.go: an API server creates these two by itself.
SYSTEM_CLASSES = tuple(
    PriorityClass(metadata=ObjectMeta(name=name), value=value)
    for name, value in (("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000))
)
PREEMPTS = "PreemptLowerPriority"
OVERHEAD_DIFFERS = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
OVERHEAD_ALONE = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class ClassError(Exception):
    """The class refuses the pod; the text is the server's."""


def priority_class(name: str, classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """The class of a pod: the named one, the default one if it names none; None if there is no such class."""
    if not name:
        defaults = [one for one in classes if one.global_default]
        # Two defaults can exist after a race; the lower one counts.
        return min(defaults, key=lambda one: one.value, default=PriorityClass(preemption_policy=PREEMPTS))
    return next((one for one in (*classes, *SYSTEM_CLASSES) if one.metadata.name == name), None)


def with_priority(spec: PodSpec, chosen: PriorityClass) -> PodSpec:
    """The spec with the priority and the preemption policy of its class; raises ClassError if it has another."""
    if spec.priority is not None and spec.priority != chosen.value:
        raise ClassError(
            f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
            f"priority admission controller computed {chosen.value} from the given PriorityClass name"
        )
    policy = chosen.preemption_policy or PREEMPTS
    if spec.preemption_policy is not None and spec.preemption_policy != policy:
        raise ClassError(
            f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    name = chosen.metadata.name or spec.priority_class_name
    return msgspec.structs.replace(
        spec, priority=chosen.value, priority_class_name=name, preemption_policy=spec.preemption_policy or policy
    )


def with_runtime_class(spec: PodSpec, chosen: RuntimeClass) -> PodSpec:
    """The spec with the overhead, the node selector and the tolerations of its class."""
    if chosen.overhead is not None:
        fixed = chosen.overhead.pod_fixed or {}
        if spec.overhead and _exact(spec.overhead) != _exact(fixed):
            raise ClassError(OVERHEAD_DIFFERS)
        spec = msgspec.structs.replace(spec, overhead=fixed)
    if chosen.scheduling is None:
        return spec
    own = spec.node_selector or {}
    for key, value in sorted((chosen.scheduling.node_selector or {}).items()):
        if own.get(key, value) != value:
            raise ClassError(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
    return msgspec.structs.replace(
        spec,
        node_selector={**own, **(chosen.scheduling.node_selector or {})} or None,
        tolerations=_merged([*(spec.tolerations or ()), *(chosen.scheduling.tolerations or ())]) or None,
    )


def _exact(listed: dict[str, str | int | float]) -> dict[str, object]:
    return {name: amount.exact for name, amount in pod_resources.amounts_of(listed).items()}


def _merged(every: list[WireToleration]) -> list[WireToleration]:
    """The tolerations without those that another one contains: pkg/util/tolerations/tolerations.go."""
    kept: list[WireToleration] = []
    for i, one in enumerate(every):
        if not any(_contains(other, one) for other in kept) and not any(
            other != one and _contains(other, one) for other in every[i + 1 :]
        ):
            kept.append(one)
    return kept


def _contains(outer: WireToleration, inner: WireToleration) -> bool:
    if outer == inner:
        return True
    if inner.key != outer.key and (outer.key or outer.operator != "Exists"):
        return False
    if outer.effect not in ("", inner.effect):
        return False
    if outer.effect == "NoExecute" and outer.toleration_seconds is not None:
        seconds = inner.toleration_seconds
        if seconds is None or seconds > outer.toleration_seconds:
            return False
    if outer.operator == "Exists":
        return True
    return outer.operator in ("", "Equal") and inner.operator == "Equal" and inner.value == outer.value
