"""
Finds the objects that a timeline names in the cluster that it is about, and what of it makes no sense there.

What a step applies or deletes is there, or not, for the steps after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.errors import InputError
from bayplan.mapping.pods import EXECUTION
from bayplan.simulating.store import NODE, POD, Store, key_of, owner_of
from bayplan.simulating.timeline import (
    Action,
    Apply,
    Delete,
    Expectation,
    Load,
    Named,
    NodeAction,
    NodeSelection,
    Rebalance,
    Relabel,
    Restart,
    Scale,
    Step,
    TaintNodes,
    Timeline,
)
from bayplan.simulating.timeline_fields import Fields, nearest, written_duration
from bayplan.validating.affinity import AFFINITY_ANNOTATION
from bayplan.wire.controllers import HorizontalPodAutoscaler
from bayplan.wire.meta import ApiObject

SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
RESTARTED = ("Deployment", "StatefulSet", "DaemonSet")
WORKLOADS = (*SCALED, "DaemonSet", "Job")
# What may be applied: each kind whose changes have an effect here.
APPLIED = (
    *WORKLOADS, NODE, POD, "Namespace", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "PodGroup",
    "PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity",
    "PriorityClass",
)  # fmt: skip
_EXECUTION = (EXECUTION.encode(), AFFINITY_ANNOTATION.encode())
_GENERATED_NAME = r"-(?:\d+|[a-z0-9]+(?:-[a-z0-9]{5})?)"


class _Known:
    """The objects that are there at some step, and what of them matters for checks."""

    def __init__(self, store: Store) -> None:
        self.nodes: dict[str, Mapping[str, str]] = {}
        self.objects: dict[ObjectKey, None] = {}
        self.autoscaled: dict[ObjectKey, ObjectKey] = {}  # by their autoscaler
        self.has_execution_rules = False
        for kind in (*APPLIED, "LimitRange", "ResourceQuota"):
            for found in store.of_kind(kind):
                owner = owner_of(found)
                if kind != "ReplicaSet" or owner is None or store.find(owner) is None:
                    self.add(found)

    def add(self, found: ApiObject) -> None:
        key = key_of(found)
        self.objects[key] = None
        if key.kind == NODE:
            self.nodes[key.name] = found.metadata.labels or {}
        elif isinstance(found, HorizontalPodAutoscaler):
            target = found.spec.scale_target_ref
            if target is not None:
                self.autoscaled[key] = ObjectKey(target.kind, key.namespace, target.name)
        elif key.kind in (*WORKLOADS, POD) and not self.has_execution_rules:
            encoded = msgspec.json.encode(found)
            self.has_execution_rules = any(word in encoded for word in _EXECUTION)

    def remove(self, key: ObjectKey) -> None:
        self.objects.pop(key, None)
        self.nodes.pop(key.name, None) if key.kind == NODE else self.autoscaled.pop(key, None)


def resolved(timeline: Timeline, store: Store) -> Timeline:
    """The timeline with every name resolved; raises InputError with everything that is wrong."""
    checks = _Checks(timeline, _Known(store))
    steps = [checks.step(step) for step in timeline.steps]
    times_of = [(checks.workload(one, WORKLOADS), times) for one, times in timeline.times_of]
    for failures in timeline.failures:
        checks.check_nodes(failures.nodes)
        if failures.since > timeline.lasts:
            checks.fault(f"{failures.path}.from", f"it is after the end: {written_duration(timeline.lasts)}")
    if checks.faults:
        raise InputError(checks.faults)
    return msgspec.structs.replace(timeline, steps=steps, times_of=times_of)


class _Checks(Fields):
    """Resolves step by step; `_known` follows what the steps apply and delete."""

    def __init__(self, timeline: Timeline, known: _Known) -> None:
        super().__init__(timeline.document)
        self._timeline, self._known = timeline, known
        self._rebalances = any(isinstance(a, Rebalance) for step in timeline.steps for a in step.actions)

    def step(self, step: Step) -> Step:
        actions = tuple(self._action(action) for action in step.actions)
        expectations = tuple(self._expectation(one, step) for one in step.expectations)
        return msgspec.structs.replace(step, actions=actions, expectations=expectations)

    # Names

    def workload(self, named: Named, kinds: Iterable[str]) -> Named:
        """The object of one of these kinds that is meant."""
        wanted = list(kinds)
        if named.kind and named.kind not in wanted:
            self.fault(named.path, f"expected one of {', '.join(wanted)}, got {named.kind}")
            return named
        of_kinds = [key for key in self._known.objects if key.kind in wanted]
        found = [key for key in of_kinds if self._is_meant(named, key)]
        if len(found) == 1:
            return msgspec.structs.replace(named, key=found[0])
        if found:
            listed = ", ".join(sorted(f"{key.kind}/{key.namespace}/{key.name}" for key in found))
            self.fault(named.path, f"{named.text} may be any of {listed}: write which one is meant")
            return named
        what = named.kind or "workload"
        others = [key for key in self._known.objects if key.kind in WORKLOADS and self._is_meant(named, key)]
        if others:
            self.fault(named.path, f"{others[0].kind} {named.name} cannot be used here: expected {', '.join(wanted)}")
            return named
        near = nearest(named.name, {key.name for key in of_kinds})
        within = f" in namespace {named.namespace}" if named.namespace else ""
        self.fault(named.path, f"there is no {what} {named.name}{within}{near}")
        return named

    @staticmethod
    def _is_meant(named: Named, key: ObjectKey) -> bool:
        kind, namespace = named.kind or key.kind, named.namespace or key.namespace
        return key == (kind, namespace, named.name)

    def _object(self, named: Named) -> Named:
        """An object of any kind, which is named with its kind."""
        found = [key for key in self._known.objects if key.kind == named.kind and self._is_object(named, key)]
        if len(found) == 1:
            return msgspec.structs.replace(named, key=found[0])
        if found:
            listed = ", ".join(sorted(f"{key.kind}/{key.namespace}/{key.name}" for key in found))
            self.fault(named.path, f"{named.text} may be any of {listed}: write which one is meant")
        elif named.kind == POD and (owner := self._maker_of(named)):
            return msgspec.structs.replace(named, key=ObjectKey(POD, owner.namespace, named.name))
        else:
            names = {key.name for key in self._known.objects if key.kind == named.kind}
            self.fault(named.path, f"there is no {named.kind} {named.name}{nearest(named.name, names)}")
        return named

    @staticmethod
    def _is_object(named: Named, key: ObjectKey) -> bool:
        return key.name == named.name and (not key.namespace or named.namespace in ("", key.namespace))

    def _maker_of(self, named: Named) -> ObjectKey | None:
        """The controller whose pods have names like this one: its pods are not known before it makes them."""
        for key in self._known.objects:
            if key.kind in WORKLOADS and named.namespace in ("", key.namespace):
                rest = named.name.removeprefix(key.name)
                if rest != named.name and re.fullmatch(_GENERATED_NAME, rest):
                    return key
        return None

    def check_nodes(self, chosen: Iterable[tuple[NodeSelection, str]]) -> None:
        """Check that every choice is of some node."""
        for choice, path in chosen:
            labels = self._known.nodes
            if choice.name:
                if choice.name not in labels:
                    self.fault(path, f"there is no node {choice.name}{nearest(choice.name, labels)}")
                continue
            values = {found[choice.key] for found in labels.values() if choice.key in found}
            if not values:
                keys = {key for found in labels.values() for key in found}
                self.fault(path, f"no node has the label {choice.key}{nearest(choice.key, keys)}")
            elif choice.value not in values:
                self.fault(path, f"no node has {choice}{nearest(choice.value, values)}")

    # Actions

    def _action(self, action: Action) -> Action:
        match action:
            case NodeAction():
                self.check_nodes(action.nodes)
            case TaintNodes():
                self.check_nodes((node, path) for node, path, _ in action.nodes)
            case Scale():
                found = tuple((self.workload(one, SCALED), n) for one, n in action.replicas)
                return msgspec.structs.replace(action, replicas=found)
            case Restart():
                return msgspec.structs.replace(
                    action, workloads=tuple(self.workload(one, RESTARTED) for one in action.workloads)
                )
            case Load():
                return msgspec.structs.replace(
                    action, curves=tuple((self._autoscaled(one), curve) for one, curve in action.curves)
                )
            case Apply():
                self._apply(action)
            case Delete():
                objects = tuple(self._object(one) for one in action.objects)
                for one in objects:
                    self._known.remove(one.key)
                return msgspec.structs.replace(action, objects=objects)
            case Relabel():
                return msgspec.structs.replace(
                    action, objects=tuple((self._object(one), labels) for one, labels in action.objects)
                )
            case _:
                pass
        return action

    def _autoscaled(self, named: Named) -> Named:
        found = self.workload(named, SCALED)
        if found.key.name and found.key not in self._known.autoscaled.values():
            name = f"{found.key.kind} {found.key.namespace}/{found.key.name}"
            self.fault(named.path, f"no HorizontalPodAutoscaler scales {name}, so a load changes nothing")
        return found

    def _apply(self, action: Apply) -> None:
        for one in action.objects:
            if one.decoded.kind not in APPLIED:
                self.fault(action.path, f"a {one.decoded.kind} has no effect in a simulation")
            self._known.add(one.decoded)

    # Expectations

    def _expectation(self, one: Expectation, step: Step) -> Expectation:
        timeline, passed = self._timeline, step.until if step.until is not None else step.at
        if one.longer_than is not None and one.longer_than >= passed:
            only = f"only {written_duration(passed)} have passed by then"
            self.fault(f"{one.path}.longerThan", f"it can never be judged: {only}")
        if one.subject == "violations" and not self._known.has_execution_rules:
            self.fault(one.path, "it can never be judged: no pod has a rule that holds during execution")
        if one.subject == "moves" and not self._rebalances:
            self.fault(one.path, "it can never be judged: nothing moves pods without the verb rebalance")
        if one.cause == "enforcement" and timeline.enforcement is None:
            self.fault(f"{one.path}.cause", "it can never be judged: the timeline enforces no rules (`enforcement`)")
        if one.domain_key and not any(one.domain_key in labels for labels in self._known.nodes.values()):
            keys = {key for labels in self._known.nodes.values() for key in labels}
            near = nearest(one.domain_key, keys)
            self.fault(f"{one.path}.inEvery", f"it can never be judged: no node has {one.domain_key}{near}")
        return one if one.of is None else msgspec.structs.replace(one, of=self.workload(one.of, WORKLOADS))


def nodes_of(choice: NodeSelection, nodes: Iterable[Any]) -> list[str]:
    """The names of the nodes that are chosen."""
    return [
        node.metadata.name
        for node in nodes
        if (node.metadata.name == choice.name if choice.name else _has_label(node, choice))
    ]


def _has_label(node: Any, choice: NodeSelection) -> bool:
    return (node.metadata.labels or {}).get(choice.key) == choice.value
