"""Which of the pods in the input belong to which controller. Makes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.model import labels as label_model
from bayplan.reading import selectors
from bayplan.reading.census import Census, Member, controller_of
from bayplan.reading.inputs import AnyController, Inputs
from bayplan.wire.controllers import Controller, ReplicationController


class Staff:
    """Looks pods up by their owner reference, else by selector; a pod without an owner serves one controller only."""

    def __init__(self, inputs: Inputs) -> None:
        self._census: Census = inputs.census
        self._hired: set[tuple[str, str]] = set()
        self._replica_sets = [s for s in inputs.controllers["ReplicaSet"] if isinstance(s, Controller)]
        self._known_sets = {(s.metadata.namespace, s.metadata.name) for s in self._replica_sets}
        self._strays = self._stray_sets()

    def members(self, controller: AnyController) -> list[Member]:
        """The controller's own pods, finished ones included, and those without an owner that it would adopt."""
        meta = controller.metadata
        owned = self._census.owned.get((meta.namespace, controller.kind, meta.name), ())
        return [m for m in owned if _same(m.owner_uid, meta.uid)] + list(self._adopted(controller))

    def members_by_set(self, deployment: Controller) -> dict[str, list[Member]]:
        """The Deployment's pods by ReplicaSet where that is not in the input; those of none under ""."""
        meta = deployment.metadata
        found = {
            name: self._census.owned[meta.namespace, "ReplicaSet", name]
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

    def _adopted(self, controller: AnyController) -> Iterator[Member]:
        selector = selector_of(controller)
        namespace = controller.metadata.namespace
        for labels, member in self._census.orphans.get(namespace, ()):
            if (namespace, member.name) not in self._hired and label_model.matches(selector, labels):
                self._hired.add((namespace, member.name))
                yield member

    def _stray_sets(self) -> dict[tuple[str, str], list[str]]:
        """Names of ReplicaSets that only their pods mention, by the Deployment that such a name comes from."""
        found: dict[tuple[str, str], list[str]] = {}
        for namespace, kind, name in self._census.owned:
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
