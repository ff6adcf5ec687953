"""Volumes, claims and storage classes by name. Knows nothing of which pods use them."""

from __future__ import annotations

from typing import Any

from bayplan.model.volumes import AvailableSpace, Claim, StorageClass, Volume


class Storage:
    """Claims by `namespace/name`, volumes and classes by name."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.attach_limits: dict[str, dict[str, int]] = {}  # node → driver → volumes at most
        self.metering_drivers: dict[str, bool] = {}  # those that tell what space they have left
        self.space: dict[str, AvailableSpace] = {}

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        return {
            "claims": self.claims,
            "volumes": self.volumes,
            "classes": self.classes,
            "attach_limits": self.attach_limits,
            "metering_drivers": self.metering_drivers,
            "space": self.space,
        }

    def volumes_of_class(self, storage_class: str) -> list[Volume]:
        """In the order of their names, so that the choice among equals never depends on the input's order."""
        return sorted((v for v in self.volumes.values() if v.storage_class == storage_class), key=lambda v: v.name)
