"""
NodeVolumeLimits: a storage driver attaches only so many volumes to a node.

A volume that several pods of a node use is attached once. Volumes that are attached for nobody any more are not
counted: only VolumeAttachments tell of them, and they go by themselves.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from bayplan.indexing.evaluations import Touched
from bayplan.indexing.journal import Change
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.decisions import Codes, Reason, Status
from bayplan.model.workloads import Workload
from bayplan.rules.claims import ClaimRule, Part, has_claims
from bayplan.rules.rule import Failure

TOO_MANY = Reason("volume-limits", "node(s) exceed max volume count", Status.UNSCHEDULABLE)

Handles = defaultdict[str, set[str]]  # driver → what it knows its volumes by


class VolumeLimits(ClaimRule):
    name = "NodeVolumeLimits"
    id = "volume-limits"

    def reject(self, plan: Part, index: PlacementIndex, at: At) -> Codes | None:
        wanted = _handles(plan, index)
        if not wanted or not index.storage.attach_limits:
            return None
        codes = np.zeros(index.slots.capacity, np.int64)
        for slot in self._crowded(wanted, index):
            codes[slot] = 1
        return codes[at]

    def touched(self, plan: Part, change: Change, index: PlacementIndex) -> Touched:
        if change.workload is not None and has_claims(change.workload):
            return change.slots
        return super().touched(plan, change, index)

    def reasons(self, plan: Part, code: int) -> tuple[Reason, ...]:
        del plan, code
        return (TOO_MANY,)

    def evidence(self, plan: Part, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        limits = index.storage.attach_limits[index.slots.at(slot).name]
        there = _attached(slot, index)
        found = []
        for driver, handles in _handles(plan, index).items():
            if driver in limits and len(there[driver] | handles) > limits[driver]:
                detail = f"{driver} attaches {limits[driver]} volumes at most, and {len(there[driver])} are there"
                found.append(Failure(self.id, TOO_MANY.text, detail=detail, term=driver))
        return found

    def _crowded(self, wanted: Handles, index: PlacementIndex) -> list[int]:
        found = []
        for node, limits in index.storage.attach_limits.items():
            slot = index.slots.by_name.get(node)
            drivers = [driver for driver in wanted if driver in limits]
            if slot is None or not drivers:
                continue
            there = _attached(slot, index)
            new = {driver: wanted[driver] - there[driver] for driver in drivers}
            if any(new[driver] and len(there[driver]) + len(new[driver]) > limits[driver] for driver in drivers):
                found.append(slot)
        return found


def sharing(plan: Part, index: PlacementIndex) -> list[int]:
    """The limited targets where some of these volumes are attached for others, who by going may make matters worse."""
    wanted = _handles(plan, index)
    limited = (slot for node in index.storage.attach_limits if (slot := index.slots.by_name.get(node)) is not None)
    return [slot for slot in limited if any(wanted[driver] & there for driver, there in _attached(slot, index).items())]


def _attached(slot: int, index: PlacementIndex) -> Handles:
    """The volumes of the pods on a node, by driver."""
    found: Handles = defaultdict(set)
    for key in index.claim_users.on_slot(slot):
        workload = index.records[key].workload
        for driver, handles in _handles(Part(workload.namespace, workload.needs.claims), index).items():
            found[driver] |= handles
    return found


def _handles(part: Part, index: PlacementIndex) -> Handles:
    """What would be attached for the claims, by driver; a volume that is yet to be made goes by its claim's name."""
    found: Handles = defaultdict(set)
    for claim in part.known(index):
        volume = index.storage.volumes.get(claim.volume)
        if volume is not None:
            if volume.driver:
                found[volume.driver].add(volume.handle)
            continue
        storage_class = index.storage.classes.get(claim.storage_class)
        if storage_class is not None and storage_class.provisioner:
            found[storage_class.provisioner].add(claim.key)
    return found
