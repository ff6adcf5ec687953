"""
The placement index: everything that a decision reads, kept correct change by change; every change can be undone.

One thread owns it. It makes no decision; rules read it through the attributes below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from bayplan.errors import InputError
from bayplan.indexing.capacity import Capacity, ClaimUsers, ClusterCapacity, HeldImages, Ports
from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.column_table import ColumnTable
from bayplan.indexing.journal import Change, ChangeType, Journal
from bayplan.indexing.peer_index import PeerIndex
from bayplan.indexing.pod_table import PodTable
from bayplan.indexing.slots import TAINTS, TargetSlots
from bayplan.indexing.storage import Attachments, Storage
from bayplan.indexing.taints import TaintTable
from bayplan.model.labels import Labels
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.targets import Target
from bayplan.model.terms import ZONE
from bayplan.model.volumes import Claim, StorageClass, Volume
from bayplan.model.workloads import Workload, WorkloadKey


class PlacementIndex:
    """Which workload is on which target. The methods change it; the parts are for reading only."""

    def __init__(self, semantics: Semantics = UPSTREAM, seed: str = "", *, lost_targets_count: bool = False) -> None:
        """`lost_targets_count`: a workload on unknown targets alone still counts as placed."""
        self.configured_semantics = semantics
        self.semantics = semantics  # with default topology keys: those configured, else all label keys of the targets
        self._follows_label_keys = semantics.empty_topology_key_means_any and not semantics.default_topology_keys
        self.lost_targets_count = lost_targets_count
        self.slots = TargetSlots(seed)
        self.capacity = Capacity(self.slots.capacity)
        self.cluster_capacity = ClusterCapacity(self.slots.capacity)
        self.ports = Ports()
        self.images = HeldImages()
        self.claim_users = ClaimUsers()
        self.storage = Storage()
        self.journal = Journal()
        self.targets_generation = 0  # changes with every change of a target, except of a cluster's capacity
        self._columns = ColumnTable(self.slots)
        self.column = self._columns.get
        self.taints = TaintTable(self.column(TAINTS))  # nearly every workload needs it
        self._zones = self.column(ZONE)  # in nearly every cluster, so that no decision has to wait for it
        self.peer_index = PeerIndex(semantics, self.column)
        self._on_slot: defaultdict[int, set[WorkloadKey]] = defaultdict(set)
        self._on_unknown: defaultdict[str, set[WorkloadKey]] = defaultdict(set)
        self._pod_table: PodTable | None = None
        self._attachments: Attachments | None = None

    # Reading

    @property
    def records(self) -> dict[WorkloadKey, PlacedWorkload]:
        return self.peer_index.records

    @property
    def pod_table(self) -> PodTable:
        """The placed workloads by priority and age, kept up to date from the first use on."""
        if self._pod_table is None:
            self._pod_table = PodTable(self.slots.seed, self.semantics.kubernetes_version)
            self.peer_index.moved = self._pod_table.reclassify
            for record in self.records.values():
                if record.member_of is not None:
                    self._pod_table.add(record, self.capacity)
        return self._pod_table

    @property
    def attachments(self) -> Attachments:
        """The volumes attached to each target, kept up to date from the first use on."""
        if self._attachments is None:
            self._attachments = Attachments(self.storage, self.slots)
            for record in self.records.values():
                if record.member_of is not None:
                    self._attachments.add(record.workload, record.slots, +1)
        return self._attachments

    @property
    def has_lost_workloads(self) -> bool:
        """Whether any workload is on an unknown target."""
        return bool(self._on_unknown)

    def workloads_on(self, slot: int) -> list[WorkloadKey]:
        return sorted(self._on_slot.get(slot, ()))

    # Targets

    def add_target(self, target: Target) -> int:
        """Give a target a slot; workloads that are placed on a target of this name are counted on it."""
        if target.name in self.slots.by_name:
            raise InputError(f"target {target.name} exists already")
        if not self.slots.free:
            self._grow()
        slot = self.slots.put(target)
        self._put(slot, target)
        self._columns.put(slot, target)
        if self._attachments is not None:
            self._attachments.target_changed(target.name, slot)
        self.journal.append(Change(ChangeType.TARGET_ADDED, (slot,), target=target))
        if self._follows_label_keys:
            self._renew_default_keys()
        for key in sorted(self._on_unknown.pop(target.name, ())):
            self._recount(self.records[key])
        return slot

    def remove_target(self, name: str) -> None:
        """Free the slot; workloads on it stay in the index and count again when a target of this name is added."""
        slot = self.slots.by_name[name]
        target = self.slots.at(slot)
        for key in self.workloads_on(slot):
            self._on_unknown[name].add(key)
            self._recount(self.records[key], without=slot)
        self._clear(slot, target)
        self._columns.clear(slot, target)
        self.targets_generation += 1
        self.slots.clear(slot)
        if self._attachments is not None:
            self._attachments.target_changed(name, slot)
        self.journal.append(Change(ChangeType.TARGET_REMOVED, (slot,), target=target))
        if self._follows_label_keys:
            self._renew_default_keys()

    def update_target(self, target: Target) -> None:
        """Replace a target; the workloads on it stay."""
        slot = self.slots.by_name[target.name]
        before = self.slots.at(slot)
        if before == target:
            return
        self.slots.targets[slot] = target
        change = Change(ChangeType.TARGET_CHANGED, (slot,), target=target, before=before)
        if before.differs_only_in_capacity(target):  # reported all the time, and read by few rules
            self.cluster_capacity.clear(slot)
            if target.cluster is not None:
                self.cluster_capacity.put(slot, target.cluster)
            self.journal.append(change)
            return
        # Its workloads are removed from the old domains before the columns change and added to the new ones after.
        moved = [self.records[key] for key in self.workloads_on(slot)] if change.moves_domains else []
        for record in moved:
            self._uncount(record, follows=True)
        self._clear(slot, before)
        self._put(slot, target)
        self._columns.replace(slot, before, target)
        self.journal.append(change)
        for record in moved:
            self._count(record, follows=True)
        if self._follows_label_keys:
            self._renew_default_keys()

    # Workloads

    def add(self, workload: Workload, *targets: str) -> None:
        """Place a workload on one or several targets, known or not yet known."""
        shares = ((targets[0], 1),) if len(targets) == 1 else tuple([(name, 1) for name in targets])
        self.add_shares(workload, shares)

    def add_shares(self, workload: Workload, shares: Sequence[tuple[str, int]]) -> None:
        """Place a workload; each share is the name of a target and the number of replicas on it."""
        key, records, known = workload.key, self.peer_index.records, self.slots.by_name
        if key in records:
            raise InputError(f"workload {key} is placed already")
        record = records[key] = PlacedWorkload(key, workload, tuple(shares))
        if len(shares) == 1 and shares[0][0] in known:
            record.slots = (known[shares[0][0]],)
        else:
            self._find_slots(record)
        self._count(record)

    def remove(self, key: WorkloadKey) -> Workload:
        record = self.records[key]
        self._uncount(record)
        for name, _ in record.shares:
            self._on_unknown[name].discard(key)
            if not self._on_unknown[name]:
                del self._on_unknown[name]
        del self.records[key]
        return record.workload

    def replace(self, workload: Workload) -> None:
        """Replace a workload by one with other labels, requests or state, on the same targets."""
        shares = self.records[workload.key].shares
        self.journal.hold()
        self.remove(workload.key)
        self.add_shares(workload, shares)
        self.journal.release()

    def amend(self, workload: Workload) -> None:
        """Replace a workload by one that differs only in what is not counted here, such as its start time."""
        record = self.records[workload.key]
        record.workload = workload
        if self._pod_table is not None:
            self._pod_table.amend(record)

    # Namespaces and storage

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        before = self.peer_index.namespaces.get(name)
        if before == labels:
            return
        self.peer_index.relabel_namespace(name, labels)
        self.journal.append(Change(ChangeType.NAMESPACE_CHANGED, name=name, before=before, after=labels))

    def set_claim(self, key: str, claim: Claim | None) -> None:
        self.set_stored("claims", key, claim)

    def set_volume(self, name: str, volume: Volume | None) -> None:
        self.set_stored("volumes", name, volume)

    def set_storage_class(self, name: str, storage_class: StorageClass | None) -> None:
        self.set_stored("classes", name, storage_class)

    def set_stored(self, table: str, name: str, value: object) -> None:
        """Set an entry of one of the storage tables; None removes it."""
        before = self.storage.put(table, name, value)
        if self._attachments is not None:
            self._attachments.storage_changed(table, name)
        if before != value:  # many updates of an object change nothing that is read here
            self.journal.append(Change(ChangeType.STORAGE_CHANGED, name=name, table=table, before=before, after=value))

    # Undo

    def mark(self) -> int:
        """A position to undo to; every mark is followed by one `undo_to` or `forget`."""
        return self.journal.hold()

    def forget(self, mark: int) -> None:
        """Keep the changes since the mark."""
        assert mark <= self.journal.end
        self._release()

    def undo_to(self, mark: int) -> None:
        """Undo every change since the mark, the last one first."""
        changes = self.journal.since(mark)
        assert changes is not None, "changes since a mark are kept"
        for change in reversed(changes):
            if not change.follows:
                self._reverse(change)
        self._release()

    def _release(self) -> None:
        self.journal.release()
        if not self.journal.is_held:
            self.images.forget_undoable()
            if self._pod_table is not None:
                self._pod_table.forget_undoable()

    @contextmanager
    def tentatively(self) -> Iterator[None]:
        """Undo every change of the body at its end."""
        mark = self.mark()
        try:
            yield
        finally:
            self.undo_to(mark)

    @contextmanager
    def without(self, key: WorkloadKey) -> Iterator[None]:
        """The index without one workload; unchanged if the workload is not placed."""
        with self.tentatively():
            if key in self.records:
                self.remove(key)
            yield

    def _reverse(self, change: Change) -> None:
        match change.type:
            case ChangeType.WORKLOAD_ADDED:
                assert change.workload is not None
                self.remove(change.workload.key)
            case ChangeType.WORKLOAD_REMOVED:
                assert change.workload is not None
                self.add_shares(change.workload, change.shares)
            case ChangeType.TARGET_ADDED:
                assert change.target is not None
                self.remove_target(change.target.name)
            case ChangeType.TARGET_REMOVED:
                assert change.target is not None
                self.add_target(change.target)
            case ChangeType.TARGET_CHANGED:
                assert isinstance(change.before, Target)
                self.update_target(change.before)
            case ChangeType.NAMESPACE_CHANGED:
                self.set_namespace(change.name, change.before)  # type: ignore[arg-type]
            case ChangeType.STORAGE_CHANGED:
                self.set_stored(change.table, change.name, change.before)

    # Counting

    def _find_slots(self, record: PlacedWorkload) -> None:
        """Find the slots of a record; note the record for every target that is unknown."""
        known = self.slots.by_name
        record.slots = tuple([known[name] for name, _ in record.shares if name in known])
        if len(record.slots) != len(record.shares):
            for name, _ in record.shares:
                if name not in known:
                    self._on_unknown[name].add(record.key)

    def _recount(self, record: PlacedWorkload, without: int | None = None) -> None:
        self._uncount(record, follows=True)
        self._find_slots(record)
        if without is not None:
            record.slots = tuple(slot for slot in record.slots if slot != without)
        self._count(record, follows=True)

    def _count(self, record: PlacedWorkload, *, follows: bool = False) -> None:
        workload, needs, cls = record.workload, record.workload.needs, record.member_of
        if record.slots or (self.lost_targets_count and record.shares):
            cls = self.peer_index.join(record)
            if needs.claims.names or needs.claims.disks:
                self.claim_users.add(workload)
                if self._attachments is not None:
                    self._attachments.add(workload, record.slots, +1)
            requests = needs.requests.on_node(self.semantics.kubernetes_version)
            for slot in record.slots:
                self._on_slot[slot].add(record.key)
                self.capacity.add(slot, requests, +1)
                if needs.host_ports:
                    self.ports.add(slot, needs.host_ports, +1)
            if self._pod_table is not None:
                self._pod_table.add(record, self.capacity)
        self.journal.append(
            Change(ChangeType.WORKLOAD_ADDED, record.slots, cls, workload, record.shares, follows=follows)
        )

    def _uncount(self, record: PlacedWorkload, *, follows: bool = False) -> None:
        workload, needs, cls = record.workload, record.workload.needs, record.member_of
        if record.member_of is not None:
            if self._pod_table is not None:
                self._pod_table.remove(record, undoable=self.journal.is_held)
            cls = self.peer_index.leave(record)
            if needs.claims.names or needs.claims.disks:
                self.claim_users.remove(workload)
                if self._attachments is not None:
                    self._attachments.add(workload, record.slots, -1)
            requests = needs.requests.on_node(self.semantics.kubernetes_version)
            for slot in record.slots:
                self._on_slot[slot].discard(record.key)
                self.capacity.add(slot, requests, -1)
                if needs.host_ports:
                    self.ports.add(slot, needs.host_ports, -1)
        self.journal.append(
            Change(ChangeType.WORKLOAD_REMOVED, record.slots, cls, workload, record.shares, follows=follows)
        )

    def _renew_default_keys(self) -> None:
        """An empty topology key means every label key of the targets: count the owners of such terms by these."""
        label_keys = self._columns.label_keys
        if label_keys == self.semantics.default_topology_keys:
            return
        owning = [cls for cls in self.peer_index.classes.by_id.values() if cls.affinity.has_empty_key]
        keys = sorted(key for cls in owning for alike in cls.label_sets.values() for key in alike)
        owners = [self.records[key] for key in keys]
        for record in owners:
            self._uncount(record, follows=True)
        self.semantics = msgspec.structs.replace(self.semantics, default_topology_keys=label_keys)
        self.peer_index.semantics = self.semantics
        for record in owners:
            self._count(record, follows=True)

    # Slots

    def _put(self, slot: int, target: Target) -> None:
        self.targets_generation += 1
        for requesting in self.capacity.put(slot, target):
            if self._pod_table is not None:
                for key in self._on_slot[requesting]:
                    self._pod_table.renew_amounts(self.records[key], self.capacity)
        if target.cluster is not None:
            self.cluster_capacity.put(slot, target.cluster)
        if target.images:
            self.images.put(slot, target)

    def _clear(self, slot: int, target: Target) -> None:
        self.capacity.clear(slot)
        self.cluster_capacity.clear(slot)
        if target.images:
            self.images.clear(slot, target, undoable=self.journal.is_held)

    def _grow(self) -> None:
        capacity = self.slots.grow()
        self.capacity.grow(capacity)
        self.cluster_capacity.grow(capacity)
        self._columns.grow(capacity)
        if self._attachments is not None:
            self._attachments.grow(capacity)
