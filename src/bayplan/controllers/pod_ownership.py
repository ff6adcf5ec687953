"""Which pods the input holds and whose they are, in as few bytes as controllers need to know who is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from bayplan.mapping import selectors
from bayplan.model import labels as label_model
from bayplan.wire import meta, pods
from bayplan.wire.controllers import AnyController, Controller, ReplicationController

_NAME_FIELD = "metadata.name"
SUCCEEDED = "Succeeded"
FINISHED = (SUCCEEDED, "Failed")
INDEX_KEY = "batch.kubernetes.io/job-completion-index"


class PodEntry(msgspec.Struct, frozen=True, gc=False):
    """One pod. `node` is where a DaemonSet's pod runs or must run, `index` which part of a Job a pod does."""

    name: str
    owner_uid: str = ""
    active: bool = True
    succeeded: bool = False
    node: str = ""
    index: str = ""


class PodInventory(msgspec.Struct):
    """Pods by their controller (namespace, kind, name), those without one by namespace with their labels."""

    owned: dict[tuple[str, str, str], list[PodEntry]] = msgspec.field(default_factory=dict)
    orphans: dict[str, list[tuple[dict[str, str], PodEntry]]] = msgspec.field(default_factory=dict)
    names: set[str] = msgspec.field(default_factory=set)

    def add(self, pod: pods.Pod) -> None:
        """Note one pod, whose namespace is settled."""
        namespace = pod.metadata.namespace
        self.names.add(f"{namespace}/{pod.metadata.name}")
        owner = controller_of(pod.metadata)
        member = _member(pod, owner)
        if owner is None:
            self.orphans.setdefault(namespace, []).append((pod.metadata.labels or {}, member))
        else:
            self.owned.setdefault((namespace, owner.kind, owner.name), []).append(member)


def controller_of(metadata: meta.ObjectMeta) -> meta.OwnerReference | None:
    """The owner that manages the object, as `metav1.GetControllerOf`."""
    for owner in metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


def _member(pod: pods.Pod, owner: meta.OwnerReference | None) -> PodEntry:
    phase = pod.status.phase
    return PodEntry(
        name=pod.metadata.name,
        owner_uid=owner.uid if owner else "",
        active=phase not in FINISHED and pod.metadata.deletion_timestamp is None,
        succeeded=phase == SUCCEEDED,
        node=_bound_for(pod) if owner is None or owner.kind == "DaemonSet" else "",
        index=_index(pod.metadata),
    )


def _bound_for(pod: pods.Pod) -> str:
    """The node a daemon's pod is on, or the only one it may go to."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in (required.node_selector_terms if required else None) or ():
        for field in term.match_fields or ():
            if field.key == _NAME_FIELD and field.values:
                return pod.spec.node_name or field.values[0]
    return pod.spec.node_name


def _index(metadata: meta.ObjectMeta) -> str:
    for marks in (metadata.labels, metadata.annotations):
        if marks and INDEX_KEY in marks:
            return marks[INDEX_KEY]
    return ""


# RF merged from reading.staff: Which of the pods in the input belong to which controller. Makes nothing.


class PodOwnership:
    """Looks pods up by their owner reference, else by selector; a pod without an owner serves one controller only."""

    def __init__(self, inventory: PodInventory, replica_sets: Iterable[AnyController]) -> None:
        self._inventory = inventory
        self._adopted_pods: set[tuple[str, str]] = set()
        self._replica_sets = [s for s in replica_sets if isinstance(s, Controller)]
        self._known_sets = {(s.metadata.namespace, s.metadata.name) for s in self._replica_sets}
        self._strays = self._stray_sets()

    def members(self, controller: AnyController) -> list[PodEntry]:
        """The controller's own pods, finished ones included, and those without an owner that it would adopt."""
        meta = controller.metadata
        owned = self._inventory.owned.get((meta.namespace, controller.kind, meta.name), ())
        return [m for m in owned if _same(m.owner_uid, meta.uid)] + list(self._adopted(controller))

    def members_by_set(self, deployment: Controller) -> dict[str, list[PodEntry]]:
        """The Deployment's pods by ReplicaSet where that is not in the input; those of none under ""."""
        meta = deployment.metadata
        found = {
            name: self._inventory.owned[meta.namespace, "ReplicaSet", name]
            for name in self._strays.get((meta.namespace, meta.name), ())
        }
        return {**found, "": list(self._adopted(deployment))}

    def replica_sets(self, deployment: Controller) -> list[Controller]:
        """The ReplicaSets in the input that are the Deployment's, by owner, else by selector."""
        return [candidate for candidate in self._replica_sets if self._serves(candidate, deployment)]

    def _serves(self, candidate: Controller, deployment: Controller) -> bool:
        meta = deployment.metadata
        if candidate.metadata.namespace != meta.namespace:
            return False
        owner = controller_of(candidate.metadata)
        if owner is not None:
            return owner.kind == "Deployment" and owner.name == meta.name and _same(owner.uid, meta.uid)
        labels = candidate.spec.template.metadata.labels or {}
        return label_model.matches(selector_of(deployment), labels)

    def _adopted(self, controller: AnyController) -> Iterator[PodEntry]:
        selector = selector_of(controller)
        namespace = controller.metadata.namespace
        for labels, member in self._inventory.orphans.get(namespace, ()):
            if (namespace, member.name) not in self._adopted_pods and label_model.matches(selector, labels):
                self._adopted_pods.add((namespace, member.name))
                yield member

    def _stray_sets(self) -> dict[tuple[str, str], list[str]]:
        """Names of ReplicaSets that only their pods mention, by the Deployment that such a name comes from."""
        found: dict[tuple[str, str], list[str]] = {}
        for namespace, kind, name in self._inventory.owned:
            if kind == "ReplicaSet" and (namespace, name) not in self._known_sets:
                found.setdefault((namespace, name.rpartition("-")[0]), []).append(name)
        return found


def selector_of(controller: AnyController) -> label_model.Selector | None:
    """Which pods the controller would adopt; None (nobody) where it says nothing."""
    if isinstance(controller, ReplicationController):
        chosen = controller.spec.selector or controller.spec.template.metadata.labels
        return label_model.equals(chosen) if chosen else None
    return selectors.selector_of(controller.spec.selector)


def _same(one: str, other: str) -> bool:
    """Whether two uids may be of one object: hand-written objects have none."""
    return not one or not other or one == other
