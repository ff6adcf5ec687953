"""
Groups of pods that can replace each other: the replicas of one owner, the pods that one disruption budget counts.

Knows nothing of failures, nor of other nodes for the pods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from bayplan.auditing.audit_input import AuditInput
from bayplan.auditing.layout import ComponentInstance, Layout
from bayplan.auditing.survivability import InstanceGroup, majority
from bayplan.controllers.scaled_values import scaled
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import WorkloadKey
from bayplan.wire import kinds
from bayplan.wire.meta import OwnerReference
from bayplan.wire.observed import ObservedPod, ObservedPodSpec

AUDIT_ANNOTATION = (
    "bayplan.io/audit"  # on a pod: `ignore` leaves its workload out, `quorum` asks for a majority of its replicas
)
IGNORE, QUORUM = "ignore", "quorum"
OWNER, BUDGET = "owner", "budget"
_REPLICATED = frozenset(row.kind for row in kinds.having(kinds.Trait.SPREADS))
# Pods of these owners are not recreated on another node.
_BOUND_TO_NODE = frozenset({"DaemonSet", "Node"})
_MIRROR = "kubernetes.io/config.mirror"

_LookupKey = tuple[str, str, str]  # namespace, and the key and value of a label or two empty strings


class ReplicaGroup(msgspec.Struct, frozen=True):
    """A group and the workloads that are its members, in the same order; `source` is the origin of its need."""

    group: InstanceGroup
    keys: tuple[WorkloadKey, ...]
    namespace: str = ""
    source: str = OWNER


class ReplicaPreferences(msgspec.Struct, frozen=True):
    """Which workloads to exclude, and which need a majority, by patterns on `namespace/name` of the owner."""

    excluded: re.Pattern[str] | None = None
    quorum: re.Pattern[str] | None = None


NO_PREFERENCES = ReplicaPreferences()


def key_of(pod: ObservedPod) -> WorkloadKey:
    return WorkloadKey(f"{pod.metadata.namespace or 'default'}/{pod.metadata.name}")


def occupies_node(pod: ObservedPod) -> bool:
    """Whether it occupies a node."""
    return bool(pod.spec.node_name) and pod.status.phase not in ("Succeeded", "Failed")


def owner_of(pod: ObservedPod) -> OwnerReference | None:
    """
    The controller that recreates the pod; None if it has none.

    A Deployment is recognised by its ReplicaSet's name, which ends in the hash that the pod has as a label.
    """
    owner = next((owner for owner in pod.metadata.owner_references or () if owner.controller is not False), None)
    template = (pod.metadata.labels or {}).get("pod-template-hash")
    if owner is not None and owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}"):
        return OwnerReference(
            api_version="apps/v1", kind="Deployment", name=owner.name.removesuffix(f"-{template}"), controller=True
        )
    return owner


def is_lost_with_its_node(pod: ObservedPod) -> bool:
    """Whether it is not recreated on another node: mirror pods, pods of DaemonSets, pods without an owner."""
    owner = owner_of(pod)
    return owner is None or owner.kind in _BOUND_TO_NODE or _MIRROR in (pod.metadata.annotations or {})


def by_owner(
    pods: Iterable[ObservedPod], preferences: ReplicaPreferences = NO_PREFERENCES
) -> dict[str, list[ObservedPod]]:
    """
    The running pods of every owner whose replicas can replace each other, by `Deployment shop/web`.

    Pods of DaemonSets and Jobs, mirror pods and bare pods are not replicas of each other.
    """
    found: dict[str, list[ObservedPod]] = {}
    for pod in pods:
        owner = next((owner for owner in pod.metadata.owner_references or () if owner.controller is not False), None)
        if owner is None or owner.kind not in _REPLICATED or not occupies_node(pod):
            continue
        named = owner_of(pod) or owner
        path = f"{pod.metadata.namespace or 'default'}/{named.name}"
        ignored = (pod.metadata.annotations or {}).get(AUDIT_ANNOTATION) == IGNORE
        if ignored or (preferences.excluded is not None and preferences.excluded.fullmatch(path)):
            continue
        found.setdefault(f"{named.kind} {path}", []).append(pod)
    return found


def owner_groups(
    owned: Mapping[str, Sequence[ObservedPod]], ready: Mapping[str, bool], preferences: ReplicaPreferences
) -> list[ReplicaGroup]:
    """Each owner's replicas, of which one or a majority must remain. `ready` says which nodes are ready."""
    found = []
    for name, pods in sorted(owned.items()):
        path = name.partition(" ")[2]
        marked = any((pod.metadata.annotations or {}).get(AUDIT_ANNOTATION) == QUORUM for pod in pods)
        quorum = marked or (preferences.quorum is not None and preferences.quorum.fullmatch(path) is not None)
        found.append(_replica_group(name, pods, ready, majority(len(pods)) if quorum else 1, OWNER))
    return found


def budget_groups(
    pods: Iterable[ObservedPod], budgets: Sequence[DisruptionBudget], ready: Mapping[str, bool]
) -> list[ReplicaGroup]:
    """Each budget with the running pods that it counts; a budget that counts none is left out."""
    by_key: dict[_LookupKey, list[ObservedPod]] = {}
    used = {_lookup_key(budget) for budget in budgets}
    for pod in pods:
        if occupies_node(pod):
            namespace = pod.metadata.namespace or "default"
            for key in ((namespace, "", ""), *((namespace, *label) for label in (pod.metadata.labels or {}).items())):
                if key in used:
                    by_key.setdefault(key, []).append(pod)
    found = []
    for budget in budgets:
        # For the disruption controller an empty selector selects everything, unlike for the scheduler; null nothing.
        counted = [
            pod
            for pod in by_key.get(_lookup_key(budget), ())
            if budget.selector is not None and budget.selector.matches(pod.metadata.labels or {})
        ]
        if counted:
            name = f"PodDisruptionBudget {budget.namespace}/{budget.name}"
            found.append(_replica_group(name, counted, ready, need_of(budget, len(counted)), BUDGET))
    return found


def _lookup_key(budget: DisruptionBudget) -> _LookupKey:
    """Where to look up its pods: the namespace, and a label that all of them must have, if there is one."""
    for requirement in budget.selector.requirements if budget.selector is not None else ():
        if requirement.operator == "In" and len(requirement.values) == 1:
            return budget.namespace, requirement.key, requirement.values[0]
    return budget.namespace, "", ""


def _replica_group(
    name: str, pods: Sequence[ObservedPod], ready: Mapping[str, bool], need: int, source: str
) -> ReplicaGroup:
    ordered = sorted(pods, key=key_of)
    members = tuple(
        ComponentInstance(pod.spec.node_name, _healthy(pod) and ready.get(pod.spec.node_name, False)) for pod in ordered
    )
    group = InstanceGroup(name, members, at_least=need)
    return ReplicaGroup(group, tuple(map(key_of, ordered)), ordered[0].metadata.namespace or "default", source)


def _healthy(pod: ObservedPod) -> bool:
    conditions = pod.status.conditions or ()
    return pod.metadata.deletion_timestamp is None and all(c.status == "True" for c in conditions if c.type == "Ready")


def need_of(budget: DisruptionBudget, n: int) -> int:
    """How many of its n pods must be healthy; percentages are rounded up, as in the disruption controller."""
    expected = max(n, budget.expected)
    if budget.max_unavailable is not None:
        return max(expected - scaled(budget.max_unavailable, expected, up=True), 0)
    return 0 if budget.min_available is None else scaled(budget.min_available, expected, up=True)


class Workloads(msgspec.Struct, frozen=True, kw_only=True):
    """
    The workloads of the input: replicas by owner and by budget, and the pods that are lost with their node.

    `unspread` are the Deployments and StatefulSets of several replicas that have neither anti-affinity nor spread
    constraints.
    """

    owners: tuple[ReplicaGroup, ...] = ()
    budgets: tuple[ReplicaGroup, ...] = ()
    lost_with_node: frozenset[WorkloadKey] = frozenset()
    unspread: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[ReplicaGroup, ...]:
        return (*self.owners, *self.budgets)


def workloads_of(
    given: AuditInput, layout: Layout, preferences: ReplicaPreferences = NO_PREFERENCES
) -> Workloads | None:
    """The workloads of the input; None where it has no pods."""
    if given.pods is None:
        return None
    ready = {node.name: node.ready for node in layout.nodes}
    owned = by_owner(given.pods, preferences)
    return Workloads(
        owners=tuple(owner_groups(owned, ready, preferences)),
        budgets=tuple(budget_groups(given.pods, given.budgets, ready)),
        lost_with_node=frozenset(
            key_of(pod) for pod in given.pods if occupies_node(pod) and is_lost_with_its_node(pod)
        ),
        unspread=tuple(sorted(_unspread(given, owned, preferences))),
    )


def _unspread(
    given: AuditInput, owned: Mapping[str, Sequence[ObservedPod]], preferences: ReplicaPreferences
) -> Iterator[str]:
    """By the pod template of controllers that are in the input, else by their pods."""
    seen = set()
    for one in given.controllers:
        path = f"{one.metadata.namespace or 'default'}/{one.metadata.name}"
        name = f"{one.kind} {path}"
        seen.add(name)
        excluded = preferences.excluded is not None and preferences.excluded.fullmatch(path)
        if (one.spec.replicas or 1) > 1 and not excluded and not _has_spreading(one.spec.template.spec):
            yield name
    for name, pods in owned.items():
        checked = name.startswith(("Deployment ", "StatefulSet "))
        if name not in seen and checked and len(pods) > 1 and not _has_spreading(pods[0].spec):
            yield name


def _has_spreading(spec: ObservedPodSpec) -> bool:
    anti_affinity = spec.affinity is not None and spec.affinity.pod_anti_affinity
    return bool(anti_affinity or spec.topology_spread_constraints)


def by_namespace(names: Iterable[str]) -> dict[str, list[str]]:
    """Names such as `Deployment shop/web` by namespace, both sorted."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(name.partition(" ")[2].partition("/")[0], []).append(name)
    return dict(sorted(found.items()))
