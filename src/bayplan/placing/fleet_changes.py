"""What scheduling changes in a fleet: where each binding was, where it will be, in which tiers and by which policy."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from bayplan.assigning import unmet_spread
from bayplan.controllers.binding_triggers import APPLIED_PLACEMENT
from bayplan.controllers.desired_state import ObjectKey
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings
from bayplan.model.bindings import UNKNOWN_LABELS
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing.place_bindings import BindingPlacement, Shares
from bayplan.rules.cluster_affinity import tier_by_target
from bayplan.wire.fleets import ResourceBinding, TargetCluster

ABANDONED = "Evicted"


class BindingChange(msgspec.Struct, frozen=True):
    """
    One binding before and after.

    `tiers` are those of its clusters by name, of a placement with several tiers; `policy` is None if not known.
    `unmet` says which spread constraints the result does not meet.
    """

    placement: BindingPlacement
    was: Shares
    policy: ObjectKey | None
    tiers: Mapping[str, int]
    of_change: bool = True
    unmet: tuple[str, ...] = ()

    @property
    def is_unchanged(self) -> bool:
        """Whether it is placed, and where it was before."""
        return self.placement.placed and bool(self.was) and set(self.was) == set(self.placement.shares)


class Origins(msgspec.Struct, frozen=True):
    """Where bindings were, their policies, and which of them the change concerns; None: all."""

    was: Mapping[WorkloadKey, Shares]
    policies: Mapping[WorkloadKey, ObjectKey]
    change: Collection[WorkloadKey] | None = None

    def change_of(self, placement: BindingPlacement, index: PlacementIndex) -> BindingChange:
        """The placement beside what was before it."""
        key = placement.workload.key
        of_change = self.change is None or key in self.change
        binding = placement.workload.binding
        assert binding is not None
        names = [name for name, _ in placement.shares] if placement.placed else []
        return BindingChange(
            placement,
            self.was.get(key, ()),
            self.policies.get(key),
            tiers_of(placement, index),
            of_change,
            tuple(unmet_spread.unmet(binding.placement.spread, names, index)),
        )

    def abandoned(self, workload: Workload, why: str) -> BindingChange:
        """A binding that is evicted and not scheduled again, with what is left of it."""
        binding = workload.binding
        assert binding is not None
        message = f"evicted, and not scheduled again, because {why}"
        placement = BindingPlacement(workload, False, binding.previous, binding.observed, ABANDONED, message)
        of_change = self.change is None or workload.key in self.change
        return BindingChange(
            placement, self.was.get(workload.key, ()), self.policies.get(workload.key), {}, of_change=of_change
        )

    def unplaced(self, workload: Workload) -> BindingChange:
        """A workload that is not scheduled, where it was."""
        was = self.was.get(workload.key, ())
        return BindingChange(BindingPlacement(workload, True, was), was, self.policies.get(workload.key), {})


def tiers_of(placement: BindingPlacement, index: PlacementIndex) -> dict[str, int]:
    """The tier of each cluster that the binding is placed on; empty if its group has a single tier."""
    binding = placement.workload.binding
    assert binding is not None
    groups = [group for group in binding.placement.groups if group.name == placement.group]
    if not groups or len(groups[0].tiers) < 2:
        return {}
    tiers = tier_by_target(groups[0].tiers, index)
    slots = index.slots.by_name
    return {name: int(tiers[slots[name]]) for name, _ in placement.shares if name in slots}


def scheduled(binding: ResourceBinding, placement: BindingPlacement) -> ResourceBinding:
    """The binding as the scheduler leaves it: with its clusters, and with the placement that they are the result of."""
    clusters = [TargetCluster(name=name, replicas=replicas) for name, replicas in placement.shares]
    meta, status = binding.metadata, binding.status
    annotations = dict(meta.annotations or {})
    if placement.placed or not clusters:
        annotations[APPLIED_PLACEMENT] = msgspec.json.encode(binding.spec.placement or {}).decode()
    if placement.placed:
        status = msgspec.structs.replace(status, scheduler_observing_affinity_name=placement.group)
    return msgspec.structs.replace(
        binding,
        metadata=msgspec.structs.replace(meta, annotations=annotations),
        spec=msgspec.structs.replace(binding.spec, clusters=clusters),
        status=status,
    )


def with_report(binding: ResourceBinding, was: Shares) -> ResourceBinding:
    """The binding with what clusters report of it, if that is not what it says: `was`, if nothing else is written."""
    reported = bindings.reported_shares(binding)
    reported = dict(was) if reported is None else reported
    annotations = dict(binding.metadata.annotations or {})
    annotations.pop(bindings.REPORTED_ANNOTATION, None)
    if reported != dict(bindings.shares_of(binding)):
        annotations[bindings.REPORTED_ANNOTATION] = msgspec.json.encode(reported, order="sorted").decode()
    metadata = msgspec.structs.replace(binding.metadata, annotations=annotations)
    return msgspec.structs.replace(binding, metadata=metadata)


def with_labels(binding: ResourceBinding, workload: Workload) -> ResourceBinding:
    """The binding with the labels of its template, if they are known: then it can be read without the template."""
    if UNKNOWN_LABELS in workload.labels:
        return binding
    labels = {key: value for key, value in workload.labels.items() if not key.startswith("\0")}
    annotations = dict(binding.metadata.annotations or {})
    annotations[bindings.LABELS_ANNOTATION] = msgspec.json.encode(labels).decode()
    return msgspec.structs.replace(binding, metadata=msgspec.structs.replace(binding.metadata, annotations=annotations))
