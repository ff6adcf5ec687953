"""
The verbs of a timeline, carried out on the cluster as their users would: kubectl, or a machine that fails.

Names have been resolved. An object that is gone by then is said in an event, and nothing else stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bayplan.controllers import applying
from bayplan.controllers.desired_state import ObjectKey
from bayplan.mapping.pods import FINISHED
from bayplan.reading import checking
from bayplan.simulating import timeline_checks
from bayplan.simulating.autoscaling import AutoscalerController, LoadCurve
from bayplan.simulating.cluster_api import DRAINED, ClusterApi, named
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.node_lifecycle import NodeLifecycle, with_taint, without_taint
from bayplan.simulating.store import NODE, POD, key_of
from bayplan.simulating.timeline import (
    Action,
    AppliedObject,
    Apply,
    Delete,
    Load,
    NodeAction,
    Rebalance,
    Relabel,
    Restart,
    Scale,
    TaintChange,
    TaintNodes,
)
from bayplan.simulating.timeline_fields import written_duration
from bayplan.wire.nodes import WireTaint
from bayplan.wire.pods import Pod

DRAIN_RETRY_SECONDS = 5.0  # of kubectl drain, after a budget has refused
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
_REVISED = "simulation.bayplan.io/other-fields"  # counts changes of fields that are not read
_USER = "Timeline"  # the subject of events about what a step does


class Changes:
    """Carries out actions. `rebalance` is called for that verb."""

    def __init__(
        self,
        api: ClusterApi,
        events: EventLog,
        loop: asyncio.AbstractEventLoop,
        lifecycle: NodeLifecycle,
        autoscaling: AutoscalerController,
    ) -> None:
        self._api, self._store, self._events, self._loop = api, api.store, events, loop
        self._lifecycle, self._autoscaling = lifecycle, autoscaling
        self.rebalance: Callable[[int], None] = lambda _: None
        self._written: dict[ObjectKey, Any] = {}  # pod templates as they were last applied, with all their fields

    def carry_out(self, action: Action) -> None:
        """Carry out one action."""
        match action:
            case NodeAction():
                for choice, _ in action.nodes:
                    found = timeline_checks.nodes_of(choice, self._store.nodes())
                    if not found:
                        self._miss(action.verb, str(choice))
                    for name in found:
                        self._on_node(action.verb, name)
            case Scale():
                for one, replicas in action.replicas:
                    self._scale(one.key, replicas)
            case Restart():
                for one in action.workloads:
                    self._restart(one.key)
            case Apply():
                self.apply(action.objects)
            case Delete():
                for one in action.objects:
                    self._delete(one.key)
            case Relabel():
                for one, labels in action.objects:
                    self._relabel(one.key, labels)
            case TaintNodes():
                for choice, _, changes in action.nodes:
                    for name in timeline_checks.nodes_of(choice, self._store.nodes()):
                        self._taint(name, changes)
            case Load():
                for one, points in action.curves:
                    self._autoscaling.loads[one.key] = LoadCurve(self._loop.time(), points, action.over)
                    shown = ", ".join(f"{point:g}" for point in points)
                    self._events.record(named(one.key), "Load", f"{shown} replicas" + _over(action.over))
            case Rebalance():
                self.rebalance(action.max_moves)
            case _:
                raise AssertionError(f"no verb: {action}")

    def _miss(self, verb: str, what: str) -> None:
        self._events.record(_USER, "NotFound", f"{verb}: {what} is not there")

    # Nodes

    def _on_node(self, verb: str, name: str) -> None:
        match verb:
            case "lose":
                self._lifecycle.lose(name)
            case "recover":
                if not self._lifecycle.recover(name):
                    self._events.record(f"Node {name}", "NotLost", "recover: the machine was not lost")
            case "uncordon":
                self._set_unschedulable(name, is_on=False)
            case _:
                self._set_unschedulable(name, is_on=True)
                if verb == "drain":
                    self._begin_drain(name)

    def _set_unschedulable(self, name: str, *, is_on: bool) -> None:
        node = self._store.node(name)
        if node is None or node.spec.unschedulable == is_on:
            return
        changed = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=is_on))
        if is_on:  # the node lifecycle controller adds the taint, and takes it back
            changed = with_taint(changed, WireTaint(key=UNSCHEDULABLE, effect="NoSchedule"))
        else:
            changed = without_taint(changed, UNSCHEDULABLE)
        self._store.put(changed)
        self._events.record(f"Node {name}", "NodeNotSchedulable" if is_on else "NodeSchedulable")

    def _begin_drain(self, name: str) -> None:
        bare = [pod for pod in self._drained(name) if not pod.metadata.owner_references]
        if bare:
            shown = f"{bare[0].metadata.namespace}/{bare[0].metadata.name}"
            note = f"{shown} has no controller: kubectl drain evicts nothing without --force"
            self._events.record(f"Node {name}", "DrainRefused", note)
            return
        self._drain(name, frozenset())

    def _drained(self, name: str) -> list[Pod]:
        """The pods that a drain evicts: daemons, mirror pods and finished ones stay."""
        return [
            pod
            for pod in self._store.pods_on(name)
            if pod.metadata.deletion_timestamp is None
            and pod.status.phase not in FINISHED
            and not any(one.kind in ("DaemonSet", NODE) for one in pod.metadata.owner_references or ())
        ]

    def _drain(self, name: str, refused_before: frozenset[str]) -> None:
        node = self._store.node(name)
        if node is None or not node.spec.unschedulable:
            return  # it was given up, or the node is gone
        refused = {}
        for pod in self._drained(name):
            why = self._api.evict(key_of(pod), DRAINED)
            if why:
                refused[pod.metadata.uid] = (key_of(pod), why)
        for uid, (key, why) in refused.items():
            if uid not in refused_before:
                self._events.record(named(key), "EvictionRefused", why)
        if refused:
            self._loop.call_later(DRAIN_RETRY_SECONDS, self._drain, name, frozenset(refused))
        else:
            self._events.record(f"Node {name}", "Drained", "all its pods are evicted")

    def _taint(self, name: str, changes: tuple[TaintChange, ...]) -> None:
        node = self._store.node(name)
        assert node is not None, "it was just listed"
        for change in changes:
            taint = change.taint
            node = without_taint(node, taint.key, taint.effect) if change.removes else with_taint(node, taint)
        self._store.put(node)
        self._events.record(f"Node {name}", "TaintsChanged", ", ".join(map(_shown_taint, changes)))

    # Objects

    def _scale(self, key: ObjectKey, replicas: int) -> None:
        found = self._store.find(key)
        if found is None:
            self._miss("scale", named(key))
            return
        before = found.spec.replicas
        self._store.put(msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, replicas=replicas)))
        self._events.record(named(key), "Scaled", f"from {1 if before is None else before} to {replicas}")

    def _restart(self, key: ObjectKey) -> None:
        found = self._store.find(key)
        if found is None:
            self._miss("restart", named(key))
            return
        template = found.spec.template
        annotations = {**(template.metadata.annotations or {}), RESTARTED_AT: self._store.wall.text()}
        meta = msgspec.structs.replace(template.metadata, annotations=annotations)
        changed = msgspec.structs.replace(found.spec, template=msgspec.structs.replace(template, metadata=meta))
        self._store.put(msgspec.structs.replace(found, spec=changed))

    def _delete(self, key: ObjectKey) -> None:
        if self._store.find(key) is None:
            self._miss("delete", named(key))
        elif key.kind == POD:
            self._api.delete_pod(key)
        else:
            self._events.record(named(key), "ObjectDeleted")
            if key.kind == NODE:
                self._lifecycle.forget(key.name)
            self._store.remove(key)

    def _relabel(self, key: ObjectKey, labels: Mapping[str, str | None]) -> None:
        found = self._store.find(key)
        if found is None:
            self._miss("relabel", named(key))
            return
        merged = {**(found.metadata.labels or {}), **labels}
        kept = {name: text for name, text in merged.items() if text is not None}
        meta = msgspec.structs.replace(found.metadata, labels=kept or None)
        self._store.put(msgspec.structs.replace(found, metadata=meta))
        shown = ", ".join(f"{name}-" if text is None else f"{name}={text}" for name, text in labels.items())
        self._events.record(named(key), "Relabelled", shown)

    def apply(self, objects: tuple[AppliedObject, ...]) -> None:
        """Apply manifests as kubectl does: what exists is merged."""
        for one in objects:
            decoded, key = one.decoded, key_of(one.decoded)
            current = self._store.find(key)
            template = (
                one.written.get("spec", {}).get("template") if isinstance(one.written.get("spec"), dict) else None
            )
            before = self._written.get(key)
            if template is not None:
                self._written[key] = template
            if current is None:
                self._create(decoded, key)
                continue
            plain = msgspec.to_builtins(current)
            merged = applying.applied(plain, dict(one.written), checking.field_table(), key.kind)
            changed = msgspec.convert(merged, type(current))
            changed = self._as_restarted(changed, current, template, before)
            if changed == current:
                self._events.record(named(key), "Unchanged", "applied")
                continue
            self._events.record(named(key), "Applied")
            self._store.put(changed)

    def _create(self, decoded: Any, key: ObjectKey) -> None:
        if key.kind == POD:
            refused = self._api.create_pod(decoded)
            self._events.record(named(key), "FailedCreate" if refused else "Applied", refused)
            return
        self._events.record(named(key), "Applied", "created")
        self._store.put(decoded)

    def _as_restarted(self, changed: Any, current: Any, template: Any, before: Any) -> Any:
        """
        The object, with a template that differs if the manifest's does in any field.

        Only the fields that matter for scheduling are decoded, and another value of any field rolls the pods out.
        """
        if template is None or changed.spec.template != current.spec.template:
            return changed
        if before is None:
            self._events.remark(
                f"{named(key_of(current))}: the template that is applied is compared in the fields that are read only, "
                "because it is not known how it was applied before"
            )
            return changed
        if before == template:
            return changed
        own = changed.spec.template
        number = int((own.metadata.annotations or {}).get(_REVISED, "0")) + 1
        meta = msgspec.structs.replace(
            own.metadata, annotations={**(own.metadata.annotations or {}), _REVISED: str(number)}
        )
        revised = msgspec.structs.replace(own, metadata=meta)
        return msgspec.structs.replace(changed, spec=msgspec.structs.replace(changed.spec, template=revised))


def _over(seconds: float) -> str:
    return f" over {written_duration(seconds)}" if seconds else ""


def _shown_taint(change: TaintChange) -> str:
    taint = change.taint
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}{':' if taint.effect else ''}{taint.effect}{'-' if change.removes else ''}"
