"""
HorizontalPodAutoscalers under a load that the timeline draws: the replicas that would be needed, over time.

Mirrors pkg/controller/podautoscaler (horizontal.go, replica_calculator.go) with the defaults of Kubernetes 1.36. The
load is spread over the pods that are ready. Without a load only the bounds count.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.mapping.pods import FINISHED
from bayplan.simulating.cluster_api import named
from bayplan.simulating.disruptions import is_ready
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.store import Store
from bayplan.wire.controllers import AutoscalerPolicy, AutoscalerRules, HorizontalPodAutoscaler

AUTOSCALER = "HorizontalPodAutoscaler"
SYNC_SECONDS = 15.0  # --horizontal-pod-autoscaler-sync-period
TOLERANCE = 0.1  # --horizontal-pod-autoscaler-tolerance
DOWN_WINDOW_SECONDS = 300  # --horizontal-pod-autoscaler-downscale-stabilization
_DEFAULT_UP = (AutoscalerPolicy(type="Pods", value=4, period_seconds=15), AutoscalerPolicy(type="Percent", value=100, period_seconds=15))  # fmt: skip # noqa: E501
_DEFAULT_DOWN = (AutoscalerPolicy(type="Percent", value=100, period_seconds=15),)


class LoadCurve(msgspec.Struct, frozen=True):
    """The load from a time on: points at equal distances, with straight lines between them."""

    since: float
    points: tuple[float, ...]
    over: float

    def at(self, now: float) -> float:
        """The load at a time; after the last point it stays."""
        if len(self.points) == 1 or now >= self.since + self.over:
            return self.points[-1]
        place = (now - self.since) / self.over * (len(self.points) - 1)
        n = min(int(place), len(self.points) - 2)
        return self.points[n] + (self.points[n + 1] - self.points[n]) * (place - n)


class _History(msgspec.Struct):
    """What an autoscaler has recommended and done lately, each with its time."""

    recommended: deque[tuple[float, int]] = msgspec.field(default_factory=deque)
    changes: deque[tuple[float, int]] = msgspec.field(default_factory=deque)


class AutoscalerController:
    """Runs all autoscalers; `loads` are set by the timeline, by target."""

    def __init__(self, store: Store, events: EventLog, loop: asyncio.AbstractEventLoop) -> None:
        self._store, self._events, self._loop = store, events, loop
        self.loads: dict[ObjectKey, LoadCurve] = {}
        self._history: dict[ObjectKey, _History] = {}
        self._is_running = False
        store.listen(self._changed)

    def _changed(self, key: ObjectKey, _: Any, after: Any) -> None:
        if key.kind == AUTOSCALER and after is not None and not self._is_running:
            self._is_running = True
            self._loop.call_soon(self._sync_all)

    def _sync_all(self) -> None:
        for autoscaler in self._store.of_kind(AUTOSCALER):
            self._sync(autoscaler)
        if self._store.count(AUTOSCALER):
            self._loop.call_later(SYNC_SECONDS, self._sync_all)
        else:
            self._is_running = False

    def _sync(self, autoscaler: HorizontalPodAutoscaler) -> None:
        spec, meta = autoscaler.spec, autoscaler.metadata
        if spec.scale_target_ref is None:
            return
        target = ObjectKey(spec.scale_target_ref.kind, meta.namespace, spec.scale_target_ref.name)
        found = self._store.find(target)
        if found is None or not hasattr(found.spec, "replicas"):
            return
        current = 1 if found.spec.replicas is None else found.spec.replicas
        least = 1 if spec.min_replicas is None else spec.min_replicas
        most = max(least, spec.max_replicas or least)
        if not current:
            return  # 0 switches an autoscaler off
        if not least <= current <= most:
            desired = min(max(current, least), most)
        else:
            desired = self._by_load(autoscaler, target, current, (least, most))
        if desired != current:
            self._history_of(autoscaler).changes.append((self._loop.time(), desired - current))
            self._store.put(msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, replicas=desired)))
            self._events.record(named(target), "SuccessfulRescale", f"New size: {desired}; it was {current}")

    def _history_of(self, autoscaler: HorizontalPodAutoscaler) -> _History:
        meta = autoscaler.metadata
        return self._history.setdefault(ObjectKey(AUTOSCALER, meta.namespace, meta.name), _History())

    def _by_load(
        self, autoscaler: HorizontalPodAutoscaler, target: ObjectKey, current: int, bounds: tuple[int, int]
    ) -> int:
        curve = self.loads.get(target)
        if curve is None:
            return current
        now, history = self._loop.time(), self._history_of(autoscaler)
        wanted = self._needed(target, current, curve.at(now))
        behavior = autoscaler.spec.behavior
        up, down = (behavior.scale_up, behavior.scale_down) if behavior else (None, None)
        stable = _stabilised(wanted, current, history, now, (_window(up, 0), _window(down, DOWN_WINDOW_SECONDS)))
        limited = _limited(stable, current, history, now, (up, down))
        return min(max(limited, bounds[0]), bounds[1])

    def _needed(self, target: ObjectKey, current: int, load: float) -> int:
        """The replicas that the load needs (calcPlainMetricReplicas); pods that are not ready take none of it."""
        pods = [pod for pod in self._pods_of(target) if pod.metadata.deletion_timestamp is None]
        pods = [pod for pod in pods if pod.status.phase not in FINISHED]
        n_ready = sum(map(is_ready, pods))
        n_unready = len(pods) - n_ready
        if not n_ready:
            return current  # no metrics
        ratio = load / n_ready
        if not n_unready or ratio <= 1:
            return current if abs(1 - ratio) <= TOLERANCE else math.ceil(load - 1e-9)
        again = load / (n_ready + n_unready)  # the pods that are not ready count as idle
        if abs(1 - again) <= TOLERANCE or again < 1:
            return current
        found = math.ceil(load - 1e-9)
        return max(found, current)

    def _pods_of(self, target: ObjectKey) -> list[Any]:
        owners = [target]
        if target.kind == "Deployment":
            owners += [
                ObjectKey("ReplicaSet", target.namespace, one.metadata.name) for one in self._store.owned_sets(target)
            ]
        return [pod for owner in owners for pod in self._store.pods_of(owner)]


def _window(rules: AutoscalerRules | None, default: int) -> int:
    found = None if rules is None else rules.stabilization_window_seconds
    return default if found is None else found


def _stabilised(wanted: int, current: int, history: _History, now: float, windows: tuple[int, int]) -> int:
    """The recommendation that holds for the windows (stabilizeRecommendationWithBehaviors)."""
    up_window, down_window = windows
    while history.recommended and history.recommended[0][0] < now - max(windows):
        history.recommended.popleft()
    up = min([wanted, *(n for at, n in history.recommended if at > now - up_window)])
    down = max([wanted, *(n for at, n in history.recommended if at > now - down_window)])
    history.recommended.append((now, wanted))
    return down if (found := max(current, up)) > down else found


def _limited(
    wanted: int,
    current: int,
    history: _History,
    now: float,
    rules: tuple[AutoscalerRules | None, AutoscalerRules | None],
) -> int:
    """No more than the policies allow (convertDesiredReplicasWithBehaviorRate)."""
    if wanted == current:
        return wanted
    is_up = wanted > current
    rule = rules[0] if is_up else rules[1]
    select = (rule.select_policy if rule else None) or "Max"
    if select == "Disabled":
        return current
    policies = (rule.policies if rule else None) or (_DEFAULT_UP if is_up else _DEFAULT_DOWN)
    longest = max(policy.period_seconds for policy in (*policies, *_DEFAULT_UP))
    while history.changes and history.changes[0][0] < now - max(longest, 1800):
        history.changes.popleft()
    allowed = [_allowed(policy, current, history, now, is_up=is_up) for policy in policies]
    if is_up:
        return min(wanted, max(current, (max if select == "Max" else min)(allowed)))
    return max(wanted, min(current, (min if select == "Max" else max)(allowed)))


def _allowed(policy: AutoscalerPolicy, current: int, history: _History, now: float, *, is_up: bool) -> int:
    """The size that one policy allows, from the size at the beginning of its period."""
    lately = [n for at, n in history.changes if at > now - policy.period_seconds]
    begun = current - sum(n for n in lately if n > 0) if is_up else current - sum(n for n in lately if n < 0)
    if policy.type == "Pods":
        return begun + policy.value if is_up else begun - policy.value
    share = 1 + policy.value / 100 if is_up else 1 - policy.value / 100
    return math.ceil(begun * share - 1e-9) if is_up else int(begun * share + 1e-9)
