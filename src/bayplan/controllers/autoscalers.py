"""
HorizontalPodAutoscalers: how many replicas their targets have at the least, now, or at the peak of the load.

What the load is cannot be known from objects, so the caller chooses. Does not create pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.wire import kinds
from bayplan.wire.controllers import HorizontalPodAutoscaler

AssumedLoad = Literal["min", "current", "max"]
CURRENT: AssumedLoad = "current"


class Autoscalers:
    """The autoscalers of one state by their target."""

    def __init__(self, written: Iterable[HorizontalPodAutoscaler], load: AssumedLoad = CURRENT) -> None:
        self._load = load
        self.by_target: dict[ObjectKey, HorizontalPodAutoscaler] = {}
        for autoscaler in written:
            target = autoscaler.spec.scale_target_ref
            if target is not None and autoscaler.metadata.deletion_timestamp is None:
                key = ObjectKey(target.kind, autoscaler.metadata.namespace, target.name)
                self.by_target[key] = autoscaler

    def replicas(self, key: ObjectKey, written: int | None) -> int | None:
        """The replicas of an object that asks for as many as `written`."""
        autoscaler = self.by_target.get(key)
        if autoscaler is None or written == 0:  # 0 switches an autoscaler off
            return written
        least = 1 if autoscaler.spec.min_replicas is None else autoscaler.spec.min_replicas
        most = max(least, autoscaler.spec.max_replicas or least)
        if self._load == "max":
            return most
        if self._load == "min" or written is None:
            return least
        return min(max(written, least), most)


def targets_of(written: Iterable[HorizontalPodAutoscaler]) -> set[ObjectKey]:
    """What the autoscalers scale."""
    return set(Autoscalers(written).by_target)


def scale(state: DesiredState, load: AssumedLoad = CURRENT) -> list[tuple[HorizontalPodAutoscaler, str]]:
    """Set the replicas of all controllers that an autoscaler scales; those without a target, with what they lack."""
    autoscalers = Autoscalers(state.autoscalers, load)
    missing = dict(autoscalers.by_target)
    for found in state.custom_objects:
        missing.pop(ObjectKey(found.kind, found.metadata.namespace, found.metadata.name), None)
    for row in kinds.held_in(kinds.CONTROLLERS):
        for position, controller in enumerate(state.controllers[row.kind]):
            key = ObjectKey(controller.kind, controller.metadata.namespace, controller.metadata.name)
            missing.pop(key, None)
            replicas = autoscalers.replicas(key, controller.spec.replicas)
            if replicas != controller.spec.replicas:
                spec = msgspec.structs.replace(controller.spec, replicas=replicas)
                state.controllers[row.kind][position] = msgspec.structs.replace(controller, spec=spec)
    return [(one, f"scales {key.kind} {key.name}, which is not in the input") for key, one in missing.items()]
