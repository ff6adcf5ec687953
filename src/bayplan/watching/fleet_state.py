"""
Applies watched objects of a Karmada control plane to the placement index and the scheduling queue.

What makes a binding due is karmada-scheduler's: a new generation, and a change of the labels or the generation of a
cluster that its affinity selects. A binding counts on its clusters as it is reported; a result that this scheduler has
not written yet, or whose report has not arrived, counts instead. A policy or a template matters by its annotation
`bayplan.io/placement`, and a template by its labels. What the result is and how it is written is not known here.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Container, Iterable, Iterator

import msgspec

from bayplan.controllers import binding_triggers
from bayplan.errors import InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.mapping.bindings import BindingContext
from bayplan.model import bindings as model
from bayplan.model.labels import Taint
from bayplan.model.targets import Target
from bayplan.model.workloads import LEAVING_SUFFIX, Needs, Workload, WorkloadKey
from bayplan.placing import place_bindings
from bayplan.queueing.binding_evaluator import PendingBinding
from bayplan.queueing.scheduling_queue import SchedulingQueue
from bayplan.rules.cluster_affinity import NO_TIER, tier_by_target
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.watching.fleet_capacity import FleetCapacity
from bayplan.watching.fleet_templates import FleetTemplates, TemplateKind
from bayplan.watching.setting_aside import mapped
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.wire.meta import ApiObject

UNREADABLE = Taint("bayplan.io/unreadable", "", "NoSchedule")


class Incoming(enum.Enum):
    """Why a binding came into the queue: the values of Karmada's metric, and FailsBack."""

    ADDED = "BindingAdd"
    UPDATED = "BindingUpdate"
    FAILED = "ScheduleAttemptFailure"
    POLICY_CHANGED = "PolicyChanged"
    CLUSTER_CHANGED = "ClusterChanged"
    FAILS_BACK = "FailsBack"


class FleetState:
    """
    The fleet as this scheduler knows it.

    `names` are those of the schedulers whose bindings it schedules. `bindings` are the last reports, or what a write
    has returned since. `writing` are the bindings about which something is being written, with the generation that it
    was decided for. `assumed` are those that count on the clusters of a result which no report shows yet, with the last
    generation without it.
    """

    def __init__(
        self,
        index: PlacementIndex,
        queue: SchedulingQueue[PendingBinding],
        context: BindingContext,
        names: Container[str],
        on_incoming: Callable[[Incoming], None] = lambda _why: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.index, self.queue = index, queue
        self.bindings: dict[WorkloadKey, ResourceBinding] = {}
        self.workloads: dict[WorkloadKey, Workload] = {}
        self.writing: dict[WorkloadKey, int] = {}
        self.assumed: dict[WorkloadKey, int] = {}
        self.failing_back: set[WorkloadKey] = (
            set()
        )  # which may return to an earlier group or tier at their next attempt
        self.terminating: set[str] = set()
        self.unreadable: set[str] = set()  # clusters on which nothing more is placed
        self.templates = FleetTemplates()
        self.capacity = FleetCapacity(index, clock)
        self._context = context
        self._names = names
        self._on_incoming = on_incoming
        self._clusters: dict[str, tuple[int, Target]] = {}  # the generation and the last readable state
        self._own: dict[WorkloadKey, int] = {}  # the generation that this scheduler's last write has made
        self._unreported: set[WorkloadKey] = set()  # of which a write has returned more than was reported
        self._to_read: dict[WorkloadKey, None] = {}  # whose policy has changed since they were read, in this order
        self._again: set[WorkloadKey] = set()  # due again once the write in progress has ended

    # Clusters

    def put_cluster(self, cluster: Cluster) -> None:
        target = mapped(targets.target_of_cluster, cluster)
        name, before = target.name, self._clusters.get(target.name)
        self.unreadable.discard(name)
        is_leaving = cluster.metadata.deletion_timestamp is not None
        began_leaving = is_leaving and name not in self.terminating
        (self.terminating.add if is_leaving else self.terminating.discard)(name)
        generation = cluster.metadata.generation
        self._clusters[name] = generation, target
        target = self.capacity.put(target)
        if before is None:
            self.index.add_target(target)
            return
        changed = (generation, target.labels) != (before[0], before[1].labels)
        affected = set(self._affected_by(name)) if changed else set()
        self.index.update_target(target)
        if changed or began_leaving:
            affected.update(self._affected_by(name))
        for key in sorted(affected):
            self._push(key, Incoming.CLUSTER_CHANGED)

    def set_aside_cluster(self, stub: ApiObject) -> None:
        """Keep what is placed on a cluster that cannot be read, and place nothing more there."""
        name = stub.metadata.name
        known = self._clusters.get(name)
        self.unreadable.add(name)
        if known is not None:
            target = known[1]
            self.index.update_target(msgspec.structs.replace(target, taints=(*target.taints, UNREADABLE)))

    def drop_cluster(self, name: str) -> None:
        self.unreadable.discard(name)
        self.terminating.discard(name)
        self.capacity.drop(name)
        if self._clusters.pop(name, None) is not None:
            self.index.remove_target(name)

    def _affected_by(self, name: str) -> Iterator[WorkloadKey]:
        """The bindings of this scheduler whose affinity selects a cluster, as it is in the index now."""
        slot = self.index.slots.by_name[name]
        selects: dict[object, bool] = {}
        for key, workload in self.workloads.items():
            written, binding = self.bindings[key], workload.binding
            assert binding is not None
            if not self.is_ours(written):
                continue
            groups = binding.placement.groups
            is_named = any(group.name for group in groups)
            if is_named and written.status.scheduler_observed_generation != written.metadata.generation:
                yield key
                continue
            observed = [group for group in groups if group.name == binding.observed]
            for group in (observed or groups)[:1]:
                if group.tiers not in selects:
                    selects[group.tiers] = tier_by_target(group.tiers, self.index)[slot] != NO_TIER
                if selects[group.tiers]:
                    yield key

    # Policies and templates

    def put_policy(self, policy: ApiObject) -> None:
        meta = policy.metadata
        text = (meta.annotations or {}).get(PLACEMENT_ANNOTATION)
        self._to_read.update(dict.fromkeys(self.templates.put_policy((meta.namespace, meta.name), text)))

    def drop_policy(self, namespace: str, name: str) -> None:
        self._to_read.update(dict.fromkeys(self.templates.put_policy((namespace, name), None)))

    def put_template(self, kind: TemplateKind, template: ApiObject) -> None:
        self._read_again(self.templates.put_template(kind, template))

    def drop_template(self, kind: TemplateKind, namespace: str, name: str) -> None:
        self._read_again(self.templates.drop_template(kind, namespace, name))

    @property
    def has_to_read(self) -> bool:
        """Whether bindings are left to be read again."""
        return bool(self._to_read)

    def read_again(self, out_of_time: Callable[[], bool]) -> None:
        """Read bindings whose policy has changed, one at least: a policy may have thousands of them."""
        while self._to_read:
            self.bring_up_to_date(next(iter(self._to_read)))
            if out_of_time():
                break

    def bring_up_to_date(self, key: WorkloadKey) -> None:
        """Read a binding, if its policy has changed since it was read."""
        if key in self._to_read:
            del self._to_read[key]
            self._read_again((key,))

    def _read_again(self, keys: Iterable[WorkloadKey]) -> None:
        """Apply a change of what bindings are read with: one that is pending, or whose rules differ, is due."""
        for key in keys:
            written, before = self.bindings[key], self.workloads[key]
            workload = self.workloads[key] = self._read(written)
            if key not in self.assumed:
                self._count(key, workload, written)
            if workload == before or not self.is_ours(written):
                continue
            differs = _rules_of(before) != _rules_of(workload)
            if key in self.queue.pods or differs:
                # What was not known before has not changed: a placed binding is not scheduled again for it.
                was_known = model.UNKNOWN_LABELS not in before.labels
                self._push(key, Incoming.POLICY_CHANGED, must=differs and was_known)

    def needs_scheduling(self, key: WorkloadKey) -> bool:
        """Whether a binding must be scheduled. One that cannot be read must, and is then refused for it."""
        written = self.bindings[key]
        try:
            return written.spec.placement is None or binding_triggers.needs_scheduling(
                self.templates.with_policy(written), self.terminating, self.templates.text_of(written)
            )
        except InputError:
            return True

    # Bindings

    def is_ours(self, written: ResourceBinding) -> bool:
        """Whether this scheduler schedules the binding. One without a placement it refuses, and says so."""
        names = self._names
        reason = binding_triggers.reason_to_skip(written, handwritten=False, scheduler_names=names)
        return reason in ("", binding_triggers.NO_PLACEMENT)

    def put_binding(self, written: ResourceBinding) -> None:
        """Apply a binding that is new or changed."""
        key = key_of(written)
        before = self.bindings.get(key)
        if before is not None and before.metadata.uid != written.metadata.uid:
            self.drop_binding(key, "")
            before = None
        self.bring_up_to_date(key)
        if before is not None and key in self._unreported and _is_older(written, before):
            return
        self._unreported.discard(key)
        self.templates.note(key, before, written)
        workload = self._read(written)
        self.bindings[key], self.workloads[key] = written, workload
        self.capacity.note_health(key, before, written)
        generation = written.metadata.generation
        if generation > self.assumed.get(key, generation):
            del self.assumed[key]
        if key not in self.assumed:
            self._count(key, workload, written)
            self.capacity.follow(workload, bindings.shares_of(written))
        if not self.is_ours(written):
            self._again.discard(key)
            self.queue.delete(key)
        elif before is None or not self.is_ours(before):
            self._push(key, Incoming.ADDED)
        elif generation != before.metadata.generation and generation != self._own.get(key):
            self._push(key, Incoming.UPDATED)

    def set_aside_binding(self, stub: ApiObject) -> None:
        """Keep a binding that cannot be decoded where it was last read, and do not schedule it."""
        self.queue.delete(key_of(stub))

    def drop_binding(self, key: WorkloadKey, uid: str) -> None:
        """Remove a deleted binding. A later one of the same name stays."""
        known = self.bindings.get(key)
        if known is None or (uid and known.metadata.uid != uid):
            return
        self.templates.note(key, known, None)
        del self.bindings[key], self.workloads[key]
        self._to_read.pop(key, None)
        self._own.pop(key, None)
        self.assumed.pop(key, None)
        for keys in (self._unreported, self._again, self.failing_back):
            keys.discard(key)
        self._uncount(key)
        self.capacity.release(key)
        self.queue.delete(key)

    def _is_current(self, written: ResourceBinding) -> bool:
        """Whether no other binding has taken the name of this one."""
        known = self.bindings.get(key_of(written))
        return known is not None and known.metadata.uid == written.metadata.uid

    def _read(self, written: ResourceBinding) -> Workload:
        """The binding as a workload; one that cannot be read counts where it is, and cannot be placed."""
        try:
            whole, template = self.templates.with_policy(written), self.templates.template_of(written)
            return mapped(bindings.workload_of, whole, template, self._context)
        except InputError as error:
            named = written.spec.resource
            return Workload(
                namespace=written.metadata.namespace,
                name=written.metadata.name,
                uid=written.metadata.uid,
                labels={model.UNKNOWN_LABELS: ""},
                needs=Needs(),
                scheduler_name=written.spec.scheduler_name,
                unplaceable=str(error),
                binding=model.Binding(
                    namespace=named.namespace,
                    name=named.name,
                    kind=named.kind,
                    previous=tuple(bindings.shares_of(written)),
                ),
            )

    def _push(self, key: WorkloadKey, why: Incoming, *, must: bool = False) -> None:
        """Let the binding be tried, as if it never had been; after a write that is in progress."""
        if key in self.writing:
            if why is not Incoming.UPDATED:  # a newer generation is seen when the write has ended
                self._again.add(key)
            return
        self._on_incoming(why)
        self.queue.delete(key)
        new = PendingBinding(self.workloads[key])
        new.must = must
        self.queue.add(new)

    def let_fail_back(self, key: WorkloadKey) -> None:
        """Let a placed binding be scheduled again, so that it may return to an earlier group or tier."""
        self.failing_back.add(key)
        self._push(key, Incoming.FAILS_BACK, must=True)

    # Results of this scheduler

    def begin_write(self, key: WorkloadKey, *, assumes: bool) -> ResourceBinding:
        """Return the binding to write to; `assumes`: the index has a result that the binding does not have yet."""
        known = self.bindings[key]
        self.writing[key] = known.metadata.generation
        if assumes:
            self.assumed[key] = known.metadata.generation
        return known

    def wrote_result(self, answer: ResourceBinding) -> None:
        """Note what the API server has returned to the write of a result."""
        key = key_of(answer)
        if self._is_current(answer):
            self._own[key] = answer.metadata.generation
            self.wrote(answer)
            if self.bindings[key].metadata.generation <= answer.metadata.generation:
                self.forget(key)

    def wrote(self, answer: ResourceBinding) -> None:
        """Note what the API server has returned to any write."""
        key = key_of(answer)
        if self._is_current(answer) and not _is_older(answer, self.bindings[key]):
            self.bring_up_to_date(key)
            self.capacity.note_health(key, self.bindings[key], answer)
            self.bindings[key], self.workloads[key] = answer, self._read(answer)
            self._unreported.add(key)

    def forget(self, key: WorkloadKey) -> None:
        """Count a binding as it is known: it has its result already, or the result was not written."""
        if self.assumed.pop(key, None) is not None and key in self.bindings:
            workload, written = self.workloads[key], self.bindings[key]
            self._count(key, workload, written)
            self.capacity.follow(workload, bindings.shares_of(written))

    def on_failure(self, pending: PendingBinding) -> None:
        """Let a binding be tried again after a pause."""
        self._on_incoming(Incoming.FAILED)
        self.queue.requeue(pending)
        self.queue.activate(pending.key, pending.uid)

    def ended(self, key: WorkloadKey) -> None:
        """Note that a write has ended: what has become due meanwhile is tried now."""
        seen = max(self.writing.pop(key), self._own.get(key, 0))
        known = self.bindings.get(key)
        is_due = key in self._again or (known is not None and known.metadata.generation > seen)
        self._again.discard(key)
        if is_due and known is not None and self.is_ours(known):
            self._push(key, Incoming.UPDATED)

    # Counting

    def _count(self, key: WorkloadKey, workload: Workload, written: ResourceBinding) -> None:
        """Count a binding on the clusters that it names, and its copies that are draining."""
        shares, draining = bindings.shares_of(written), bindings.draining_from(written)
        if not self.index.semantics.draining_copies_count:
            draining = ()
        record = self.index.records.get(key)
        leaving = self.index.records.get(WorkloadKey(f"{key}{LEAVING_SUFFIX}"))
        drains = {name for name, _ in leaving.shares} if leaving else set()
        has_moved = list(record.shares if record else ()) != shares
        if has_moved or drains != set(draining) - {name for name, _ in shares}:
            self._uncount(key)
            place_bindings.put_on(self.index, workload, shares, draining)
        elif record is not None and record.workload != workload:
            before = record.workload
            is_alike = (before.labels, before.needs) == (workload.labels, workload.needs)
            (self.index.amend if is_alike else self.index.replace)(workload)

    def _uncount(self, key: WorkloadKey) -> None:
        for one in (key, WorkloadKey(f"{key}{LEAVING_SUFFIX}")):
            if one in self.index.records:
                self.index.remove(one)


def key_of(written: ApiObject) -> WorkloadKey:
    return WorkloadKey(f"{written.metadata.namespace}/{written.metadata.name}")


def _rules_of(workload: Workload) -> tuple[object, ...]:
    assert workload.binding is not None
    return workload.needs, workload.unplaceable, workload.binding.placement


def _is_older(one: ResourceBinding, other: ResourceBinding) -> bool:
    versions = one.metadata.resource_version, other.metadata.resource_version
    return all(version.isdecimal() for version in versions) and int(versions[0]) < int(versions[1])
