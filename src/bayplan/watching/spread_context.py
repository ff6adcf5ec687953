"""
Services and controllers as they come and go: what the selector of default spread constraints is made from.

A pending pod is read with those there are; `generation` says whether it must be read again.
"""

from __future__ import annotations

from bayplan.mapping.pods import DEFAULT_NAMESPACE, SpreadContext
from bayplan.model.labels import Selector
from bayplan.wire.controllers import Service


class LiveSpreadContext:
    """`current` is for reading pods; `generation` moves with every change that could matter to them."""

    def __init__(self) -> None:
        self.current = SpreadContext(services={}, controllers={}, priorities={})
        self.generation = 0

    def put_service(self, service: Service) -> None:
        before = self._take_service(service.metadata.namespace or DEFAULT_NAMESPACE, service.metadata.name)
        self.current.add_service(service)
        self.generation += (before.spec.selector if before else None) != service.spec.selector

    def drop_service(self, namespace: str, name: str) -> None:
        self.generation += self._take_service(namespace, name) is not None

    def put_controller(self, kind: str, namespace: str, name: str, selector: Selector | None) -> None:
        """A ReplicaSet, StatefulSet or ReplicationController and whom it selects; None takes it away."""
        key = (kind, namespace, name)
        before = self.current.controllers.pop(key, None)
        if selector is not None:
            self.current.controllers[key] = selector
        self.generation += selector != before

    def _take_service(self, namespace: str, name: str) -> Service | None:
        here = self.current.services.get(namespace, [])
        found = next((service for service in here if service.metadata.name == name), None)
        if found is not None:
            here.remove(found)
        return found
