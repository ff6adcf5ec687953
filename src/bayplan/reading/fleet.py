"""
The input loaded as a fleet: an index of clusters with their bindings, and the bindings that wait to be scheduled.

Bindings are first brought to the state in which Karmada's detector would leave them. Does not schedule anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import msgspec

from bayplan.controllers import binding_triggers, cluster_failures
from bayplan.controllers.cluster_failures import ClusterEvents
from bayplan.controllers.desired_state import ObjectKey
from bayplan.errors import Fault, InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.mapping.bindings import ANY_KEY, LabelKeys
from bayplan.model.bindings import UNKNOWN_LABELS
from bayplan.model.semantics import UPSTREAM, Semantics, for_fleets
from bayplan.model.targets import FIELD_KEYS
from bayplan.model.terms import TARGET
from bayplan.model.workloads import Workload, WorkloadKey, queue_order
from bayplan.placing import place_bindings
from bayplan.reading import files, lua_customizations
from bayplan.reading.collecting import Inputs
from bayplan.reading.detected_bindings import DetectedBindings, counted, workload_key
from bayplan.wire.fleets import ResourceBinding
from bayplan.wire.pods import Pod

NO_EVENTS = ClusterEvents()
BINDINGS_PER_PROGRESS_REPORT = 500


class LoadedFleet(msgspec.Struct):
    """
    `pending` is in the order of the scheduling queue; `notes` say what was skipped or created.

    `not_scheduled` are bindings that count on their clusters but that this scheduler ignores. `bindings` are all
    bindings as the detector leaves them, `policies` the policy of each that has one, and `was` where each was before.
    `change` are the bindings that the change concerns, None if everything is of the change. `unselected` are workloads
    of the change that no policy selects. `abandoned` are bindings that are evicted and not scheduled again, each with
    the reason, and `idle` are those that neither wait nor are on any cluster.
    """

    index: PlacementIndex
    pending: list[Workload]
    notes: list[str]
    not_scheduled: frozenset[WorkloadKey] = frozenset()
    bindings: dict[WorkloadKey, ResourceBinding] = {}
    policies: dict[WorkloadKey, ObjectKey] = {}
    was: dict[WorkloadKey, tuple[tuple[str, int], ...]] = {}
    change: frozenset[WorkloadKey] | None = None
    unselected: list[str] = []
    n_not_judged: int = 0
    abandoned: list[tuple[Workload, str]] = []
    idle: list[tuple[Workload, str]] = []


@files.gc_paused()
def fleet_of(
    inputs: Inputs,
    *,
    semantics: Semantics = UPSTREAM,
    seed: str = "",
    keys: LabelKeys = ANY_KEY,
    pods: Iterable[Pod] = (),
    now: datetime | None = None,
    events: ClusterEvents = NO_EVENTS,
    progress: Callable[[str], None] = lambda _: None,
) -> LoadedFleet:
    """
    An index of the clusters with their bindings, and all bindings that a scheduler would schedule now.

    `events` are supposed to happen to clusters before. `now` decides for which bindings the hold-down is over, so that
    they may fail back; without it, for none.
    `progress` receives a line of text now and then.
    """
    if inputs.misread:
        raise InputError(inputs.misread)
    if any(one.spec.components for one in inputs.bindings):  # only with the gate does Karmada write them
        semantics = msgspec.structs.replace(semantics, multiple_pod_templates_scheduling=True)
    supposed = cluster_failures.suppose(events, inputs.clusters, inputs.taint_policies)
    detected = DetectedBindings(inputs, pods, supposed, lua_customizations.answers_of(inputs, semantics))
    index = PlacementIndex(for_fleets(semantics), seed, lost_targets_count=True)
    for namespace in inputs.namespaces:
        index.set_namespace(namespace.metadata.name, namespace.metadata.labels or {})
    for cluster in supposed.clusters:
        index.add_target(targets.target_of_cluster(cluster))
    context = bindings.BindingContext(semantics, keys, assumes_no_labels=False)
    pending, not_scheduled, n_unknown = [], [], 0
    abandoned, idle = [], []
    for n_added, (key, binding) in enumerate(detected.bindings.items()):
        if n_added % BINDINGS_PER_PROGRESS_REPORT == 0:
            progress(f"adding bindings to the index: {n_added} of {len(detected.bindings)}")
        template = detected.claimed.template_of(binding)
        workload = bindings.workload_of(binding, template.as_written() if template else None, context)
        workload = detected.claimed.refused_for_labels(key, workload)
        n_unknown += UNKNOWN_LABELS in workload.labels and bool(binding.spec.clusters)
        may_fail_back = binding_triggers.hold_down_is_over(binding, semantics.fail_back_after, now)
        if detected.is_pending(key) or (may_fail_back and detected.is_ours(key)):
            assert workload.binding is not None
            fresh = workload.binding.fresh or key in detected.rebalanced
            changed = msgspec.structs.replace(workload.binding, fresh=fresh, may_fail_back=may_fail_back)
            pending.append(msgspec.structs.replace(workload, binding=changed))
        elif not binding.spec.clusters:
            idle.append((workload, detected.why_ignored(key)))
        if not detected.is_ours(key):
            not_scheduled.append(workload.key)
        if detected.is_abandoned(key):
            abandoned.append((workload, detected.why_ignored(key)))
        place_bindings.put_on(index, workload, bindings.shares_of(binding), bindings.draining_from(binding))
    unknown = [fault for workload in pending for fault in _unknown_topologies(workload, index)]
    if unknown:
        raise InputError(unknown)
    in_queue = sorted(pending, key=queue_order)
    unread = _assume_what_is_only_planned(detected.bindings.values(), index)
    notes = [*inputs.hints, *inputs.state_notes(), *detected.notes(), *unread]
    notes += _unknown_labels(n_unknown, in_queue, index)
    return LoadedFleet(
        index,
        in_queue,
        notes,
        frozenset(not_scheduled),
        bindings={workload_key(key): binding for key, binding in detected.bindings.items()},
        policies={workload_key(key): policy for key, policy in detected.claimed.policies.items()},
        was={workload_key(key): shares for key, shares in detected.was.items()},
        change=None if events else detected.of_change(),
        unselected=detected.claimed.unselected,
        n_not_judged=len(inputs.set_aside) + detected.n_not_judged + len(unread),
        abandoned=abandoned,
        idle=idle,
    )


def _assume_what_is_only_planned(written: Iterable[ResourceBinding], index: PlacementIndex) -> list[str]:
    """Subtract from clusters what they do not report yet of the bindings of a plan; what is malformed in them."""
    found = []
    for binding in written:
        meta = binding.metadata
        try:
            reported = bindings.reported_shares(binding)
        except InputError as error:
            found.append(f"{binding.kind} {meta.namespace}/{meta.name}: {error}".replace(" /", " "))
            continue
        record = index.records.get(workload_key((meta.namespace, meta.name)))
        if reported is not None and record is not None:
            place_bindings.assume(record.workload, record.shares, reported, index)
    return found


def _unknown_labels(n_unknown: int, pending: Iterable[Workload], index: PlacementIndex) -> Iterator[str]:
    """How to supply labels that are not known, where terms select by them, and which terms do without."""
    affinities = [one.needs.affinity for one in pending]
    if n_unknown and (index.peer_index.owner_rules.n or any(affinities)):
        whose = counted(n_unknown, "workload", "workloads")
        yield (
            f"labels of {whose} are not known: add the templates, give the labels in the annotation "
            f"{bindings.LABELS_ANNOTATION} of the bindings, or read the fleet with --context"
        )
        if any(one.preferred or one.anti_preferred for one in affinities):
            yield "preferred terms are scored without the workloads whose labels are not known"


def _unknown_topologies(workload: Workload, index: PlacementIndex) -> Iterator[Fault]:
    """A fault for each term whose topology key no cluster has: it could never be met, or would have no effect."""
    affinity = workload.needs.affinity
    for term in (*affinity.required, *affinity.anti_required, *affinity.preferred, *affinity.anti_preferred):
        built_in = term.topology_key == TARGET or term.topology_key in FIELD_KEYS.values()
        if not built_in and index.slots.by_name and not index.column(term.topology_key).by_value:
            expected = "expected cluster, zone, region, provider or a label that some cluster has"
            message = f"{expected}, got {term.topology_key}"
            yield Fault(message, subject=f"workload {workload.key}", path=f"placement.{term.path}.topologyKey")
